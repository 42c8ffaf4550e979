"""Workspaces: made, locked and budgeted by the operator."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query

from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.principal import Principal
from tollgate.stores.administration import WORKSPACES_PAGE_MAX, WorkspaceSettings
from tollgate.web.credit_shapes import (
    CreditsObject,
    CreditsReply,
    NewWorkspaceBody,
    WorkspaceChangeBody,
    WorkspaceObject,
    WorkspaceReply,
    WorkspacesReply,
)
from tollgate.web.key_shapes import NewKeyBody, NewKeyReply
from tollgate.web.services import Services


def workspace_routes(services: Services) -> APIRouter:
    """`/v1/workspaces`."""
    router = APIRouter(prefix="/v1", tags=["workspaces"])
    operator = Annotated[Principal, Depends(services.operator)]

    @router.post("/workspaces", status_code=201)
    async def create_workspace(_: operator, body: NewWorkspaceBody) -> WorkspaceReply:
        """Create a workspace, without credit and without keys."""
        workspace = await services.workspaces.create(body.id, body.edit(WorkspaceSettings()))
        if workspace is None:
            raise RequestError(
                ErrorCode.INVALID_REQUEST, f"There is a workspace {body.id} already.", param="id"
            )
        return WorkspaceReply(data=WorkspaceObject.of(workspace))

    @router.get("/workspaces")
    async def list_workspaces(
        _: operator,
        cursor: str | None = None,
        limit: Annotated[int, Query(ge=1, le=WORKSPACES_PAGE_MAX)] = WORKSPACES_PAGE_MAX,
    ) -> WorkspacesReply:
        """Workspaces by name."""
        page = await services.workspaces.list(after=cursor, limit=limit)
        return WorkspacesReply(
            data=[WorkspaceObject.of(workspace) for workspace in page.found],
            next_cursor=page.next,
            unreadable=list(page.unreadable),
        )

    @router.get("/workspaces/{workspace_id}")
    async def show_workspace(_: operator, workspace_id: str) -> WorkspaceReply:
        """One workspace."""
        return WorkspaceReply(data=await _there(workspace_id))

    @router.patch("/workspaces/{workspace_id}")
    async def change_workspace(
        _: operator, workspace_id: str, body: WorkspaceChangeBody
    ) -> WorkspaceReply:
        """Change a workspace; one that is locked holds nothing from its next request on."""
        await services.workspaces.change(workspace_id, body.edit)
        if body.locked is not None:
            await services.workspaces.set_locked(workspace_id, locked=body.locked)
        return WorkspaceReply(data=await _there(workspace_id))

    @router.get("/workspaces/{workspace_id}/credits")
    async def show_workspace_credits(_: operator, workspace_id: str) -> CreditsReply:
        """What a workspace was granted, what is spent, held and available."""
        await _there(workspace_id)
        balance = await services.credits.balance(workspace_id)
        return CreditsReply(data=CreditsObject.of(balance))

    @router.post("/workspaces/{workspace_id}/keys", status_code=201)
    async def create_workspace_key(_: operator, workspace_id: str, body: NewKeyBody) -> NewKeyReply:
        """Create a key in a workspace, its first management key for one."""
        new = body.new_key(workspace_id, await services.key_tiers())
        services.check_content_days(new.content_days)
        await _there(workspace_id)
        return NewKeyReply.of(await services.keys.create(new))

    async def _there(workspace_id: str) -> WorkspaceObject:
        workspace = await services.workspaces.get(workspace_id)
        if workspace is None:
            raise RequestError(
                ErrorCode.NOT_FOUND,
                f"There is no workspace {workspace_id!r}.",
                param="workspace_id",
            )
        return WorkspaceObject.of(workspace)

    return router
