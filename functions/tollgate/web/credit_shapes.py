"""The bodies of the credit and workspace routes."""

from datetime import datetime
from decimal import Decimal
from typing import Annotated

from pydantic import BaseModel, Field

from tollgate.core.money import nano_usd, usd
from tollgate.core.principal import Admission
from tollgate.stores.administration import (
    Balance,
    CreditEntry,
    EntryKind,
    Workspace,
    WorkspaceSettings,
)
from tollgate.web.shapes import Body, PositiveUsd, Unreadable, Usd, moment

EntryId = Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[A-Za-z0-9._:-]+$")]
WorkspaceId = Annotated[
    str,
    Field(max_length=63, pattern=r"^[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?$", description="a slug"),
]


class EntryBody(Body):
    """What entries of the credit ledger have in common; the same `id` counts only once."""

    id: EntryId
    workspace_id: WorkspaceId | None = Field(None, description="null is the caller's own")
    note: Annotated[str, Field(max_length=200)] = ""


class GrantBody(EntryBody):
    """Credit to add."""

    amount: PositiveUsd


class AdjustmentBody(EntryBody):
    """Credit to add, or to take back where it is negative."""

    amount: Annotated[Decimal, Field(ge=-1_000_000, le=1_000_000, decimal_places=9)]


class RefundBody(Body):
    """A generation whose cost is given back, all of it unless `amount` says less; once only."""

    generation_id: Annotated[str, Field(max_length=64)]
    workspace_id: WorkspaceId | None = Field(None, description="null is the caller's own")
    amount: PositiveUsd | None = None
    note: Annotated[str, Field(max_length=200)] = ""


class CreditsObject(BaseModel):
    """A workspace's money in USD: total_credits = available + held + total_usage."""

    total_credits: Usd
    total_usage: Usd
    available: Usd
    held: Usd

    @classmethod
    def of(cls, balance: Balance) -> "CreditsObject":
        """The balance as it is shown."""
        return cls(
            total_credits=usd(balance.granted_nano_usd),
            total_usage=usd(balance.spent_nano_usd),
            available=usd(balance.available_nano_usd),
            held=usd(balance.held_nano_usd),
        )


class CreditsReply(BaseModel):
    """A workspace's money."""

    data: CreditsObject


class EntryObject(BaseModel):
    """An entry of the credit ledger; entries are never changed."""

    id: str
    type: EntryKind
    amount: Usd
    note: str
    created_at: datetime
    generation_id: str | None

    @classmethod
    def of(cls, entry: CreditEntry) -> "EntryObject":
        """The entry as it is shown."""
        return cls(
            id=entry.id,
            type=entry.kind,
            amount=usd(entry.amount_nano_usd),
            note=entry.note,
            created_at=moment(entry.created_s),
            generation_id=entry.generation_id and f"gen-{entry.generation_id}",
        )


class EntriesReply(BaseModel):
    """Entries, latest first; `next_cursor` asks for those before them."""

    data: list[EntryObject]
    next_cursor: str | None
    unreadable: Unreadable


class GrantReply(CreditsReply):
    """The money after an entry; `granted` is false if it had been written before."""

    granted: bool


class WorkspaceSettingsBody(Body):
    """What may be chosen of a workspace; fields that are left out stay."""

    admission: Admission | None = Field(None, description="null is the catalog's")
    budget: PositiveUsd | None = Field(None, description="USD per UTC month; null is none")
    pause_at_budget: bool = Field(False, description="lock the workspace when it is spent")

    def edit(self, settings: WorkspaceSettings) -> WorkspaceSettings:
        """The settings with what this changes."""
        sent = self.model_fields_set
        budget = None if self.budget is None else nano_usd(self.budget)
        return WorkspaceSettings(
            admission=self.admission if "admission" in sent else settings.admission,
            budget_nano_usd=budget if "budget" in sent else settings.budget_nano_usd,
            pause_at_budget=(
                self.pause_at_budget if "pause_at_budget" in sent else settings.pause_at_budget
            ),
        )


class NewWorkspaceBody(WorkspaceSettingsBody):
    """A workspace to create."""

    id: WorkspaceId


class WorkspaceChangeBody(WorkspaceSettingsBody):
    """What is to change of a workspace."""

    locked: bool | None = None


class WorkspaceObject(BaseModel):
    """A workspace; `locked` by an administrator, `paused` by its budget."""

    id: str
    created_at: datetime
    locked: bool
    paused: bool
    shards: int
    admission: Admission | None
    budget: Usd | None
    pause_at_budget: bool

    @classmethod
    def of(cls, workspace: Workspace) -> "WorkspaceObject":
        """The workspace as it is shown."""
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
        )


class WorkspaceReply(BaseModel):
    """One workspace."""

    data: WorkspaceObject


class WorkspacesReply(BaseModel):
    """Workspaces by name; `next_cursor` asks for those after them."""

    data: list[WorkspaceObject]
    next_cursor: str | None
    unreadable: Unreadable
