"""Protocols of the stores of people: teams, members, the members' sessions, and sign-in codes.

`by` is the actor of a change; a change and its audit log entry are written together. Every method
raises LedgerError(service_unavailable) if the store cannot be reached, and RequestError for an
invalid value, with the name of the field as `param`.
"""

from collections.abc import Callable, Mapping
from typing import Final, Literal, Protocol, TypeVar

from msgspec import Struct, field

from tollgate.core.limits import Period
from tollgate.core.pages import Page
from tollgate.core.principal import Principal
from tollgate.core.records.audit import Actor
from tollgate.stores.rules.level_settings import LevelSettings, MemberSettings

PEOPLE_PAGE_MAX: Final = 100
SESSION_S_MAX: Final = 3_600
# Prefix of a session key's name, followed by the member's id.
SESSION_KEY_PREFIX: Final = "session:"
# The kinds of sign-in codes, each with its own type of value.
CodeKind = Literal["code", "device", "refresh", "user"]
_Settings = TypeVar("_Settings", bound=LevelSettings)
_Shown = TypeVar("_Shown")


class LevelSpending(Struct, frozen=True, kw_only=True):
    """The spending of a level, which is counted only if the level has limits."""

    remaining_nano_usd: Mapping[Period, int] = field(default_factory=dict)
    """Remaining amount of each limit in the current period, after holds."""
    resets_s: Mapping[Period, int | None] = field(default_factory=dict)
    """Unix second at which each limit resets; None if it never does."""
    used_nano_usd: Mapping[Period, int] = field(default_factory=dict)
    """Nano-dollars spent in each current period; empty for a level that is not counted."""
    held_nano_usd: int = 0
    hold_ids: tuple[str, ...] = ()
    """Ids of the generations that the amount is held for, oldest first."""


class Team(LevelSettings, frozen=True, kw_only=True):
    """A team, or the tombstone of a deleted one."""

    id: str
    workspace_id: str
    created_s: int
    deleted_s: int | None = None
    """Unix second of the deletion, or None while the team exists."""
    spending: LevelSpending = LevelSpending()


class Member(MemberSettings, frozen=True, kw_only=True):
    """A member, or the tombstone of a removed one."""

    id: str
    workspace_id: str
    created_s: int
    removed_s: int | None = None
    """Unix second of the removal, or None while the member belongs to the workspace."""
    subject: str | None = None
    """The identity that signs in as this member: the issuer, a space and the subject."""
    spending: LevelSpending = LevelSpending()


class Belongings(Struct, frozen=True, kw_only=True):
    """The numbers of keys and members of a team; only a team that has neither can be deleted."""

    keys: int
    members: int


class LevelStore(Protocol[_Settings, _Shown]):
    """The teams (or the members) of all workspaces, including tombstones."""

    async def get(self, workspace_id: str, level_id: str, /) -> _Shown | None:
        """Return a team or member, or its tombstone, or None if the id was never used."""

    async def list(
        self, workspace_id: str, *, after: str | None = None, limit: int = PEOPLE_PAGE_MAX
    ) -> Page[_Shown]:
        """Return a page after the id `after`, in the order of ids, including tombstones."""

    async def change(
        self,
        workspace_id: str,
        level_id: str,
        edit: Callable[[_Settings], _Settings],
        /,
        *,
        by: Actor,
    ) -> _Shown | None:
        """Replace the settings with the result of `edit`; return None if the level does not exist.

        If the settings do not change, nothing is written. `edit` is called again if another writer
        has changed the level in the meantime.
        """


class TeamStore(LevelStore[LevelSettings, Team], Protocol):
    """The teams of all workspaces."""

    async def create(
        self, workspace_id: str, team_id: str, settings: LevelSettings, *, by: Actor
    ) -> Team | None:
        """Create a team; return None if its id is taken, even by a deleted team."""

    async def delete(self, workspace_id: str, team_id: str, *, by: Actor) -> Belongings | None:
        """Delete a team unless it has keys or members; return None if the team does not exist."""


