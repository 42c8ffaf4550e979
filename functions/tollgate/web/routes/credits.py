"""A workspace's money: shown and added with a management key."""

from typing import Annotated

from fastapi import APIRouter, Depends

from tollgate.core.money import nano_usd
from tollgate.core.principal import Principal
from tollgate.web.services import Services
from tollgate.web.shapes import CreditsObject, CreditsReply, GrantBody, GrantReply


def credit_routes(services: Services) -> APIRouter:
    """`/v1/credits`."""
    router = APIRouter(prefix="/v1", tags=["credits"])
    administrator = Annotated[Principal, Depends(services.administrator)]

    @router.get("/credits")
    async def show_credits(principal: administrator) -> CreditsReply:
        """What was granted, what is spent, held and available."""
        balance = await services.credits.balance(principal.workspace_id)
        return CreditsReply(data=CreditsObject.of(balance))

    @router.post("/credits/grants")
    async def grant_credits(principal: administrator, body: GrantBody) -> GrantReply:
        """Add credit; repeating a grant's id adds nothing."""
        granted = await services.credits.grant(
            principal.workspace_id, body.id, nano_usd(body.amount), body.note
        )
        balance = await services.credits.balance(principal.workspace_id)
        return GrantReply(data=CreditsObject.of(balance), granted=granted)

    return router
