"""Answers for identical requests, in memory."""

from dataclasses import dataclass, field

from tests.memory.books import MemoryBooks
from tollgate.core.clock import Clock
from tollgate.core.ids import IdSource
from tollgate.core.records.audit import Actor
from tollgate.stores.records.answer_cache import ObjectAnswerCache
from tollgate.stores.rules.audit_entries import cache_cleared, new_entry


@dataclass
class MemoryAnswerCache:
    """Implements `stores.ports.base.AnswerCache`; `stored` is by workspace and name."""

    stored: dict[tuple[str, str], bytes] = field(default_factory=dict)

    async def get(self, workspace_id: str, name: str) -> bytes | None:
        return self.stored.get((workspace_id, name))

    async def put(self, workspace_id: str, name: str, answer: bytes) -> None:
        self.stored[workspace_id, name] = answer

    async def clear(self, workspace_id: str) -> int:
        due = [place for place in self.stored if place[0] == workspace_id]
        for place in due:
            del self.stored[place]
        return len(due)


@dataclass(frozen=True)
class MemoryClearableCache:
    """Implements `stores.ports.administration.ClearableCache`."""

    books: MemoryBooks
    clock: Clock
    answers: MemoryAnswerCache | ObjectAnswerCache = field(default_factory=MemoryAnswerCache)

    async def clear(self, workspace_id: str, *, by: Actor) -> int:
        entry = new_entry(
            cache_cleared(workspace_id), by, ids=IdSource(self.clock), clock=self.clock
        )
        self.books.entries_of_audit.append(entry)
        return await self.answers.clear(workspace_id)
