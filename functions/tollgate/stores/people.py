"""Protocols of the stores of people: teams and members of a workspace, and the members' sessions.

`by` is the actor of a change; the change's audit log entry is written together with the change.
Every method raises LedgerError(service_unavailable) if the store cannot be reached, and
RequestError for an invalid value, with the name of its field as `param`.
"""

from collections.abc import Callable, Mapping
from typing import Final, Protocol

from msgspec import Struct, field

from tollgate.core.audit import Actor
from tollgate.core.limits import Period
from tollgate.core.pages import Page
from tollgate.stores.rules.level_settings import LevelSettings, MemberSettings

PEOPLE_PAGE_MAX: Final = 100
SESSION_S_MAX: Final = 3_600
# Prefix of the name of a member's session key, before the member's id.
SESSION_KEY_PREFIX: Final = "session:"


class LevelSpending(Struct, frozen=True, kw_only=True):
    """The spending of a level with limits; a level without limits is not counted."""

    remaining_nano_usd: Mapping[Period, int] = field(default_factory=dict)
    """Rest of each limit in the current period, after holds."""
    resets_s: Mapping[Period, int | None] = field(default_factory=dict)
    """Unix second at which each limit is renewed, None for a limit that never is."""
    used_nano_usd: Mapping[Period, int] = field(default_factory=dict)
    """Nano-dollars spent in each current period, also in periods without a limit; empty for a level
    that is not counted.
    """
    held_nano_usd: int = 0


class Team(LevelSettings, frozen=True, kw_only=True):
    """A team, or the tombstone of a deleted one."""

    id: str
    workspace_id: str
    created_s: int
    deleted_s: int | None = None
    """Unix second of the deletion, None while the team exists."""
    spending: LevelSpending = LevelSpending()


class Member(MemberSettings, frozen=True, kw_only=True):
    """A member, or the tombstone of a removed one."""

    id: str
    workspace_id: str
    created_s: int
    removed_s: int | None = None
    """Unix second of the removal, None while the member belongs to the workspace."""
    subject: str | None = None
    """Identity that signs in as this member: issuer, a space, subject."""
    spending: LevelSpending = LevelSpending()


class Belongings(Struct, frozen=True, kw_only=True):
    """The numbers of keys and members of a team; a team with any of them is not deleted."""

    keys: int
    members: int


class TeamStore(Protocol):
    """The teams of all workspaces."""

    async def create(
        self, workspace_id: str, team_id: str, settings: LevelSettings, *, by: Actor
    ) -> Team | None:
        """Create a team; return None if its id is taken, even by a deleted team."""

    async def get(self, workspace_id: str, team_id: str) -> Team | None:
        """Return a team, deleted or not; None if the id was never used."""

    async def list(
        self, workspace_id: str, *, after: str | None = None, limit: int = PEOPLE_PAGE_MAX
    ) -> Page[Team]:
        """Return a page of teams, also deleted ones, in the order of their ids, starting after
        `after`.
        """

    async def change(
        self,
        workspace_id: str,
        team_id: str,
        edit: Callable[[LevelSettings], LevelSettings],
        *,
        by: Actor,
    ) -> Team | None:
        """Replace a team's settings by what `edit` returns; None if it is missing or deleted.

        Equal settings are no change. `edit` is called again if another writer came first.
        """

    async def delete(self, workspace_id: str, team_id: str, *, by: Actor) -> Belongings | None:
        """Delete a team without keys and members; None if it is missing or deleted."""


class MemberStore(Protocol):
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
        """Create a member; None if the id or the subject is taken, even by a removed member."""

    async def get(self, workspace_id: str, member_id: str) -> Member | None:
        """Return a member, removed or not; None if the id was never used."""

    async def find_by_subject(self, workspace_id: str, subject: str) -> Member | None:
        """Return the member that an identity signs in as, removed or not; None if there is none."""

    async def link(
        self, workspace_id: str, member_id: str, subject: str, *, by: Actor
    ) -> Member | None:
        """Let an identity sign in as a member without an identity.

        Return None if the member is missing, removed or has another identity, or if the identity
        belongs to another member.
        """

    async def list(
        self, workspace_id: str, *, after: str | None = None, limit: int = PEOPLE_PAGE_MAX
    ) -> Page[Member]:
        """Return a page of members, also removed ones, in the order of their ids, starting after
        `after`.
        """

    async def change(
        self,
        workspace_id: str,
        member_id: str,
        edit: Callable[[MemberSettings], MemberSettings],
        *,
        by: Actor,
    ) -> Member | None:
        """Replace a member's settings by what `edit` returns; None if missing or removed.

        Equal settings are no change. `edit` is called again if another writer came first.
        """

    async def remove(self, workspace_id: str, member_id: str, *, by: Actor) -> bool | None:
        """Remove a member, whose keys and sessions every instance refuses within five seconds.

        Return False if the member was removed before, None if the id was never used.
        """


class OpenedSession(Struct, frozen=True, kw_only=True):
    """A session with its secret, which cannot be read again."""

    secret: str
    expires_s: int
    """Unix second from which the secret is refused."""
    key_id: str
    """Id of the member's session key, which all the member's sessions spend by."""


class SessionStore(Protocol):
    """The sessions of members: secrets that expire, which share one key for each member."""

    async def open(
        self, workspace_id: str, member_id: str, *, lifetime_s: int, by: Actor
    ) -> OpenedSession | None:
        """Open a session of at most SESSION_S_MAX seconds; return None if there is no such member.

        The member's session key is created with the first session.
        """

    async def close(self, secret: str, *, by: Actor) -> bool:
        """Close a session, which every instance refuses within five seconds; return False if there
        is none.
        """
