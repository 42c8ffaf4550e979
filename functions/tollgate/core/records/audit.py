"""Entries of the audit log, one for each change to a key, credit, a workspace or a catalog."""

from collections.abc import Mapping
from typing import Final, Literal

from msgspec import Struct, field

ActorKind = Literal["key", "session", "aws", "process"]


class Actor(Struct, frozen=True, kw_only=True):
    """The actor of a change: a key, a signed-in member, an AWS identity, or Tollgate itself."""

    kind: ActorKind
    id: str
    """The id of the key or session, the ARN of the identity, or the name of the process."""
    name: str | None = None
    """The name of the key at that time; None for other kinds."""
    workspace_id: str | None = None
    """The workspace of the key; None for other kinds."""
    member_id: str | None = None
    """The member that the key or session belongs to; None for a key without a member."""
    origin: str | None = None
    """The network address of the request; None if there was no request."""
    request_id: str | None = None


SWEEPER: Final = Actor(kind="process", id="sweeper")


class AuditEntry(Struct, frozen=True, kw_only=True):
    """The entry for one change, written together with the change and never altered or deleted."""

    id: str
    """Unix milliseconds and a random part, so entries sort by time."""
    at_ms: int
    actor: Actor
    workspace_id: str | None
    """The workspace that changed; None for a catalog."""
    action: str
    """The kind of the target and a verb: `key.create`."""
    target: str
    """The id of the key, credit entry or workspace, or the SHA-256 of the catalog."""
    target_name: str | None = None
    """The name of the key; None for other targets."""
    before: Mapping[str, str] = field(default_factory=dict)
    """The changed fields as text, before the change; a field without a value is absent."""
    after: Mapping[str, str] = field(default_factory=dict)
    """The same fields after the change."""


class AuditFilter(Struct, frozen=True, kw_only=True):
    """Selects entries written in [since_s, until_s), in Unix seconds."""

    since_s: int
    until_s: int
    actor: str | None = None
    """The id or name of the actor, or its member; None selects all."""
    target: str | None = None
    """The id or name of the target; None selects all."""

    def accepts(self, entry: AuditEntry) -> bool:
        """Return whether the filter selects an entry."""
        actor = entry.actor
        # A renamed target is found by either name.
        target = (entry.target, entry.target_name, entry.before.get("name"))
        return (
            self.since_s * 1_000 <= entry.at_ms < self.until_s * 1_000
            and self.actor in (None, actor.id, actor.name, actor.member_id)
            and (self.target is None or self.target in target)
        )
