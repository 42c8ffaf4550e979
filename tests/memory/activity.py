"""Activity over the books in memory; every day is counted live."""

from tests.memory.books import MemoryBooks
from tollgate.core.activity import Activity, ActivityRow, day_of, days_within, summarize_day
from tollgate.core.clock import DAY_S
from tollgate.core.ids import created_s


class MemoryActivityStore:
    """Implements `stores.administration.ActivityStore`."""

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
            rows=tuple(rows),
            live_days=tuple(map(day_of, days_within(since_s, until_s))),
            last_record_s=max(last, default=None),
        )
