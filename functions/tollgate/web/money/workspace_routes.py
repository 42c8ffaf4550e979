"""Routes for workspaces, which the operator creates, locks and assigns budgets to."""

from datetime import datetime
from decimal import Decimal
from typing import Annotated

from fastapi import APIRouter, Query
from msgspec.structs import replace
from pydantic import BaseModel, Field

from tollgate.core.clock import DAY_S
from tollgate.core.errors import invalid_request
from tollgate.core.money.amounts import nano_usd, usd
from tollgate.core.principal import Admission, UsageOn
from tollgate.stores.ports.administration import WORKSPACES_PAGE_MAX, Workspace, WorkspaceSettings
from tollgate.stores.rules.key_age import KEY_DAYS_MAX
from tollgate.stores.rules.key_settings import NETWORKS_LENGTH_MAX, ContentDays
from tollgate.web.admission import By, Caller, admitted_router, refuse_lockout
from tollgate.web.files.file_shapes import EXPIRES_MAX_S
from tollgate.web.money.credit_shapes import CreditsObject, CreditsReply, WorkspaceId
from tollgate.web.services import Services
from tollgate.web.shapes import Body, PositiveUsd, Unreadable, Usd, moment


class WorkspaceSettingsBody(Body):
    """Settings of a workspace; omitted fields keep their value."""

    admission: Admission | None = Field(None, description="null applies the default of the catalog")
    budget: PositiveUsd | None = Field(None, description="USD per UTC month; null means no budget")
    pause_at_budget: bool = Field(False, description="refuse requests once the budget is spent")
    response_days: ContentDays | None = Field(
        None, description="days for which responses are stored; null stores none"
    )
    file_days: Annotated[int, Field(ge=1, le=EXPIRES_MAX_S // DAY_S)] | None = Field(
        None, description="days after which files expire by default; null keeps them"
    )
    allowed_ips: Annotated[str, Field(max_length=NETWORKS_LENGTH_MAX)] | None = Field(
        None,
        description="addresses and networks from which its keys and sessions may be used, "
        "separated by commas; null admits all",
    )
    key_days: Annotated[int, Field(ge=1, le=KEY_DAYS_MAX)] | None = Field(
        None, description="days after which the secret of a key is refused, unless it is rotated"
    )
    usage_on: UsageOn | None = Field(
        None,
        description="frame of chat streams that contains the usage, unless the key or request sets "
        "`usage_on`; null means `frame`",
    )

    def edit(self, settings: WorkspaceSettings) -> WorkspaceSettings:
        """Return settings with the sent fields replaced."""
        names = self.model_fields_set & set(WorkspaceSettings.__struct_fields__)
        changed = {name: getattr(self, name) for name in names}
        if "budget" in self.model_fields_set:
            changed["budget_nano_usd"] = None if self.budget is None else nano_usd(self.budget)
        return replace(settings, **changed)


class NewWorkspaceBody(WorkspaceSettingsBody):
    """A workspace to create."""

    id: WorkspaceId


class WorkspaceChangeBody(WorkspaceSettingsBody):
    """Changes to a workspace; omitted fields keep their value."""

    locked: bool | None = Field(None, description="refuse every request")
    credit_limit: Annotated[Decimal, Field(ge=0, le=1_000_000, decimal_places=9)] | None = Field(
        None, description="USD that the workspace may spend before paying; null lends nothing"
    )


class WorkspaceObject(BaseModel):
    """A workspace."""

    id: str
    created_at: datetime
    locked: bool = Field(description="locked by the operator")
    paused: bool = Field(description="paused because the budget is spent")
    shards: int = Field(description="parts of the wallet, for concurrent holds")
    admission: Admission | None
    budget: Usd | None
    pause_at_budget: bool
    response_days: int | None
    file_days: int | None
    allowed_ips: str | None
    key_days: int | None
    usage_on: UsageOn | None
    credit_limit: Usd = Field(description="lent by the operator")

    @classmethod
    def of(cls, workspace: Workspace) -> "WorkspaceObject":
        """Build the object from a stored workspace."""
        settings = workspace.settings
        budget = settings.budget_nano_usd
        return cls(
            id=workspace.id,
            created_at=moment(workspace.created_s),
            locked=workspace.locked,
            paused=workspace.paused,
            shards=workspace.shards,
            admission=settings.admission,
            budget=None if budget is None else usd(budget),
            pause_at_budget=settings.pause_at_budget,
            response_days=settings.response_days,
            file_days=settings.file_days,
            allowed_ips=settings.allowed_ips,
            key_days=settings.key_days,
            usage_on=settings.usage_on,
            credit_limit=usd(workspace.credit_limit_nano_usd),
        )


class WorkspaceReply(BaseModel):
    """One workspace."""

    data: WorkspaceObject


class WorkspacesReply(BaseModel):
    """Workspaces by name; `next_cursor` requests the next page."""

    data: list[WorkspaceObject]
    next_cursor: str | None
    unreadable: Unreadable


def workspace_routes(services: Services) -> APIRouter:
    """Return the routes `/v1/workspace` and below `/v1/workspaces`."""
    router = admitted_router(services, prefix="/v1", tag="workspaces")

    @router.get("/workspace")
    async def show_own_workspace(principal: Caller) -> WorkspaceReply:
        """Show the workspace of this key: its budget, and whether it is locked or paused."""
        found = await services.find_workspace(principal.workspace_id)
        return WorkspaceReply(data=WorkspaceObject.of(found))

    @router.post("/workspaces", status_code=201)
    async def create_workspace(by: By, body: NewWorkspaceBody) -> WorkspaceReply:
        """Create a workspace, without credit and without keys."""
        services.check_days({"response_days": body.response_days})
        workspace = await services.workspaces.create(body.id, body.edit(WorkspaceSettings()), by=by)
        if workspace is None:
            raise invalid_request(f"A workspace {body.id} exists already.", "id")
        return WorkspaceReply(data=WorkspaceObject.of(workspace))

    @router.get("/workspaces")
    async def list_workspaces(
        cursor: str | None = None,
        limit: Annotated[int, Query(ge=1, le=WORKSPACES_PAGE_MAX)] = WORKSPACES_PAGE_MAX,
    ) -> WorkspacesReply:
        """List workspaces by name."""
        page = await services.workspaces.list(after=cursor, limit=limit)
        return WorkspacesReply(
            data=[WorkspaceObject.of(workspace) for workspace in page.found],
            next_cursor=page.next,
            unreadable=list(page.unreadable),
        )

    @router.get("/workspaces/{workspace_id}")
    async def show_workspace(workspace_id: str) -> WorkspaceReply:
        """Show one workspace."""
        return WorkspaceReply(data=WorkspaceObject.of(await services.find_workspace(workspace_id)))

    @router.patch("/workspaces/{workspace_id}")
    async def change_workspace(
        by: By, workspace_id: str, body: WorkspaceChangeBody
    ) -> WorkspaceReply:
        """Change a workspace; a locked workspace is refused from its next request on.

        A credit limit lower than what is used or held is refused.
        """
        services.check_days({"response_days": body.response_days})
        if workspace_id == by.workspace_id:
            refuse_lockout(body.allowed_ips, by)
        if "credit_limit" in body.model_fields_set:
            limit = nano_usd(body.credit_limit or Decimal(0))
            await services.credits.set_credit_limit(workspace_id, limit, by=by)
        await services.workspaces.change(workspace_id, body.edit, by=by)
        if body.locked is not None:
            await services.workspaces.set_locked(workspace_id, locked=body.locked, by=by)
        return WorkspaceReply(data=WorkspaceObject.of(await services.find_workspace(workspace_id)))

    @router.get("/workspaces/{workspace_id}/credits")
    async def show_workspace_credits(workspace_id: str) -> CreditsReply:
        """Show the granted, spent, held and available amounts of a workspace."""
        await services.find_workspace(workspace_id)
        balance = await services.credits.balance(workspace_id)
        return CreditsReply(data=CreditsObject.of(balance))

    return router
