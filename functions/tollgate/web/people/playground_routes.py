"""Routes of playground secrets, with which the console generates answers."""

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from tollgate.web.access import presented_secret
from tollgate.web.admission import By, Caller, admitted_router
from tollgate.web.services import Services


class PlaygroundReply(BaseModel):
    """A playground secret, which is shown only once."""

    key: str
    expires_in: int = Field(description="seconds")


class ClosedPlaygroundReply(BaseModel):
    """The confirmation that a playground secret has ended."""

    closed: bool = True


def playground_routes(services: Services) -> APIRouter:
    """Return the routes of `/v1/playground`."""
    router = admitted_router(services, prefix="/v1", tag="people")

    @router.post("/playground", status_code=201)
    async def open_playground(request: Request, principal: Caller, by: By) -> PlaygroundReply:
        """Open a playground: return a secret that only generates answers, for 15 minutes.

        The caller's key pays, within all of its limits, and records have the source
        `playground`. The secret ends with the session or key of the caller.
        """
        opened = await services.playgrounds.open(
            presented_secret(request.headers), principal, by=by
        )
        return PlaygroundReply(
            key=opened.secret, expires_in=max(0, opened.expires_s - int(services.clock.now_s()))
        )

    @router.delete("/playground")
    async def close_playground(request: Request) -> ClosedPlaygroundReply:
        """End the playground secret with which the request is sent."""
        await services.playgrounds.close(presented_secret(request.headers))
        return ClosedPlaygroundReply()

    return router
