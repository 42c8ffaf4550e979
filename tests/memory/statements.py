"""Statements over the books in memory."""

from tests.memory.activity import MemoryActivityStore
from tests.memory.books import MemoryBooks
from tollgate.core.clock import Clock
from tollgate.core.ids import created_s
from tollgate.core.money.statement import Month, Statement
from tollgate.stores.rules.statements import Spending, make_statement


class MemoryStatementStore:
    """Implements `stores.ports.administration.StatementStore`; no day is ever closed."""

    def __init__(self, books: MemoryBooks, clock: Clock) -> None:
        self._books = books
        self._clock = clock

    async def statement(self, workspace_id: str, month: Month) -> Statement:
        """Return the statement of a month that has begun."""
        now_s = int(self._clock.now_s())
        before = sum(
            record.cost_nano_usd
            for (owner, id_), record in self._books.records.items()
            if owner == workspace_id and created_s(id_) < month.since_s
        )
        until_s = min(month.until_s, now_s + 1)
        return make_statement(
            workspace_id,
            month,
            entries=self._books.entries.get(workspace_id, {}).values(),
            before=Spending(cost_nano_usd=before),
            activity=await MemoryActivityStore(self._books).activity(
                workspace_id, month.since_s, until_s
            ),
            now_s=now_s,
        )
