"""Routes for credit, which only the operator's management keys may change."""

from datetime import datetime
from decimal import Decimal
from typing import Annotated, Final

from fastapi import APIRouter, Query
from msgspec.structs import replace
from pydantic import BaseModel, Field

from tollgate.core.errors import ErrorCode, RequestError, invalid_request, not_found
from tollgate.core.ids import is_id, without_prefix
from tollgate.core.money.amounts import nano_usd, usd, usd_text
from tollgate.core.money.statement import UsageGroup
from tollgate.core.principal import GenerationSource, Principal
from tollgate.core.records.audit import Actor
from tollgate.stores.ports.credit import (
    ENTRIES_PAGE_MAX,
    REFUND_PREFIX,
    CreditEntry,
    EntryKind,
    refund_id,
)
from tollgate.web.admission import By, Caller, admitted_router
from tollgate.web.money.credit_shapes import CreditsObject, CreditsReply, WorkspaceId
from tollgate.web.services import Services
from tollgate.web.shapes import Body, Moment, PositiveUsd, Unreadable, Usd, moment, moment_or_none

EntryId = Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[A-Za-z0-9._:-]+$")]
# Prefixes of ids that the gateway assigns itself.
_RESERVED: Final = (REFUND_PREFIX, "expiry:", "credit_line:")


class EntryBody(Body):
    """Fields that grants, payments and adjustments share; each `id` is booked only once."""

    id: EntryId
    workspace_id: WorkspaceId | None = Field(None, description="null means the caller's workspace")
    note: Annotated[str, Field(max_length=200)] = ""


class GrantBody(EntryBody):
    """Credit to add."""

    amount: PositiveUsd
    expires_at: Moment | None = Field(
        None, description="time at which the rest expires; such credit is spent before other credit"
    )


class PaymentBody(EntryBody):
    """Credit that was paid for."""

    amount: PositiveUsd


class AdjustmentBody(EntryBody):
    """Credit to add, or to take back if `amount` is negative."""

    amount: Annotated[Decimal, Field(ge=-1_000_000, le=1_000_000, decimal_places=9)]


class RefundBody(Body):
    """A generation to refund; each generation is refunded once."""

    generation_id: Annotated[str, Field(max_length=64)]
    workspace_id: WorkspaceId | None = Field(None, description="null means the caller's workspace")
    amount: PositiveUsd | None = Field(None, description="at most the cost; null refunds all")
    note: Annotated[str, Field(max_length=200)] = ""


class RefundedUsage(BaseModel):
    """The team, member, model, provider and source of a refunded generation."""

    team: str | None
    member: str | None
    model: str | None
    provider_name: str | None
    source: GenerationSource | None

    @classmethod
    def of(cls, group: UsageGroup) -> "RefundedUsage":
        """Build the object from the group of the refunded generation."""
        return cls(
            team=group.team,
            member=group.member,
            model=group.model,
            provider_name=group.provider,
            source=group.source,
        )


class EntryObject(BaseModel):
    """An entry of the credit ledger. Entries never change."""

    id: str
    type: EntryKind
    amount: Usd
    note: str
    created_at: datetime
    generation_id: str | None
    expires_at: datetime | None
    refunded: RefundedUsage | None = Field(description="null unless the entry is a refund")

    @classmethod
    def of(cls, entry: CreditEntry) -> "EntryObject":
        """Build the object from a stored entry."""
        return cls(
            id=entry.id,
            type=entry.kind,
            amount=usd(entry.amount_nano_usd),
            note=entry.note,
            created_at=moment(entry.created_s),
            generation_id=entry.generation_id and f"gen-{entry.generation_id}",
            expires_at=moment_or_none(entry.expires_s),
            refunded=None if entry.refunded is None else RefundedUsage.of(entry.refunded),
        )


class EntriesReply(BaseModel):
    """Entries, latest first; `next_cursor` requests the next page."""

    data: list[EntryObject]
    next_cursor: str | None
    unreadable: Unreadable


class GrantReply(CreditsReply):
    """The balance after an entry."""

    granted: bool = Field(description="false if the entry had been written before")


