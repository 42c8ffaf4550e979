"""Protocols of the stores of people: teams and members of a workspace, and the sessions of members.

`by` is the actor of a change, whose entry in the audit log is written along with the change. Every
method raises LedgerError(service_unavailable) when the store cannot be reached, and RequestError
for a value that cannot be, with the name of its field as `param`.
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
# The name of a member's session key is this and the id of the member.
SESSION_KEY_PREFIX: Final = "session:"


class LevelSpending(Struct, frozen=True, kw_only=True):
    """The spending of a level with limits; a level without any is not counted."""

    remaining_nano_usd: Mapping[Period, int] = field(default_factory=dict)
    """What is left of each limit in the running period, holds taken off."""
    resets_s: Mapping[Period, int | None] = field(default_factory=dict)
    """Unix second at which each limit starts anew, None for a limit that never does."""
    # What was spent in each running period, with a limit or without; empty for an unlimited level.
    used_nano_usd: Mapping[Period, int] = field(default_factory=dict)
    held_nano_usd: int = 0


class Team(LevelSettings, frozen=True, kw_only=True):
    """A team that exists, or the tombstone of a deleted one."""

    id: str
    workspace_id: str
    created_s: int
    # Unix second of its deletion, None while it exists.
    deleted_s: int | None = None
    spending: LevelSpending = LevelSpending()


class Member(MemberSettings, frozen=True, kw_only=True):
    """A member, or the tombstone of a removed one."""

    id: str
    workspace_id: str
    created_s: int
    removed_s: int | None = None
    """Unix second of the removal, None while the member belongs to the workspace."""
    # Issuer, a space and the subject of the identity that signs in as this member.
    subject: str | None = None
    spending: LevelSpending = LevelSpending()


class Belongings(Struct, frozen=True, kw_only=True):
    """The keys and members that keep a team from being deleted; without any it is deleted."""

    keys: int
    members: int


class TeamStore(Protocol):
    """The teams of all workspaces."""

    async def create(
        self, workspace_id: str, team_id: str, settings: LevelSettings, *, by: Actor
    ) -> Team | None:
        """Create a team; None if its id is taken, or was by a deleted team."""

    async def get(self, workspace_id: str, team_id: str) -> Team | None:
        """Return a team, deleted or not; None if there never was one with this id."""

    async def list(
        self, workspace_id: str, *, after: str | None = None, limit: int = PEOPLE_PAGE_MAX
    ) -> Page[Team]:
        """Return a page of teams in the order of their ids, deleted ones too, from the one after
        `after`."""

    async def change(
        self,
        workspace_id: str,
        team_id: str,
        edit: Callable[[LevelSettings], LevelSettings],
        *,
        by: Actor,
    ) -> Team | None:
        """Replace a team's settings by what `edit` returns; None if there is none, or no longer.

        The same settings again are no change. `edit` is called again if another writer came first.
        """

    async def delete(self, workspace_id: str, team_id: str, *, by: Actor) -> Belongings | None:
        """Delete a team that nothing belongs to; None if there is none, or no longer."""


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
        """Create a member; None if the id or the subject is taken, or was by a removed member."""

    async def get(self, workspace_id: str, member_id: str) -> Member | None:
        """Return a member, removed or not; None if there never was one with this id."""

    async def find_by_subject(self, workspace_id: str, subject: str) -> Member | None:
        """Return the member as whom an identity signs in, removed or not; None without one."""

    async def link(
        self, workspace_id: str, member_id: str, subject: str, *, by: Actor
    ) -> Member | None:
        """Let an identity sign in as a member who has none.

        Returns None where the member is missing, removed or another identity's, and where the
        identity is another member's.
        """

    async def list(
        self, workspace_id: str, *, after: str | None = None, limit: int = PEOPLE_PAGE_MAX
    ) -> Page[Member]:
        """Return a page of members in the order of their ids, removed ones too, from the one after
        `after`."""

    async def change(
        self,
        workspace_id: str,
        member_id: str,
        edit: Callable[[MemberSettings], MemberSettings],
        *,
        by: Actor,
    ) -> Member | None:
        """Replace a member's settings by what `edit` returns; None if there is none, or no longer.

        The same settings again are no change. `edit` is called again if another writer came first.
        """

    async def remove(self, workspace_id: str, member_id: str, *, by: Actor) -> bool | None:
        """Remove a member, whose keys and sessions every instance refuses within five seconds.

        Returns False if the member was removed before, None if there never was one.
        """


class OpenedSession(Struct, frozen=True, kw_only=True):
    """A session with its secret, which cannot be read again."""

    secret: str
    expires_s: int
    """Unix second from which the secret is refused."""
    key_id: str
    """Id of the member's session key, which all sessions of the member spend by."""


class SessionStore(Protocol):
    """The sessions of members: secrets that expire, all of them of one key for each member."""

    async def open(
        self, workspace_id: str, member_id: str, *, lifetime_s: int, by: Actor
    ) -> OpenedSession | None:
        """Open a session of at most SESSION_S_MAX seconds; None without such a member.

        The member's session key is made with the first session.
        """

    async def close(self, secret: str, *, by: Actor) -> bool:
        """Close a session, which every instance refuses within five seconds; False for none."""
