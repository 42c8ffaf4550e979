"""Routes for teams, which are groups of keys and members with shared limits."""

from typing import Annotated

from fastapi import APIRouter, Query

from tollgate.core.errors import ErrorCode, RequestError, invalid_request, not_found
from tollgate.stores.ports.people import PEOPLE_PAGE_MAX, Belongings, Team
from tollgate.web.admission import By, Caller, OwnThings, admitted_router
from tollgate.web.people.people_shapes import (
    DeletedTeamReply,
    NewTeamBody,
    TeamChangeBody,
    TeamObject,
    TeamReply,
    TeamsReply,
)
from tollgate.web.services import Services


def team_routes(services: Services) -> APIRouter:
    """Return the routes below `/v1/teams`."""
    router = admitted_router(services, prefix="/v1", tag="people")

    @router.post("/teams", status_code=201)
    async def create_team(principal: Caller, by: By, body: NewTeamBody) -> TeamReply:
        """Create a team; the id never changes and is never reused."""
        body.check_tier(await services.key_tiers())
        team = await services.teams.create(principal.workspace_id, body.id, body.settings(), by=by)
        if team is None:
            raise invalid_request(f"A team {body.id} exists or existed.", "id")
        return TeamReply(data=TeamObject.of(team))

    @router.get("/teams")
    async def list_teams(
        own: OwnThings,
        *,
        deleted: Annotated[bool, Query(description="true lists deleted teams as well")] = False,
        cursor: Annotated[str | None, Query(max_length=64)] = None,
        limit: Annotated[int, Query(ge=1, le=PEOPLE_PAGE_MAX)] = PEOPLE_PAGE_MAX,
    ) -> TeamsReply:
        """List the teams by id, with the remaining amounts of their limits.

        A page may have fewer teams than its limit, even none, while there is a next page.
        """
        page = await services.teams.list(own.workspace_id, after=cursor, limit=limit)
        found = [
            TeamObject.of(team)
            for team in page.found
            if own.has_team(team.id) and (deleted or team.deleted_s is None)
        ]
        return TeamsReply(data=found, next_cursor=page.next, unreadable=list(page.unreadable))

    @router.get("/teams/{team_id}")
    async def show_team(own: OwnThings, team_id: str) -> TeamReply:
        """Show a team, deleted or not."""
        team: Team | None = None
        if own.has_team(team_id):
            team = await services.teams.get(own.workspace_id, team_id)
        if team is None:
            raise _no_such_team()
        return TeamReply(data=TeamObject.of(team))

    @router.patch("/teams/{team_id}")
    async def change_team(
        principal: Caller, by: By, team_id: str, body: TeamChangeBody
    ) -> TeamReply:
        """Change a team; its limits apply everywhere within five seconds."""
        body.check_tier(await services.key_tiers())
        team = await services.teams.change(principal.workspace_id, team_id, body.edit, by=by)
        if team is None:
            raise _no_such_team()
        return TeamReply(data=TeamObject.of(team))

    @router.delete("/teams/{team_id}")
    async def delete_team(principal: Caller, by: By, team_id: str) -> DeletedTeamReply:
        """Delete a team; a team that has keys or members is refused with status 409."""
        left = await services.teams.delete(principal.workspace_id, team_id, by=by)
        if left is None:
            raise _no_such_team()
        if left.keys or left.members:
            raise _in_use(team_id, left)
        return DeletedTeamReply(id=team_id)

    return router


def _in_use(team_id: str, left: Belongings) -> RequestError:
    return RequestError(
        ErrorCode.TEAM_IN_USE,
        f"Team {team_id} is in use: keys {left.keys}, members {left.members}. Move them first.",
        param="team_id",
    )


def _no_such_team() -> RequestError:
    return not_found("There is no such team in this workspace.", "team_id")
