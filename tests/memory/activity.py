"""Activity over the books in memory; every day is counted live."""

from collections.abc import AsyncGenerator, Sequence

from tests.memory.books import MemoryBooks
from tollgate.core.clock import DAY_S
from tollgate.core.ids import created_s
from tollgate.core.records.activity import (
    Activity,
    ActivityRow,
    ActivityStream,
    day_of,
    days_within,
    summarize_day,
)


class MemoryActivityStore:
    """Implements `stores.ports.administration.ActivityStore`."""

    def __init__(self, books: MemoryBooks) -> None:
        self._books = books

    async def activity(self, workspace_id: str, since_s: int, until_s: int) -> Activity:
        """Return the sums of every UTC day that lies at least partly in [since_s, until_s)."""
        rows: list[ActivityRow] = []
        last: list[int] = []
        for day_s in days_within(since_s, until_s):
            records = [
                record
                for (owner, id_), record in self._books.records.items()
                if owner == workspace_id and day_s <= created_s(id_) < day_s + DAY_S
            ]
            rows += summarize_day(day_of(day_s), records)
            last += [record.created_s for record in records]
        return Activity(
            rows=tuple(sorted(rows, key=lambda row: row.place)),
            live_days=tuple(map(day_of, days_within(since_s, until_s))),
            last_record_s=max(last, default=None),
        )

    async def read(
        self, workspace_id: str, since_s: int, until_s: int, *, after: str = ""
    ) -> ActivityStream:
        """Return such sums, of which the rows behind the place `after` are read one by one."""
        found = await self.activity(workspace_id, since_s, until_s)
        return ActivityStream(
            rows=_each([row for row in found.rows if row.place > after]),
            live_days=found.live_days,
            last_record_s=found.last_record_s,
        )


async def _each(rows: Sequence[ActivityRow]) -> AsyncGenerator[ActivityRow, None]:
    for row in rows:
        yield row
