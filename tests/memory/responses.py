"""Stored responses beside an audit log in this process's memory."""

from tests.memory.books import MemoryBooks
from tollgate.core.clock import Clock
from tollgate.core.ids import IdSource
from tollgate.core.records.audit import Actor
from tollgate.stores.records.contents import ObjectContentLog
from tollgate.stores.rules.audit_entries import AuditedChange, new_entry


class MemoryResponses:
    """Implements `stores.ports.administration.ResponseStore`."""

    def __init__(self, books: MemoryBooks, contents: ObjectContentLog, clock: Clock) -> None:
        self._books = books
        self._contents = contents
        self._clock = clock
        self._deleted = set[tuple[str, str]]()

    async def get(self, workspace_id: str, generation_id: str) -> bytes | None:
        """Return a stored response of this workspace."""
        return await self._contents.get(workspace_id, generation_id)

    async def delete(self, workspace_id: str, generation_id: str, *, by: Actor) -> bool:
        """Delete a response; False if there is none, or another caller deletes it."""
        if await self.get(workspace_id, generation_id) is None:
            return False
        if (workspace_id, generation_id) in self._deleted:
            return False
        self._deleted.add((workspace_id, generation_id))
        change = AuditedChange(
            action="response.delete", target=f"resp_{generation_id}", workspace_id=workspace_id
        )
        self._books.entries_of_audit.append(
            new_entry(change, by, ids=IdSource(self._clock), clock=self._clock)
        )
        await self._contents.delete(workspace_id, generation_id)
        return True
