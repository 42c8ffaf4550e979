"""Routes for members, who are people of a workspace with a role and limits."""

from typing import Annotated

from fastapi import APIRouter, Query
from msgspec.structs import replace

from tollgate.core.errors import RequestError, invalid_request, not_found, permission_denied
from tollgate.core.principal import MemberRole, Principal
from tollgate.core.records.audit import Actor
from tollgate.stores.ports.people import Member
from tollgate.stores.rules.level_settings import MemberSettings
from tollgate.web.access import GIVEN_ROLES, OWN_MEMBER_SETTINGS
from tollgate.web.admission import By, Caller, OwnThings, admitted_router
from tollgate.web.own import Own
from tollgate.web.people.people_shapes import (
    MemberChangeBody,
    MemberObject,
    MemberReply,
    MembersQuery,
    MembersReply,
    NewMemberBody,
    RemovedMemberReply,
)
from tollgate.web.services import Services


def member_routes(services: Services) -> APIRouter:
    """Return the routes below `/v1/members`."""
    router = admitted_router(services, prefix="/v1", tag="people")

    @router.post("/members", status_code=201)
    async def create_member(principal: Caller, by: By, body: NewMemberBody) -> MemberReply:
        """Add a member; the id never changes and is never reused."""
        check_role(body.role, principal)
        return await _create(services, principal.workspace_id, body, by)

    @router.get("/members")
    async def list_members(
        own: OwnThings, wanted: Annotated[MembersQuery, Query()]
    ) -> MembersReply:
        """List the members by id, with the remaining amounts of their limits.

        A page may have fewer members than its limit, even none, while there is a next page.
        """
        return await _list(services, own, wanted)

    @router.get("/members/{member_id}")
    async def show_member(own: OwnThings, member_id: str) -> MemberReply:
        """Show a member, removed or not."""
        member: Member | None = None
        if own.has_member(member_id):
            member = await services.members.get(own.workspace_id, member_id)
        if member is None:
            raise _no_such_member()
        return MemberReply(data=MemberObject.of(member))

    @router.patch("/members/{member_id}")
    async def change_member(
        principal: Caller, by: By, member_id: str, body: MemberChangeBody
    ) -> MemberReply:
        """Change a member; role and limits take effect everywhere within five seconds.

        Only an owner may change owners. Members who are not owners may not change their own role
        and limits.
        """
        return await _change(
            services, principal.workspace_id, member_id, body, by=by, principal=principal
        )

    @router.delete("/members/{member_id}")
    async def remove_member(principal: Caller, by: By, member_id: str) -> RemovedMemberReply:
        """Remove a member, whose keys and sessions are refused everywhere within five seconds."""
        member = await services.members.get(principal.workspace_id, member_id)
        if member is None:
            raise _no_such_member()
        check_role(member.role, principal)
        removed = await services.members.remove(principal.workspace_id, member_id, by=by)
        return RemovedMemberReply(id=member_id, removed=bool(removed))

    return router


def workspace_member_routes(services: Services) -> APIRouter:
    """Return the routes by which the operator administers the members of every workspace."""
    router = admitted_router(services, prefix="/v1", tag="workspaces")

    @router.post("/workspaces/{workspace_id}/members", status_code=201)
    async def create_workspace_member(
        by: By, workspace_id: str, body: NewMemberBody
    ) -> MemberReply:
        """Add a member to a workspace, such as its first owner."""
        await services.find_workspace(workspace_id)
        return await _create(services, workspace_id, body, by)

    @router.get("/workspaces/{workspace_id}/members")
    async def list_workspace_members(
        workspace_id: str, wanted: Annotated[MembersQuery, Query()]
    ) -> MembersReply:
        """List the members of a workspace by id."""
        await services.find_workspace(workspace_id)
        return await _list(services, Own(workspace_id=workspace_id), wanted)

    @router.patch("/workspaces/{workspace_id}/members/{member_id}")
    async def change_workspace_member(
        by: By, workspace_id: str, member_id: str, body: MemberChangeBody
    ) -> MemberReply:
        """Change a member of a workspace, like the workspace's owners."""
        await services.find_workspace(workspace_id)
        return await _change(services, workspace_id, member_id, body, by=by, principal=None)

    return router


async def _create(
    services: Services, workspace_id: str, body: NewMemberBody, by: Actor
) -> MemberReply:
    body.check_tier(await services.key_tiers())
    member = await services.members.create(workspace_id, body.id, body.settings(), by=by)
    if member is None:
        raise invalid_request(f"A member {body.id} exists or existed.", "id")
    return MemberReply(data=MemberObject.of(member))


async def _list(services: Services, own: Own, wanted: MembersQuery) -> MembersReply:
    page = await services.members.list(own.workspace_id, after=wanted.cursor, limit=wanted.limit)
    return MembersReply(
        data=[
            MemberObject.of(member)
            for member in page.found
            if own.has_member(member.id) and wanted.accepts(member)
        ],
        next_cursor=page.next,
        unreadable=list(page.unreadable),
    )


async def _change(
    services: Services,
    workspace_id: str,
    member_id: str,
    body: MemberChangeBody,
    *,
    by: Actor,
    principal: Principal | None,
) -> MemberReply:
    """Change a member; `principal` is None for the operator."""
    body.check_tier(await services.key_tiers())

    def edit(settings: MemberSettings) -> MemberSettings:
        new = body.edit(settings)
        if principal is not None:
            _check_member_change(member_id, settings, new, principal)
        return new

    member = await services.members.change(workspace_id, member_id, edit, by=by)
    if member is None:
        raise _no_such_member()
    return MemberReply(data=MemberObject.of(member))


def check_role(role: MemberRole, principal: Principal) -> None:
    """Raise AccessError unless the caller may give and take away this role."""
    if role not in GIVEN_ROLES.get(principal.role, ()):
        raise permission_denied(
            "Only an owner or the operator may add and change owners."
            if role == "owner"
            else f"A {principal.role} may not give the role {role}.",
            "role",
        )


def _check_member_change(
    member_id: str, old: MemberSettings, new: MemberSettings, principal: Principal
) -> None:
    """Raise AccessError unless the caller may change a member in this way.

    Members other than owners may change only their own display name and e-mail address.
    """
    check_role(old.role, principal)
    check_role(new.role, principal)
    if principal.member_id != member_id or principal.role == "owner":
        return
    if replace(new, **{name: getattr(old, name) for name in OWN_MEMBER_SETTINGS}) != old:
        raise permission_denied("You may not change your own role, team or limits.", "member_id")


def _no_such_member() -> RequestError:
    return not_found("There is no such member in this workspace.", "member_id")
