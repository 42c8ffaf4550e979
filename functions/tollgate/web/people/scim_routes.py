"""Routes of SCIM 2.0, through which an identity provider disables and enables members."""

from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Response
from msgspec.structs import replace

from tollgate.core.errors import RequestError, not_found
from tollgate.core.principal import Principal
from tollgate.core.records.audit import Actor
from tollgate.stores.ports.people import Member
from tollgate.stores.rules.level_settings import MemberSettings
from tollgate.web.admission import By, Caller, admitted_router
from tollgate.web.http.paths import SCIM_JSON
from tollgate.web.people.member_routes import check_role
from tollgate.web.people.scim_shapes import (
    ScimPatchBody,
    ScimReply,
    ScimUser,
    ScimUserBody,
    ScimUsers,
    named_user,
    scim_conflict,
)
from tollgate.web.services import Services

_PAGE_MAX = 100
_CONFLICT: Final[dict[str, Any]] = {
    "description": "A user of this name exists or existed.",
    "content": {SCIM_JSON: {"schema": {"type": "object"}}},
}
_Count = Annotated[int, Query(ge=0)]


def scim_routes(services: Services) -> APIRouter:
    """Return the routes below `/v1/scim/v2/Users`."""
    router = admitted_router(services, prefix="/v1/scim/v2", tag="people")

    @router.get("/Users", response_class=ScimReply)
    async def list_users(
        principal: Caller,
        filter: Annotated[str | None, Query(max_length=300)] = None,  # noqa: A002 - RFC 7644
        startIndex: _Count = 1,  # noqa: N803 - RFC 7644
        count: _Count = _PAGE_MAX,
    ) -> ScimUsers:
        """List the members of the workspace, or the one that a filter names."""
        found = await _all(services, principal.workspace_id)
        if filter is not None:
            name = named_user(filter).lower()
            found = [it for it in found if name in (it.id.lower(), (it.email or "").lower())]
        start = max(startIndex, 1)
        page = found[start - 1 :][: min(count, _PAGE_MAX)]
        return ScimUsers(
            totalResults=len(found),
            startIndex=start,
            itemsPerPage=len(page),
            Resources=[ScimUser.of(member) for member in page],
        )

    @router.get("/Users/{member_id}", response_class=ScimReply)
    async def show_user(principal: Caller, member_id: str) -> ScimUser:
        """Show a member."""
        member = await services.members.get(principal.workspace_id, member_id)
        if member is None or member.removed_s is not None:
            raise _no_such_user()
        return ScimUser.of(member)

    @router.post(
        "/Users",
        status_code=201,
        response_class=ScimReply,
        response_model=ScimUser,
        responses={409: _CONFLICT},
    )
    async def create_user(principal: Caller, by: By, body: ScimUserBody) -> ScimUser | ScimReply:
        """Add a member as a viewer; the role is set by the sign-in file at the first sign-in."""
        new = body.settings()
        check_role(new.role, principal)
        member = await services.members.create(principal.workspace_id, body.userName, new, by=by)
        if member is None:
            return scim_conflict("A member of this name exists or existed.")
        return ScimUser.of(member)

    @router.patch("/Users/{member_id}", response_class=ScimReply)
    async def change_user(
        principal: Caller, by: By, member_id: str, body: ScimPatchBody
    ) -> ScimUser:
        """Disable or enable a member; every other attribute is read-only and ignored."""
        return await _turn(services, member_id, body.active(), principal=principal, by=by)

    @router.put("/Users/{member_id}", response_class=ScimReply)
    async def replace_user(
        principal: Caller, by: By, member_id: str, body: ScimUserBody
    ) -> ScimUser:
        """Disable or enable a member; every other attribute is read-only and ignored."""
        return await _turn(services, member_id, body.active, principal=principal, by=by)

    @router.delete("/Users/{member_id}", status_code=204)
    async def delete_user(principal: Caller, by: By, member_id: str) -> Response:
        """Disable a member: records and spending stay, and an admin may remove the member."""
        await _turn(services, member_id, active=False, principal=principal, by=by)
        return Response(status_code=204)

    return router


async def _all(services: Services, workspace_id: str) -> list[Member]:
    members: list[Member] = []
    after: str | None = None
    while True:
        page = await services.members.list(workspace_id, after=after)
        members += (member for member in page.found if member.removed_s is None)
        after = page.next
        if after is None:
            return members


async def _turn(
    services: Services, member_id: str, active: bool | None, *, principal: Principal, by: Actor
) -> ScimUser:
    """Disable or enable a member, unless `active` is None; return the member as a user."""

    def edit(settings: MemberSettings) -> MemberSettings:
        check_role(settings.role, principal)
        return settings if active is None else replace(settings, disabled=not active)

    member = await services.members.change(principal.workspace_id, member_id, edit, by=by)
    if member is None:
        raise _no_such_user()
    return ScimUser.of(member)


def _no_such_user() -> RequestError:
    return not_found("There is no such member in this workspace.", "id")
