"""Credit: read with a management key, changed by the operator's."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query

from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.ids import is_id, without_prefix
from tollgate.core.money import nano_usd, usd_text
from tollgate.core.principal import Principal
from tollgate.stores.administration import ENTRIES_PAGE_MAX, CreditEntry, EntryKind
from tollgate.web.credit_shapes import (
    AdjustmentBody,
    CreditsObject,
    CreditsReply,
    EntriesReply,
    EntryObject,
    GrantBody,
    GrantReply,
    RefundBody,
)
from tollgate.web.services import Services


def credit_routes(services: Services) -> APIRouter:
    """`/v1/credits`."""
    router = APIRouter(prefix="/v1", tags=["credits"])
    administrator = Annotated[Principal, Depends(services.administrator)]
    operator = Annotated[Principal, Depends(services.operator)]

    @router.get("/credits")
    async def show_credits(principal: administrator) -> CreditsReply:
        """What was granted, what is spent, held and available."""
        balance = await services.credits.balance(principal.workspace_id)
        return CreditsReply(data=CreditsObject.of(balance))

    @router.get("/credits/ledger")
    async def list_entries(
        principal: administrator,
        cursor: str | None = None,
        limit: Annotated[int, Query(ge=1, le=ENTRIES_PAGE_MAX)] = ENTRIES_PAGE_MAX,
    ) -> EntriesReply:
        """Grants, adjustments and refunds, latest first."""
        page = await services.credits.entries(principal.workspace_id, after=cursor, limit=limit)
        return EntriesReply(
            data=[EntryObject.of(entry) for entry in page.found],
            next_cursor=page.next,
            unreadable=list(page.unreadable),
        )

    @router.post("/credits/grants")
    async def grant_credits(principal: operator, body: GrantBody) -> GrantReply:
        """Add credit; repeating a grant's id adds nothing."""
        return await _enter("grant", body.workspace_id or principal.workspace_id, body)

    @router.post("/credits/adjustments")
    async def adjust_credits(principal: operator, body: AdjustmentBody) -> GrantReply:
        """Add credit or take it back; repeating an adjustment's id changes nothing."""
        if not body.amount:
            raise RequestError(
                ErrorCode.INVALID_REQUEST, "An adjustment is not zero.", param="amount"
            )
        return await _enter("adjustment", body.workspace_id or principal.workspace_id, body)

    @router.post("/credits/refunds")
    async def refund_generation(principal: operator, body: RefundBody) -> GrantReply:
        """Give back what a generation cost; each generation is refunded once."""
        workspace_id = body.workspace_id or principal.workspace_id
        return await _write(await _refund(services, workspace_id, body))

    async def _enter(
        kind: EntryKind, workspace_id: str, body: GrantBody | AdjustmentBody
    ) -> GrantReply:
        return await _write(
            CreditEntry(
                id=body.id,
                workspace_id=workspace_id,
                kind=kind,
                amount_nano_usd=nano_usd(body.amount),
                note=body.note,
                created_s=services.now_s(),
            )
        )

    async def _write(entry: CreditEntry) -> GrantReply:
        written = await services.credits.enter(entry)
        if not written:
            _check_same(entry, await services.credits.entry(entry.workspace_id, entry.id))
        balance = await services.credits.balance(entry.workspace_id)
        return GrantReply(data=CreditsObject.of(balance), granted=written)

    return router


def _check_same(asked: CreditEntry, written: CreditEntry | None) -> None:
    """An id that is used again must mean the same entry; its note may be worded anew."""
    if written is None:
        return
    if (asked.kind, asked.amount_nano_usd) != (written.kind, written.amount_nano_usd):
        raise RequestError(
            ErrorCode.IDEMPOTENCY_MISMATCH,
            f"{asked.id} names a {written.kind} of ${usd_text(written.amount_nano_usd)} that was "
            "written before; nothing was added.",
            param="id",
        )


async def _refund(services: Services, workspace_id: str, body: RefundBody) -> CreditEntry:
    """The entry that gives back a generation's cost, or less; its id makes it single."""
    bare = without_prefix(body.generation_id)
    record = await services.generations.get(workspace_id, bare) if is_id(bare) else None
    if record is None:
        raise RequestError(
            ErrorCode.NOT_FOUND, "There is no such generation.", param="generation_id"
        )
    cost = record.cost_nano_usd
    amount = cost if body.amount is None else nano_usd(body.amount)
    if not 0 < amount <= cost:
        raise RequestError(ErrorCode.INVALID_REQUEST, "It did not cost that much.", param="amount")
    return CreditEntry(
        id=f"refund:{bare}",
        workspace_id=workspace_id,
        kind="refund",
        amount_nano_usd=amount,
        note=body.note,
        created_s=services.now_s(),
        generation_id=bare,
    )
