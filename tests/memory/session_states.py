"""What the requests of sessions have used, in this process's memory."""

from msgspec import Struct, field

from tollgate.core.limits import LimitOwner, SessionLimit
from tollgate.core.principal import Principal
from tollgate.stores.ports.base import LevelHold
from tollgate.stores.rules.session_limits import SessionState, refuse_in_session


class MemorySession(Struct):
    """A session: `committed` is spent and held."""

    committed: int = 0
    requests: int = 0
    holds: dict[str, int] = field(default_factory=dict)


class MemorySessions(Struct):
    """All sessions, by the id of their owner."""

    by_id: dict[str, MemorySession] = field(default_factory=dict)

    def check(self, principal: Principal, limit: SessionLimit | None, amount: int) -> None:
        """Raise the refusal of a hold, if the session has no room for it."""
        if limit is None:
            return
        owner = _owner(principal, limit)
        used = self.by_id.get(owner.id, MemorySession())
        state = SessionState(
            committed_nano_usd=used.committed, requests=used.requests, holds=len(used.holds)
        )
        if refusal := refuse_in_session(state, owner, limit, amount):
            raise refusal

    def hold(
        self, principal: Principal, limit: SessionLimit | None, hold_id: str, amount: int
    ) -> tuple[LevelHold, ...]:
        """Set the amount aside, and return the session's side of the hold."""
        if limit is None:
            return ()
        id_ = _owner(principal, limit).id
        used = self.by_id.setdefault(id_, MemorySession())
        used.holds[hold_id] = amount
        used.committed += amount
        used.requests += 1
        return (LevelHold(level="session", id=id_, nano_usd=amount),)

    def settle(self, level: LevelHold, hold_id: str, cost: int) -> None:
        """Replace a hold by its cost, once."""
        used = self.by_id[level.id]
        if hold_id in used.holds:
            used.committed += cost - used.holds.pop(hold_id)


def _owner(principal: Principal, limit: SessionLimit) -> LimitOwner:
    id_ = f"{principal.key_id}#{limit.id}"
    return LimitOwner(level="session", id=id_, workspace_id=principal.workspace_id)
