"""Activity by day, in rows that are stored by a roll-up once the day's records are final.

A roll-up overwrites the day's rows with the sums over all records of the day, so it may be
interrupted and repeated. Its last write is a mark that closes the day. Rows never expire. The
activity of an open day is computed from its records.
"""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from tollgate.aws.attributes import Item, number, string
from tollgate.aws.aws_json import AwsCaller
from tollgate.aws.failures import TransactionCancelled, refusing_when_unavailable
from tollgate.core.clock import DAY_S, Clock
from tollgate.core.errors import ErrorCode, LedgerError
from tollgate.core.ids import IdSource
from tollgate.core.records.activity import (
    BEFORE_STATED,
    Activity,
    ActivityRow,
    ActivityStream,
    DaySummary,
    GenerationFilter,
    day_of,
    days_within,
    summarize_day,
)
from tollgate.core.records.audit import ROLLUP
from tollgate.core.records.generation import GenerationRecord
from tollgate.core.usage import Usage
from tollgate.stores.aws.decoding import (
    read_number,
    read_optional_text,
    read_text,
    reads_an_item,
)
from tollgate.stores.aws.items import AnyItem
from tollgate.stores.aws.record_items import ActivityItem, ClosedDayItem
from tollgate.stores.aws.row_ranges import pages_between
from tollgate.stores.aws.tables import (
    Tables,
    activity_key,
    closed_day_key,
    workspace_partition,
)
from tollgate.stores.aws.transactions import put_if_absent, transact
from tollgate.stores.aws.visits import visit_workspaces
from tollgate.stores.records.audit_log import AuditWriter
from tollgate.stores.records.generations import DynamoGenerationStore
from tollgate.stores.rules.audit_entries import AuditedChange
from tollgate.stores.rules.periods import day_name
from tollgate.stores.rules.spend_anomalies import (
    USUAL_WITHIN_DAYS,
    SpendSubject,
    add_by_subject,
    find_anomalies,
    find_costly,
)

_log = logging.getLogger(__name__)

# Time between midnight and the closing of a day: the day's last generation ends within 15 minutes,
# and the sweeper settles lost generations within 10 more minutes.
CLOSES_AFTER_S: Final = 3600
# Number of past days that a roll-up checks, in case no roll-up has run for some time.
_DAYS_BACK: Final = 21
_PAGE: Final = 1000
_LIVE_RECORDS_MAX: Final = 20_000
_LIVE_FOR_S: Final = 60.0
_LIVE_DAYS_MAX: Final = 500
_WRITES_AT_ONCE: Final = 16
# Maximum number of workspaces rolled up at the same time; each has a page of records in memory.
_AT_ONCE_MAX: Final = 4


