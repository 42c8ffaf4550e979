"""The closed days of workspaces, and their exports."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Final

from tollgate.aws.attributes import Item, number
from tollgate.aws.aws_json import AwsCaller
from tollgate.aws.failures import refusing_when_unavailable
from tollgate.aws.objects import ObjectStore
from tollgate.core.clock import DAY_S, Clock
from tollgate.core.records.activity import ClosedDay, GenerationFilter
from tollgate.core.records.generation import GenerationRecord
from tollgate.stores.aws.decoding import read_number, read_optional_number, read_text, reads_an_item
from tollgate.stores.aws.items import AnyItem
from tollgate.stores.aws.record_items import ClosedDayItem
from tollgate.stores.aws.row_ranges import all_rows, rows_between
from tollgate.stores.aws.tables import WORKSPACE_NAMES, Tables, closed_day_key, workspace_partition
from tollgate.stores.ports.administration import GenerationStore
from tollgate.stores.rules.periods import day_name

# Number of records that an export reads at a time.
_PAGE: Final = 1_000
# Number of past days that an export checks, in case no export has run for some time.
_DAYS_BACK: Final = 21


class ClosedDays:
    """Implements `web.records.day_export.DaysToExport`."""

    def __init__(
        self,
        client: AwsCaller,
        tables: Tables,
        generations: GenerationStore,
        objects: ObjectStore,
        *,
        clock: Clock,
    ) -> None:
        self._client = client
        self._table = tables.core
        self._generations = generations
        self._objects = objects
        self._clock = clock

    async def workspaces(self) -> tuple[str, ...]:
        """Return the ids of all workspaces."""
        with refusing_when_unavailable():
            names = await all_rows(self._client, self._table, WORKSPACE_NAMES, "W#")
        return tuple(read_text(name, AnyItem.SORT).removeprefix("W#") for name in names)

    async def find_due(self, workspace_id: str) -> tuple[ClosedDay, ...]:
        """Return the closed days in the last three weeks that are not exported, oldest first."""
        now_s = int(self._clock.now_s())
        days = await self._between(workspace_id, now_s - _DAYS_BACK * DAY_S, now_s)
        return tuple(day for day in days if not day.exported)

    async def get(self, workspace_id: str, second: int) -> ClosedDay | None:
        """Return the day of a Unix second; None if the day is not closed."""
        days = await self._between(workspace_id, second, second)
        return days[0] if days else None

    async def _between(self, workspace_id: str, since_s: int, until_s: int) -> list[ClosedDay]:
        with refusing_when_unavailable():
            items = await rows_between(
                self._client,
                self._table,
                workspace_partition(workspace_id),
                low=f"D#{day_name(since_s)}",
                high=f"D#{day_name(until_s)}",
                consistent=True,
            )
        return [_read_day(item, workspace_id) for item in items]

    async def records(self, day: ClosedDay) -> AsyncIterator[GenerationRecord]:
        """Yield a day's records, newest first, except corrupt records; one page is in memory."""
        generation_filter = GenerationFilter(since_s=day.start_s, until_s=day.start_s + DAY_S)
        before: str | None = None
        while True:
            page = await self._generations.page(
                day.workspace_id, generation_filter, limit=_PAGE, before=before
            )
            for record in page.found:
                yield record
            before = page.next
            if before is None:
                return

    async def put(self, name: str, content: bytes) -> None:
        """Store a file of an export; replace an existing file with the same name."""
        with refusing_when_unavailable():
            await self._objects.put(name, content)

    async def note_exported(self, day: ClosedDay) -> None:
        """Mark a day as exported."""
        item: Item = {
            **closed_day_key(day.workspace_id, day.day),
            ClosedDayItem.COST: number(day.cost_nano_usd),
            ClosedDayItem.REQUESTS: number(day.requests),
            ClosedDayItem.EXPORTED: number(1),
        }
        with refusing_when_unavailable():
            await self._client.call("PutItem", {"TableName": self._table, "Item": item})


@reads_an_item
def _read_day(item: Item, workspace_id: str) -> ClosedDay:
    compact = read_text(item, AnyItem.SORT).removeprefix("D#")
    start = datetime.strptime(compact, "%Y%m%d").replace(tzinfo=UTC)
    return ClosedDay(
        workspace_id=workspace_id,
        day=start.date().isoformat(),
        start_s=int(start.timestamp()),
        cost_nano_usd=read_number(item, ClosedDayItem.COST),
        requests=read_number(item, ClosedDayItem.REQUESTS),
        exported=read_optional_number(item, ClosedDayItem.EXPORTED) is not None,
    )