def credit_routes(services: Services) -> APIRouter:
    """Return the routes below `/v1/credits`."""
    router = admitted_router(services, prefix="/v1", tag="credits")

    @router.get("/credits")
    async def show_credits(principal: Caller) -> CreditsReply:
        """Show the amounts that are granted, spent, held and available."""
        balance = await services.credits.balance(principal.workspace_id)
        return CreditsReply(data=CreditsObject.of(balance))

    @router.get("/credits/ledger")
    async def list_entries(
        principal: Caller,
        cursor: str | None = None,
        limit: Annotated[int, Query(ge=1, le=ENTRIES_PAGE_MAX)] = ENTRIES_PAGE_MAX,
    ) -> EntriesReply:
        """List every entry, latest first."""
        page = await services.credits.entries(principal.workspace_id, after=cursor, limit=limit)
        return EntriesReply(
            data=[EntryObject.of(entry) for entry in page.found],
            next_cursor=page.next,
            unreadable=list(page.unreadable),
        )

    @router.post("/credits/grants")
    async def grant_credits(principal: Caller, by: By, body: GrantBody) -> GrantReply:
        """Add credit; repeating a grant's id adds nothing."""
        entry = await _new_entry(services, "grant", principal, body)
        if body.expires_at is not None:
            entry = replace(entry, expires_s=int(body.expires_at.timestamp()))
            await _check_expiry(services, entry)
        return await _write(entry, by)

    @router.post("/credits/payments")
    async def book_payment(principal: Caller, by: By, body: PaymentBody) -> GrantReply:
        """Add a payment, which also repays the used credit limit; repeating an id adds nothing."""
        return await _write(await _new_entry(services, "payment", principal, body), by)

    @router.post("/credits/adjustments")
    async def adjust_credits(principal: Caller, by: By, body: AdjustmentBody) -> GrantReply:
        """Add credit or take credit back; repeating an adjustment's id changes nothing."""
        if not body.amount:
            raise invalid_request("An adjustment must not be zero.", "amount")
        return await _write(await _new_entry(services, "adjustment", principal, body), by)

    @router.post("/credits/refunds")
    async def refund_generation(principal: Caller, by: By, body: RefundBody) -> GrantReply:
        """Refund the cost of a generation; each generation is refunded once."""
        workspace_id = body.workspace_id or principal.workspace_id
        return await _write(await _refund(services, workspace_id, body), by)

    async def _write(entry: CreditEntry, by: Actor) -> GrantReply:
        written = await services.credits.enter(entry, by=by)
        if not written:
            _check_same(entry, await services.credits.entry(entry.workspace_id, entry.id))
        balance = await services.credits.balance(entry.workspace_id)
        return GrantReply(data=CreditsObject.of(balance), granted=written)

    return router


async def _new_entry(
    services: Services,
    kind: EntryKind,
    principal: Principal,
    body: GrantBody | PaymentBody | AdjustmentBody,
) -> CreditEntry:
    """Return the entry that a body describes.

    Raises RequestError if the body names a workspace that does not exist, or an id that the gateway
    reserves for its own entries.
    """
    workspace_id = body.workspace_id or principal.workspace_id
    # This entry may create the caller's own workspace.
    if workspace_id != principal.workspace_id:
        await services.find_workspace(workspace_id)
    for prefix in _RESERVED:
        if body.id.startswith(prefix):
            raise invalid_request(f"Ids that begin with {prefix} are reserved.", "id")
    return CreditEntry(
        id=body.id,
        workspace_id=workspace_id,
        kind=kind,
        amount_nano_usd=nano_usd(body.amount),
        note=body.note,
        created_s=services.now_s(),
    )


async def _check_expiry(services: Services, entry: CreditEntry) -> None:
    """Raise RequestError if a new grant has already expired; a repeated grant may have expired."""
    if entry.expires_s is None or entry.expires_s > services.now_s():
        return
    if await services.credits.entry(entry.workspace_id, entry.id) is None:
        raise invalid_request("expires_at has passed.", "expires_at")


def _check_same(requested: CreditEntry, written: CreditEntry | None) -> None:
    """Raise RequestError if a repeated id names a different entry.

    Kind, amount and expiry must be the same; the note may differ.
    """
    if written is None:
        return
    compared_fields = ("kind", "amount_nano_usd", "expires_s")
    if any(getattr(requested, name) != getattr(written, name) for name in compared_fields):
        raise RequestError(
            ErrorCode.IDEMPOTENCY_MISMATCH,
            f"{requested.id} is the id of a {written.kind} of ${usd_text(written.amount_nano_usd)}"
            f"{_ends(written)} that exists already; nothing was added.",
            param="id",
        )


def _ends(entry: CreditEntry) -> str:
    return "" if entry.expires_s is None else f" until {moment(entry.expires_s):%Y-%m-%d %H:%M} UTC"


async def _refund(services: Services, workspace_id: str, body: RefundBody) -> CreditEntry:
    """Return the entry that refunds a generation; its id prevents a second refund.

    Raises RequestError if the generation does not exist, or if it cost less than `amount`.
    """
    bare = without_prefix(body.generation_id)
    record = await services.generations.get(workspace_id, bare) if is_id(bare) else None
    if record is None:
        raise not_found("There is no such generation.", "generation_id")
    cost = record.cost_nano_usd
    if not cost:
        raise invalid_request("This generation cost nothing.", "amount")
    amount = cost if body.amount is None else nano_usd(body.amount)
    if not 0 < amount <= cost:
        raise invalid_request("The refund is higher than the cost of the generation.", "amount")
    return CreditEntry(
        id=refund_id(bare),
        workspace_id=workspace_id,
        kind="refund",
        amount_nano_usd=amount,
        note=body.note,
        created_s=services.now_s(),
        generation_id=bare,
        refunded=UsageGroup.of(
            record.labels, record.model, record.provider, caller_labels=record.caller_labels
        ),
    )