class DynamoActivityStore:
    """Implements `stores.ports.administration.ActivityStore`, and closes days."""

    def __init__(
        self,
        client: AwsCaller,
        tables: Tables,
        generations: DynamoGenerationStore,
        *,
        ids: IdSource,
        clock: Clock,
    ) -> None:
        self._client = client
        self._ids = ids
        self._audit = AuditWriter(tables.core, ids=ids, clock=clock)
        self._tables = tables
        self._generations = generations
        self._clock = clock
        self._live: dict[tuple[str, str], tuple[float, Activity]] = {}

    async def activity(self, workspace_id: str, since_s: int, until_s: int) -> Activity:
        """Return the activity for each UTC day that is at least partly in [since_s, until_s)."""
        return await (await self.read(workspace_id, since_s, until_s)).collect()

    async def read(
        self, workspace_id: str, since_s: int, until_s: int, *, after: str = ""
    ) -> ActivityStream:
        """Return the rows of `activity` as a stream, beginning after the position `after`.

        Only one page of stored rows and the rows of open days are in memory.
        """
        days = days_within(since_s, min(until_s, int(self._clock.now_s()) + 1))
        # Marks are read first, because rows that are read before their day's mark may be
        # incomplete.
        with refusing_when_unavailable():
            closed = await self._find_closed(workspace_id, days) if days else set[str]()
        still_open = [day_s for day_s in days if day_of(day_s) not in closed]
        counts = [
            await self._count_live(workspace_id, day_s)
            for day_s in still_open
            if self._has_records(day_s)
        ]
        live = [row for count in counts for row in count.rows if row.place > after]
        return ActivityStream(
            rows=_merge(self._closed_rows(workspace_id, closed, after), live),
            closed_days=tuple(sorted(closed)),
            live_days=tuple(day for live in counts for day in live.live_days),
            partial_days=tuple(day for live in counts for day in live.partial_days),
            missing_days=tuple(
                day_of(day_s) for day_s in still_open if not self._has_records(day_s)
            ),
            last_record_s=max(
                (live.last_record_s for live in counts if live.last_record_s is not None),
                default=None,
            ),
        )

    async def close_due(self) -> int:
        """Roll up the due days of all workspaces; return the number of closed days.

        Days with corrupt records stay open. After the other days are closed, raise a LedgerError
        that names the open days.
        """
        with refusing_when_unavailable():
            visits = await visit_workspaces(
                self._client, self._tables.core, self._close_days, at_once=_AT_ONCE_MAX
            )
        count = sum(closed for closed, _ in visits)
        open_names = [day for _, open_days in visits for day in open_days]
        _log.info("closed %d days", count)
        if open_names:
            raise LedgerError(
                ErrorCode.SERVICE_UNAVAILABLE,
                f"Days with corrupt records stay open: {', '.join(open_names)}.",
            )
        return count

    async def _close_days(self, workspace_id: str) -> tuple[int, list[str]]:
        """Close a workspace's due days; return their number, and the days that stay open."""
        now_s = int(self._clock.now_s())
        days = days_within(now_s - _DAYS_BACK * DAY_S, now_s - CLOSES_AFTER_S - DAY_S + 1)
        closed = await self._find_closed(workspace_id, days)
        due_days = [day_s for day_s in days if day_of(day_s) not in closed]
        still_open = [day_s for day_s in due_days if not await self._close(workspace_id, day_s)]
        return len(due_days) - len(still_open), [
            f"{workspace_id} {day_of(day_s)}" for day_s in still_open
        ]

    async def _close(self, workspace_id: str, day_s: int) -> bool:
        """Write the bills and sums of a day, then its mark; return False if a record is corrupt.

        Only one page of records is in memory, because a day may have any number of records.
        """
        day = day_of(day_s)
        summary = DaySummary(day)
        async for page in self._generations.read_day(workspace_id, day, page_max=_PAGE):
            if page.unreadable:
                return False
            for record in page.found:
                summary.add(record)
            await self._generations.put_bills(page.found)
        rows = summary.rows()
        for start in range(0, len(rows), _WRITES_AT_ONCE):
            batch = rows[start : start + _WRITES_AT_ONCE]
            await asyncio.gather(*(self._put(_row_item(workspace_id, row)) for row in batch))
        mark = {
            **closed_day_key(workspace_id, day),
            ClosedDayItem.COST: number(sum(row.cost_nano_usd for row in rows)),
            ClosedDayItem.REQUESTS: number(summary.requests),
        }
        entries = await self._list_anomalies(workspace_id, day_s, rows)
        if not entries:
            await self._put(mark)
            return True
        # Written in the same transaction as the mark, so a crash or a second roll-up neither loses
        # nor repeats an entry.
        with suppress(TransactionCancelled):
            absent = put_if_absent(self._tables.core, mark)
            await transact(self._client, self._ids, [absent, *entries])
        return True

    async def _list_anomalies(
        self, workspace_id: str, day_s: int, rows: Sequence[ActivityRow]
    ) -> list[object]:
        """Return the actions that enter the day's anomalies into the audit log."""
        costly = find_costly(rows)
        if not costly:
            return []
        days = days_within(day_s - USUAL_WITHIN_DAYS * DAY_S, day_s)
        closed = await self._find_closed(workspace_id, days)
        before: dict[str, dict[SpendSubject, int]] = {}
        async for row in self._closed_rows(workspace_id, closed, ""):
            costs = before.setdefault(row.day, {})
            for subject, cost in add_by_subject([row]).items():
                if subject in costly:
                    costs[subject] = costs.get(subject, 0) + cost
        labels = {row.key_id: row.key_label for row in rows}
        return [
            action
            for subject, anomaly in find_anomalies(day_of(day_s), costly, before)
            for action in self._audit.puts(
                AuditedChange(
                    action="spend.anomaly",
                    target=subject.id,
                    target_name=labels.get(subject.id) if subject.kind == "key" else None,
                    workspace_id=workspace_id,
                    after=anomaly,
                ),
                ROLLUP,
            )
        ]

    async def _put(self, item: Item) -> None:
        await self._client.call("PutItem", {"TableName": self._tables.core, "Item": item})

    def _has_records(self, day_s: int) -> bool:
        """Return True if the records of an open day have not expired."""
        return day_s > self._clock.now_s() - (_DAYS_BACK + 7) * DAY_S

    async def _count_live(self, workspace_id: str, day_s: int) -> Activity:
        """Return the activity on an open day, recomputed at most once a minute.

        A day without records is recomputed at each call, so that its first request counts at once.
        """
        day = day_of(day_s)
        now_s = self._clock.monotonic_s()
        until_s, cached = self._live.get((workspace_id, day), (0.0, None))
        if cached is not None and now_s < until_s:
            return cached
        records, is_complete = await self._latest_records(workspace_id, day_s)
        counted = Activity(
            rows=summarize_day(day, records),
            live_days=(day,),
            partial_days=() if is_complete else (day,),
            last_record_s=max((record.created_s for record in records), default=None),
        )
        if not records:
            return counted
        if len(self._live) >= _LIVE_DAYS_MAX:
            self._live.clear()
        self._live[workspace_id, day] = (now_s + _LIVE_FOR_S, counted)
        return counted

    async def _latest_records(
        self, workspace_id: str, day_s: int
    ) -> tuple[list[GenerationRecord], bool]:
        """Return a day's latest records, and True if no record is missing or corrupt."""
        generation_filter = GenerationFilter(since_s=day_s, until_s=day_s + DAY_S)
        records: list[GenerationRecord] = []
        before: str | None = None
        is_complete = True
        while len(records) < _LIVE_RECORDS_MAX:
            page = await self._generations.page(
                workspace_id, generation_filter, limit=_PAGE, before=before
            )
            records += page.found
            is_complete = is_complete and not page.unreadable
            before = page.next
            if before is None:
                return records, is_complete
        return records, False

    async def _find_closed(self, workspace_id: str, days: tuple[int, ...]) -> set[str]:
        """Return the closed days among these days."""
        marks = self._pages_between(
            workspace_id, f"D#{day_name(days[0])}", f"D#{day_name(days[-1])}"
        )
        return {
            _day(read_text(item, AnyItem.SORT).removeprefix("D#"))
            async for page in marks
            for item in page
        }

    async def _closed_rows(
        self, workspace_id: str, closed: Collection[str], after: str
    ) -> AsyncGenerator[ActivityRow, None]:
        """Yield the stored rows for closed days, from the row after a position."""
        if not closed:
            return
        first, last = (day.replace("-", "") for day in (min(closed), max(closed)))
        # `$` follows `#` in ASCII, so the range includes all rows for the last day.
        low, high = f"A#{max(first, after)}", f"A#{last}$"
        if low > high:
            return
        with refusing_when_unavailable():
            # Each item is decoded as it is read, because it takes three times the memory of the
            # decoded row.
            async for page in self._pages_between(workspace_id, low, high):
                for item in page:
                    row = _read_row(item)
                    if row.day in closed and read_text(item, AnyItem.SORT) != f"A#{after}":
                        yield row

    def _pages_between(
        self, workspace_id: str, low: str, high: str
    ) -> AsyncIterator[Sequence[Item]]:
        partition = workspace_partition(workspace_id)
        return pages_between(self._client, self._tables.core, partition, low=low, high=high)


