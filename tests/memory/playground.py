"""Playground secrets in this process's memory."""

from tests.memory.books import MemoryBooks
from tollgate.core.clock import Clock
from tollgate.core.ids import IdSource
from tollgate.core.principal import Principal
from tollgate.core.records.audit import Actor
from tollgate.stores.keys.secret import new_secret
from tollgate.stores.people.playground import PLAYGROUND_S
from tollgate.stores.ports.people import OpenedPlayground
from tollgate.stores.rules.audit_entries import AuditedChange, new_entry


class MemoryPlaygroundStore:
    """Implements `stores.ports.people.PlaygroundStore`."""

    def __init__(self, books: MemoryBooks, ids: IdSource, clock: Clock, prefix: str) -> None:
        self._books = books
        self._ids = ids
        self._clock = clock
        self._prefix = prefix

    async def open(self, opener: str, principal: Principal, *, by: Actor) -> OpenedPlayground:
        """Open a playground for the caller whose secret is `opener`."""
        secret = new_secret(self._prefix, self._ids.random_bytes)
        expires_s = int(self._clock.now_s()) + PLAYGROUND_S
        self._books.playgrounds[secret] = (opener, expires_s)
        change = AuditedChange(
            action="playground.open",
            target=principal.key_id,
            target_name=principal.label,
            workspace_id=principal.workspace_id,
        )
        self._books.entries_of_audit.append(new_entry(change, by, ids=self._ids, clock=self._clock))
        return OpenedPlayground(secret=secret, expires_s=expires_s)

    async def close(self, secret: str) -> None:
        """End a playground secret."""
        self._books.playgrounds.pop(secret, None)
