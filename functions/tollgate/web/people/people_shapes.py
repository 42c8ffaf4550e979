"""Bodies and replies of teams and members."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from tollgate.core.principal import MemberRole
from tollgate.stores.ports.people import PEOPLE_PAGE_MAX, Member, Team
from tollgate.stores.rules.level_settings import LevelSettings, MemberSettings
from tollgate.web.people.level_shapes import LevelBody, SpendingObject, spending_fields
from tollgate.web.shapes import Unreadable, moment, moment_or_none

TeamId = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[a-z0-9][a-z0-9._-]*$")]
MemberId = Annotated[
    str, Field(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9][A-Za-z0-9._@+-]*$")
]


class TeamChangeBody(LevelBody):
    """Changes to a team. Fields that are left out do not change, and null removes a limit."""


class NewTeamBody(LevelBody):
    """A team to create."""

    id: TeamId = Field(description="never changes, and is never reused")

    def settings(self) -> LevelSettings:
        """Return the settings of the team."""
        return self.edit(LevelSettings())


class MemberBody(LevelBody):
    """Settings that a member has in addition to those of a team."""

    role: MemberRole = "developer"
    team_id: TeamId | None = Field(
        None, description="team for those of the member's keys that have no team"
    )
    email: Annotated[str, Field(min_length=1, max_length=254)] | None = None
    disabled: bool = Field(
        False, description="true refuses the member's keys and sessions within five seconds"
    )


class MemberChangeBody(MemberBody):
    """Changes to a member. Fields that are left out do not change, and null removes a limit."""


class NewMemberBody(MemberBody):
    """A member to add."""

    id: MemberId = Field(description="never changes, and is never reused; may be an e-mail address")

    def settings(self) -> MemberSettings:
        """Return the settings of the member."""
        return self.edit(MemberSettings())


class TeamObject(SpendingObject):
    """A team with its limits and their remaining amounts."""

    id: str
    display_name: str | None
    created_at: datetime
    deleted_at: datetime | None = Field(description="null while the team exists")

    @classmethod
    def of(cls, team: Team) -> "TeamObject":
        """Build the object from a stored team."""
        return cls(
            id=team.id,
            display_name=team.display_name,
            created_at=moment(team.created_s),
            deleted_at=moment_or_none(team.deleted_s),
            **spending_fields(team, team.spending),
        )


class MemberObject(SpendingObject):
    """A member with its limits and their remaining amounts."""

    id: str
    display_name: str | None
    role: MemberRole
    team_id: str | None
    email: str | None
    disabled: bool = Field(description="whether the member's keys and sessions are refused")
    created_at: datetime
    removed_at: datetime | None = Field(description="null while the member exists")
    signs_in: bool = Field(description="whether an identity has signed in as this member")

    @classmethod
    def of(cls, member: Member) -> "MemberObject":
        """Build the object from a stored member."""
        return cls(
            id=member.id,
            display_name=member.display_name,
            role=member.role,
            team_id=member.team_id,
            email=member.email,
            disabled=member.disabled,
            created_at=moment(member.created_s),
            removed_at=moment_or_none(member.removed_s),
            signs_in=member.subject is not None,
            **spending_fields(member, member.spending),
        )


class MembersQuery(BaseModel):
    """A filter for members, and the page to return."""

    model_config = ConfigDict(extra="ignore")

    team: Annotated[str, Field(max_length=64)] | None = Field(None, description="id of a team")
    removed: bool = Field(False, description="true lists removed members as well")
    cursor: Annotated[str, Field(max_length=128)] | None = Field(
        None, description="the `next_cursor` of the previous page"
    )
    limit: Annotated[int, Field(ge=1, le=PEOPLE_PAGE_MAX)] = PEOPLE_PAGE_MAX

    def accepts(self, member: Member) -> bool:
        """Return whether the filter includes a member."""
        return self.team in (None, member.team_id) and (self.removed or member.removed_s is None)


class TeamReply(BaseModel):
    """One team."""

    data: TeamObject


class TeamsReply(BaseModel):
    """Teams by id; `next_cursor` is the `cursor` of the next page."""

    data: list[TeamObject]
    next_cursor: str | None
    unreadable: Unreadable


class DeletedTeamReply(BaseModel):
    """A team that was deleted."""

    id: str
    deleted: Literal[True] = True


class MemberReply(BaseModel):
    """One member."""

    data: MemberObject


class MembersReply(BaseModel):
    """Members by id; `next_cursor` is the `cursor` of the next page."""

    data: list[MemberObject]
    next_cursor: str | None
    unreadable: Unreadable


class RemovedMemberReply(BaseModel):
    """A member that was removed, whose keys and sessions are refused within five seconds."""

    id: str
    removed: bool = Field(description="false if the member was removed before")