async def _merge(
    stored: AsyncGenerator[ActivityRow, None], live: Sequence[ActivityRow]
) -> AsyncGenerator[ActivityRow, None]:
    """Yield the stored and live rows in the order of their positions."""
    waiting = deque(sorted(live, key=lambda row: row.place))
    async for row in stored:
        # A day has either stored or live rows.
        while waiting and waiting[0].day < row.day:
            yield waiting.popleft()
        yield row
    while waiting:
        yield waiting.popleft()


def _row_item(workspace_id: str, row: ActivityRow) -> Item:
    item: Item = {
        **activity_key(workspace_id, row),
        ActivityItem.COST: number(row.cost_nano_usd),
        ActivityItem.REQUESTS: number(row.requests),
        ActivityItem.FAILED: number(row.failed),
        ActivityItem.KEY_LABEL: string(row.key_label),
        ActivityItem.LABELS: _label_map(row.labels),
    }
    if row.caller_labels:
        item[ActivityItem.CALLER_LABELS] = _label_map(row.caller_labels)
    for name, field in ActivityItem.USAGE.items():
        count: int | None = getattr(row.usage, field)
        if count is not None:
            item[name] = number(count)
    return item


def _label_map(labels: Mapping[str, str]) -> Any:
    return {"M": {name: string(value) for name, value in labels.items()}}


def _read_labels(stored: Any) -> dict[str, str]:
    return {name: value["S"] for name, value in stored["M"].items()}


@reads_an_item
def _read_row(item: Item) -> ActivityRow:
    _, day, model, provider, key_and_labels = read_text(item, AnyItem.SORT).split("#")
    # The sort key also contains the callers' labels, which are read from another attribute.
    key_id, *behind = key_and_labels.split(BEFORE_STATED)
    return ActivityRow(
        day=_day(day),
        model=None if model == "-" else model,
        provider=None if provider == "-" else provider,
        key_id="" if key_id == "-" else key_id,
        key_label=read_optional_text(item, ActivityItem.KEY_LABEL) or "",
        labels=_read_labels(item[ActivityItem.LABELS]),
        caller_labels=_read_labels(item.get(ActivityItem.CALLER_LABELS, {"M": {}})),
        moved=len(behind) > 1,
        requests=read_number(item, ActivityItem.REQUESTS),
        failed=read_number(item, ActivityItem.FAILED),
        cost_nano_usd=read_number(item, ActivityItem.COST),
        usage=Usage(
            **{
                field: int(item[name]["N"])
                for name, field in ActivityItem.USAGE.items()
                if name in item
            }
        ),
    )


def _day(compact: str) -> str:
    return f"{compact[:4]}-{compact[4:6]}-{compact[6:]}"
