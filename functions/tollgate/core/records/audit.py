"""Entries of the audit log: one for each change of a key, of credit, a workspace or a catalog."""

from collections.abc import Mapping
from typing import Final, Literal

from msgspec import Struct, field

ActorKind = Literal["key", "session", "aws", "process"]


class Actor(Struct, frozen=True, kw_only=True):
    """The cause of a change: a key, a signed-in member, an AWS identity, or a process of ours."""

    kind: ActorKind
    # Id of the key, also that of a session; ARN of the identity, or name of the process.
    id: str
    # Name of the key at that time, None for another kind.
    name: str | None = None
    # Workspace of the key, None for another kind.
    workspace_id: str | None = None
    # Member that the key or the session belongs to, None for a key that stands alone.
    member_id: str | None = None
    # Network address that the request came from, None if there was no request.
    origin: str | None = None
    request_id: str | None = None


SWEEPER: Final = Actor(kind="process", id="sweeper")


class AuditEntry(Struct, frozen=True, kw_only=True):
    """One change. Entries are written along with their change, and never changed or deleted."""

    # Unix milliseconds and a random part: entries sort by time.
    id: str
    at_ms: int
    actor: Actor
    # The workspace whose change it is, None for a catalog.
    workspace_id: str | None
    # Kind of the target and a verb: `key.create`.
    action: str
    # Id of the key, the credit entry or the workspace, or the sha of the catalog.
    target: str
    # Name of the key, None for another target.
    target_name: str | None = None
    # The fields that changed, as text; a field without a value is absent.
    before: Mapping[str, str] = field(default_factory=dict)
    after: Mapping[str, str] = field(default_factory=dict)


class AuditFilter(Struct, frozen=True, kw_only=True):
    """The entries that a list wants, made in [since_s, until_s)."""

    since_s: int
    until_s: int
    # Id or name of the actor, or its member; id or name of the target. None accepts all.
    actor: str | None = None
    target: str | None = None

    def accepts(self, entry: AuditEntry) -> bool:
        """Return whether the list has an entry."""
        actor = entry.actor
        # A renaming is found by both names.
        target = (entry.target, entry.target_name, entry.before.get("name"))
        return (
            self.since_s * 1_000 <= entry.at_ms < self.until_s * 1_000
            and self.actor in (None, actor.id, actor.name, actor.member_id)
            and (self.target is None or self.target in target)
        )