class MemberStore(LevelStore[MemberSettings, Member], Protocol):
    """The members of all workspaces."""

    async def create(
        self,
        workspace_id: str,
        member_id: str,
        settings: MemberSettings,
        *,
        subject: str | None = None,
        by: Actor,
    ) -> Member | None:
        """Create a member; return None if the id or subject is taken, even by a removed member."""

    async def find_by_subject(self, workspace_id: str, subject: str) -> Member | None:
        """Return the member or tombstone that an identity signs in as; None if it is unknown."""

    async def link(
        self, workspace_id: str, member_id: str, subject: str, *, by: Actor
    ) -> Member | None:
        """Let an identity sign in as an existing member that has no identity.

        Return None if the member is missing, removed or has another identity, or if the identity
        belongs to another member.
        """

    async def remove(self, workspace_id: str, member_id: str, *, by: Actor) -> bool | None:
        """Remove a member, whose keys and sessions every instance refuses within five seconds.

        Returns False if the member was removed before, and None if the id was never used.
        """


class Session(Struct, frozen=True, kw_only=True):
    """A sign-in of a member that has not ended; a renewal replaces its secret, not the session."""

    id: str
    member_id: str
    opened_s: int
    renewed_s: int
    """Unix second at which the latest secret was issued."""
    expires_s: int
    """Unix second at which the session ends unless it is renewed."""
    renewable: bool
    """True if the program has a refresh token."""
    origin: str | None = None
    """Network address that received the latest secret."""


class OpenedSession(Struct, frozen=True, kw_only=True):
    """A session with its secret, which cannot be read again."""

    id: str
    secret: str
    expires_s: int
    """Unix second from which the secret is refused."""
    key_id: str
    """Id of the member's session key, which pays for all sessions of the member."""


class SessionStore(Protocol):
    """The sessions of members: expiring secrets; all sessions of a member share one key.

    Every instance refuses the secrets of an ended session within five seconds.
    """

    async def open(
        self,
        workspace_id: str,
        member_id: str,
        *,
        lifetime_s: int,
        by: Actor,
        renewable_s: int | None = None,
    ) -> OpenedSession | None:
        """Open a session, whose secret lasts up to SESSION_S_MAX; return None if there is no such
        member.

        The session may be renewed within `renewable_s` seconds; None if never.
        """

    async def renew(
        self,
        workspace_id: str,
        member_id: str,
        session_id: str,
        *,
        lifetime_s: int,
        renewable_s: int,
        by: Actor,
    ) -> OpenedSession | None:
        """Give a session a further secret; return None if the session has ended."""

    async def list(
        self,
        workspace_id: str,
        member_id: str,
        *,
        after: str | None = None,
        limit: int = PEOPLE_PAGE_MAX,
    ) -> Page[Session]:
        """Return a page of a member's sessions after the session id `after`, oldest first."""

    async def close(self, secret: str, *, by: Actor) -> bool:
        """End the session that a secret belongs to; return False if there is none."""

    async def end(self, workspace_id: str, member_id: str, session_id: str, *, by: Actor) -> bool:
        """End a session; return False if there is none."""

    async def end_all(self, workspace_id: str, member_id: str, *, by: Actor) -> bool:
        """End all sessions of a member; return False without such a member."""


class OpenedPlayground(Struct, frozen=True, kw_only=True):
    """A playground secret, which cannot be read again."""

    secret: str
    expires_s: int
    """Unix second from which the secret is refused."""


class PlaygroundStore(Protocol):
    """Secrets of playgrounds, which serve generations alone.

    A playground secret has the key, limits and rights to models of the caller that opened it, and
    ends with that caller's secret.
    """

    async def open(self, opener: str, principal: Principal, *, by: Actor) -> OpenedPlayground:
        """Open a playground for the caller whose secret is `opener`."""

    async def close(self, secret: str) -> None:
        """End a playground secret; this process refuses it at once, others within five seconds."""


class CodeStore(Protocol):
    """Values with an expiry, stored under the hash of a code."""

    async def add(self, kind: CodeKind, digest: str, value: bytes, *, lifetime_s: int) -> bool:
        """Store a value; return False if the code has one already."""

    async def read(self, kind: CodeKind, digest: str) -> bytes | None:
        """Return a value, or None if it is missing or expired."""

    async def replace(
        self, kind: CodeKind, digest: str, old: bytes, new: bytes, *, lifetime_s: int | None
    ) -> bool:
        """Replace a value if it still equals `old`; return False if it has changed.

        With `lifetime_s`, a new lifetime begins; with None, the expiry does not change.
        """

    async def take(self, kind: CodeKind, digest: str) -> bytes | None:
        """Delete a value and return it to one caller only; return None if there is none."""

    async def count(self, purpose: str, origin: str, *, window_s: int, most: int) -> bool:
        """Count a call from an address in this time window; return False if there were more than
        `most`.
        """
