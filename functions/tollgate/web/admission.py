"""Routes that authenticate the caller against the access table before reading a body."""

from collections.abc import Callable, Coroutine
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Request, Response
from fastapi.routing import APIRoute
from starlette.types import Message, Receive
from typing_extensions import override

from tollgate.core.errors import AccessError, invalid_request
from tollgate.core.networks import is_within, parse_networks
from tollgate.core.principal import Principal
from tollgate.core.records.audit import Actor
from tollgate.stores.rules.key_settings import check_networks
from tollgate.web.access import ACCESS, PRINCIPAL, Access, actor_of, note_refusal
from tollgate.web.http.reply import read_body
from tollgate.web.http.source_address import source_of
from tollgate.web.http.unknown_callers import pace_refusal
from tollgate.web.own import Own
from tollgate.web.services import Services

BODY_BYTES_MAX: Final = 1_000_000
_OWN: Final = "tollgate.own"
_WITH_BODY: Final = frozenset({"PATCH", "POST", "PUT"})


def admitted_router(
    services: Services, *, prefix: str, tag: str, body_bytes_max: int = BODY_BYTES_MAX
) -> APIRouter:
    """Return a router whose routes serve only the callers listed in the access table.

    Declaring a route that is not in the table raises KeyError. FastAPI parses a body before it
    calls dependencies, so authenticating in a dependency would be too late.
    """

    class AdmittedRoute(APIRoute):
        """A route that authenticates first, and only then reads the body, up to its limit."""

        @override
        def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
            handle = super().get_route_handler()
            [method] = self.methods or set()
            access = ACCESS[method, self.path_format]

            async def admit(request: Request) -> Response:
                try:
                    return await answer(request)
                except AccessError as refused:
                    pace_refusal(refused, request.scope)
                    target = f"{method} {self.path_format}"
                    await note_refusal(
                        services.access_log,
                        services.keys,
                        refused,
                        target=target,
                        scope=request.scope,
                    )
                    raise

            async def answer(request: Request) -> Response:
                principal = await services.admit(
                    request.headers, access, source=source_of(request.scope)
                )
                request.scope[PRINCIPAL] = principal
                if principal is not None:
                    request.scope[_OWN] = _own_of(principal, access)
                if method not in _WITH_BODY:
                    return await handle(request)
                body = await read_body(
                    request.receive, body_bytes_max, coding=request.headers.get("content-encoding")
                )
                return await handle(Request(request.scope, _receive_again(body, request.receive)))

            return admit

    return APIRouter(prefix=prefix, tags=[tag], route_class=AdmittedRoute)


async def _optional_caller(request: Request) -> Principal | None:
    principal: Principal | None = request.scope[PRINCIPAL]
    return principal


async def _caller(request: Request) -> Principal:
    principal: Principal = request.scope[PRINCIPAL]
    return principal


Caller = Annotated[Principal, Depends(_caller)]


def _own_of(principal: Principal, access: Access) -> Own:
    """Return the part of the workspace that a caller can access on a route."""
    return Own(
        workspace_id=principal.workspace_id,
        reach=access.reach(principal),
        team_id=principal.team_id,
    )


async def _own(request: Request) -> Own:
    own: Own = request.scope[_OWN]
    return own


# The part of the workspace that the caller can access on this route.
OwnThings = Annotated[Own, Depends(_own)]


async def _actor(request: Request, principal: Caller) -> Actor:
    return actor_of(request.scope, principal)


def refuse_lockout(networks: str | None, by: Actor) -> None:
    """Raise RequestError if networks that apply to the caller do not include the
    caller's address.
    """
    check_networks(networks)
    if networks is not None and not is_within(by.origin, parse_networks(networks)):
        raise invalid_request(
            f"allowed_ips must admit the address that this request comes from, {by.origin}.",
            "allowed_ips",
        )


# The caller, as the actor of a change.
By = Annotated[Actor, Depends(_actor)]
OptionalCaller = Annotated[Principal | None, Depends(_optional_caller)]


def _receive_again(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that first returns a body that has already been read, then the messages
    after it.
    """
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def next_message() -> Message:
        return messages.pop() if messages else await receive()

    return next_message
