"""Entries of the audit log: changes of keys, credit, workspaces and catalogs, and accesses.

Each closed day of the log is sealed by a hash over its entries and the previous seal.
"""

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
    commit: str | None = None
    """The commit of the file that the change applies, as the caller states it."""


# The actions of access: reads of content, and refusals. All other actions are changes.
ACCESS_ACTIONS: Final = (
    "content.read",
    "response.read",
    "file.read",
    "call.refused",
    "sign_in.refused",
)
LogKind = Literal["change", "access"]
SWEEPER: Final = Actor(kind="process", id="sweeper")
ROLLUP: Final = Actor(kind="process", id="rollup")


def unauthenticated(origin: str | None, request_id: str | None) -> Actor:
    """Return the actor of a call without a valid key."""
    return Actor(kind="process", id="unauthenticated", origin=origin, request_id=request_id)


class AuditEntry(Struct, frozen=True, kw_only=True):
    """One change, or the first access of its kind in an hour. Entries never change.

    The entry of a change is written together with the change.
    """

    id: str
    """Unix milliseconds and a random part, so that entries sort by time.

    For an access, the start of the hour and a hash, so that an entry is stored only once an hour.
    """
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

    @property
    def kind(self) -> LogKind:
        """The kind of the entry, by its action."""
        return "access" if self.action in ACCESS_ACTIONS else "change"


class AuditFilter(Struct, frozen=True, kw_only=True):
    """Selects entries written in [since_s, until_s), in Unix seconds."""

    since_s: int
    until_s: int
    actor: str | None = None
    """The id or name of the actor, or its member; None selects all."""
    target: str | None = None
    """The id or name of the target; None selects all."""
    kind: LogKind | None = None
    """The kind of entries to select; None selects changes and accesses."""

    def accepts(self, entry: AuditEntry) -> bool:
        """Return whether the filter selects an entry."""
        actor = entry.actor
        # A renamed target is found by either name.
        target = (entry.target, entry.target_name, entry.before.get("name"))
        return (
            self.since_s * 1_000 <= entry.at_ms < self.until_s * 1_000
            and self.actor in (None, actor.id, actor.name, actor.member_id)
            and self.kind in (None, entry.kind)
            and (self.target is None or self.target in target)
        )


class AuditSeal(Struct, frozen=True, kw_only=True):
    """The seal of a day of a log: the end of a chain of hashes over the log's entries."""

    day: str
    """The UTC day: `2026-11-21`."""
    entries: int
    """The number of entries of the day."""
    hash: str
    """SHA-256 of the last entry in the chain; `previous` if the day has no entries."""
    previous: str
    """The hash of the previous seal; empty for the first seal."""
    marks: str = ""
    """The first characters of each entry's hash, which locate a difference."""


class SealedDay(Struct, frozen=True, kw_only=True):
    """A day of a log, compared with its seal."""

    day: str
    entries: int
    """The number of entries that the log has now."""
    seal: AuditSeal | None = None
    """None for a day that is not sealed."""
    problem: str | None = None
    """The difference between log and seal; None if there is none."""
    first_difference: str | None = None
    """The id of the first entry that differs; None if unknown."""
