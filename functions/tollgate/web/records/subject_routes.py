"""Routes of legal holds and erasures, of a workspace's owners and of the operator."""

from typing import Annotated

from fastapi import APIRouter, Query

from tollgate.core.errors import invalid_request, not_found, permission_denied
from tollgate.core.records.audit import Actor
from tollgate.core.records.subjects import LegalHold, PrivacySubject
from tollgate.web.admission import By, Caller, admitted_router
from tollgate.web.records.subject_shapes import (
    ErasureObject,
    ErasureReply,
    ErasuresQuery,
    ErasuresReply,
    HoldObject,
    HoldReply,
    HoldsReply,
    NewHoldBody,
    ReleasedHoldReply,
    SubjectBody,
)
from tollgate.web.services import Services


def subject_routes(services: Services) -> APIRouter:
    """Return the routes below `/v1/holds` and `/v1/erasures`."""
    router = admitted_router(services, prefix="/v1", tag="personal data")

    @router.get("/holds")
    async def list_holds(principal: Caller) -> HoldsReply:
        """List the legal holds of this workspace."""
        return await _list_holds(services, principal.workspace_id)

    @router.post("/holds", status_code=201)
    async def place_hold(principal: Caller, by: By, body: NewHoldBody) -> HoldReply:
        """Place a legal hold on an end user, a member, or the whole workspace."""
        return await _place(services, principal.workspace_id, body, by)

    @router.delete("/holds/{hold_id}")
    async def release_hold(principal: Caller, by: By, hold_id: str) -> ReleasedHoldReply:
        """Release a legal hold, unless the operator has placed it."""
        return await _release(services, principal.workspace_id, hold_id, by)

    @router.get("/erasures")
    async def list_erasures(
        principal: Caller, wanted: Annotated[ErasuresQuery, Query()]
    ) -> ErasuresReply:
        """List the erasures of this workspace; a finished one is its proof."""
        return await _list_erasures(services, principal.workspace_id, wanted)

    @router.post("/erasures", status_code=201)
    async def request_erasure(principal: Caller, by: By, body: SubjectBody) -> ErasureReply:
        """Request the erasure of an end user, or of a member who was removed.

        The operator's next rounds carry it out; only the operator erases a workspace.
        """
        if body.kind == "workspace":
            raise permission_denied("Only the operator may erase a workspace.", "kind")
        return await _request(services, body.subject(principal.workspace_id), by)

    return router


def workspace_subject_routes(services: Services) -> APIRouter:
    """Return the routes by which the operator holds and erases subjects of every workspace."""
    router = admitted_router(services, prefix="/v1", tag="workspaces")

    @router.get("/workspaces/{workspace_id}/holds")
    async def list_workspace_holds(workspace_id: str) -> HoldsReply:
        """List the legal holds of a workspace."""
        await services.find_workspace(workspace_id)
        return await _list_holds(services, workspace_id)

    @router.post("/workspaces/{workspace_id}/holds", status_code=201)
    async def place_workspace_hold(by: By, workspace_id: str, body: NewHoldBody) -> HoldReply:
        """Place a legal hold, which only the operator may release."""
        await services.find_workspace(workspace_id)
        return await _place(services, workspace_id, body, by, by_operator=True)

    @router.delete("/workspaces/{workspace_id}/holds/{hold_id}")
    async def release_workspace_hold(by: By, workspace_id: str, hold_id: str) -> ReleasedHoldReply:
        """Release a legal hold."""
        await services.find_workspace(workspace_id)
        return await _release(services, workspace_id, hold_id, by, by_operator=True)

    @router.get("/workspaces/{workspace_id}/erasures")
    async def list_workspace_erasures(
        workspace_id: str, wanted: Annotated[ErasuresQuery, Query()]
    ) -> ErasuresReply:
        """List the erasures of a workspace."""
        await services.find_workspace(workspace_id)
        return await _list_erasures(services, workspace_id, wanted)

    @router.post("/workspaces/{workspace_id}/erasures", status_code=201)
    async def request_workspace_erasure(
        by: By, workspace_id: str, body: SubjectBody
    ) -> ErasureReply:
        """Request the erasure of an end user, of a removed member, or of a locked workspace."""
        await services.find_workspace(workspace_id)
        return await _request(services, body.subject(workspace_id), by)

    return router


async def _list_holds(services: Services, workspace_id: str) -> HoldsReply:
    found = await services.subjects.holds(workspace_id)
    return HoldsReply(data=[HoldObject.of(held) for held in found])


async def _place(
    services: Services,
    workspace_id: str,
    body: NewHoldBody,
    by: Actor,
    *,
    by_operator: bool = False,
) -> HoldReply:
    held = LegalHold(
        subject=_checked(body.subject(workspace_id)),
        reason=body.reason,
        placed_s=services.now_s(),
        placed_by=by.id,
        by_operator=by_operator,
    )
    if not await services.subjects.hold(held, by=by):
        raise invalid_request("This is on legal hold already.", "id")
    return HoldReply(data=HoldObject.of(held))


async def _release(
    services: Services, workspace_id: str, hold_id: str, by: Actor, *, by_operator: bool = False
) -> ReleasedHoldReply:
    found = await services.subjects.holds(workspace_id)
    held = next((each for each in found if each.subject.place == hold_id), None)
    if held is not None and held.by_operator and not by_operator:
        raise permission_denied("Only the operator may release this hold.", "hold_id")
    if held is None or not await services.subjects.release(held, by=by):
        raise not_found("There is no such legal hold in this workspace.", "hold_id")
    return ReleasedHoldReply(id=hold_id)


async def _list_erasures(
    services: Services, workspace_id: str, wanted: ErasuresQuery
) -> ErasuresReply:
    page = await services.subjects.erasures(workspace_id, after=wanted.cursor, limit=wanted.limit)
    return ErasuresReply(
        data=[ErasureObject.of(erasure) for erasure in page.found],
        next_cursor=page.next,
        unreadable=list(page.unreadable),
    )


async def _request(services: Services, subject: PrivacySubject, by: Actor) -> ErasureReply:
    erasure = await services.subjects.request(_checked(subject), by=by)
    return ErasureReply(data=ErasureObject.of(erasure))


def _checked(subject: PrivacySubject) -> PrivacySubject:
    """Return a subject; raise RequestError for a workspace other than the subject's own."""
    if subject.kind == "workspace" and subject.id != subject.workspace_id:
        raise invalid_request("id must be the id of this workspace.", "id")
    return subject
