"""Every reply names its request, and no request is larger than the host allows."""

from collections.abc import Callable
from typing import Final

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tollgate.core.errors import GatewayError
from tollgate.core.ids import IdSource
from tollgate.ingress.base import ErrorReply
from tollgate.web.reply import AsgiReply, ClientGone, read_body

_STATE_KEY: Final = "tollgate.request_id"


def request_id_of(request: Request) -> str:
    """The id that `RequestEnvelope` gave this request."""
    request_id: str = request.scope[_STATE_KEY]
    return request_id


class RequestEnvelope:
    """Gives each request an id and its body a limit, before any route sees it."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        ids: IdSource,
        body_bytes_max: int,
        error: Callable[[GatewayError, str], ErrorReply],
    ) -> None:
        self._app = app
        self._ids = ids
        self._body_bytes_max = body_bytes_max
        self._error = error

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = self._ids.new_id()
        headers = {"x-request-id": request_id}
        try:
            body = await read_body(receive, self._body_bytes_max)
        except ClientGone:
            return
        except GatewayError as refusal:
            told = self._error(refusal, request_id)
            reply = AsgiReply(send, {"content-type": "application/json", **headers})
            await reply.start(told.status, told.headers)
            await reply.end(told.body)
            return

        async def whole_body() -> Message:
            return {"type": "http.request", "body": body, "more_body": False}

        async def named(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [
                    *message["headers"],
                    (b"x-request-id", request_id.encode()),
                ]
            await send(message)

        await self._app({**scope, _STATE_KEY: request_id}, whole_body, named)
