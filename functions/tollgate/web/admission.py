"""Routes that authenticate the caller by the access table before they read a body."""

from collections.abc import Callable, Coroutine
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Request, Response
from fastapi.routing import APIRoute
from starlette.types import Message, Receive
from typing_extensions import override

from tollgate.core.principal import Principal
from tollgate.core.records.audit import Actor
from tollgate.web.access import ACCESS, Access
from tollgate.web.http.reply import read_body
from tollgate.web.http.request_id import request_id_of
from tollgate.web.own import Own
from tollgate.web.services import Services

BODY_BYTES_MAX: Final = 1_000_000
_PRINCIPAL: Final = "tollgate.principal"
_OWN: Final = "tollgate.own"
_WITH_BODY: Final = frozenset({"PATCH", "POST", "PUT"})


def admitted_router(
    services: Services, *, prefix: str, tag: str, body_bytes_max: int = BODY_BYTES_MAX
) -> APIRouter:
    """Return a router whose routes serve only the callers that the access table lists.

    Declaring a route that is not in the table raises KeyError. FastAPI parses a body before it
    calls dependencies, so authentication in a dependency would come too late.
    """

    class AdmittedRoute(APIRoute):
        """A route that authenticates first, and then reads the body up to its limit."""

        @override
        def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
            handle = super().get_route_handler()
            [method] = self.methods or set()
            access = ACCESS[method, self.path_format]

            async def admit(request: Request) -> Response:
                principal = await services.admit(request.headers, access)
                request.scope[_PRINCIPAL] = principal
                if principal is not None:
                    request.scope[_OWN] = _own_of(principal, access)
                if method not in _WITH_BODY:
                    return await handle(request)
                body = await read_body(request.receive, body_bytes_max)
                return await handle(Request(request.scope, _receive_again(body, request.receive)))

            return admit

    return APIRouter(prefix=prefix, tags=[tag], route_class=AdmittedRoute)


async def _optional_caller(request: Request) -> Principal | None:
    principal: Principal | None = request.scope[_PRINCIPAL]
    return principal


async def _caller(request: Request) -> Principal:
    principal: Principal = request.scope[_PRINCIPAL]
    return principal


Caller = Annotated[Principal, Depends(_caller)]


def _own_of(principal: Principal, access: Access) -> Own:
    """Return the part of the workspace that a caller reaches on a route."""
    if not access.is_limited(principal):
        return Own(workspace_id=principal.workspace_id)
    return Own(
        workspace_id=principal.workspace_id,
        member_id=principal.member_id,
        team_id=principal.team_id,
    )


async def _own(request: Request) -> Own:
    own: Own = request.scope[_OWN]
    return own


# The part of the workspace that the caller reaches on this route.
OwnThings = Annotated[Own, Depends(_own)]


async def _actor(request: Request, principal: Caller) -> Actor:
    return Actor(
        kind="session" if principal.session else "key",
        id=principal.key_id,
        name=principal.label,
        workspace_id=principal.workspace_id,
        member_id=principal.member_id,
        origin=request.client.host if request.client else None,
        request_id=request_id_of(request.scope),
    )


# The caller, as the actor of a change.
By = Annotated[Actor, Depends(_actor)]
OptionalCaller = Annotated[Principal | None, Depends(_optional_caller)]


def _receive_again(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that first returns a body that was read already, and then the messages
    after the body.
    """
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def next_message() -> Message:
        return messages.pop() if messages else await receive()

    return next_message
