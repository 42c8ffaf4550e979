"""Connections of the web server: the head of a request has a deadline, a size and one framing."""

import asyncio
from collections import OrderedDict
from typing import Any, Final

import h11
import uvicorn
from msgspec import Struct
from msgspec.structs import replace
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send
from typing_extensions import override
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from tollgate.core.errors import ErrorCode, GatewayError, RequestError
from tollgate.core.ids import IdSource
from tollgate.ingress.base import ErrorReply
from tollgate.ingress.errors import openai_reply

_CONTENT_LENGTH: Final = b"content-length"
_TRANSFER_ENCODING: Final = b"transfer-encoding"


class ConnectionLimits(Struct, frozen=True, kw_only=True):
    """Limits of what has not become a request yet."""

    # Seconds from the first byte of a head to its end.
    head_s: float = 10.0
    # Bytes of the request line and the headers.
    head_bytes_max: int = 16_384
    # The same once the server stops, for a head that has begun, and for the first one of a
    # connection: a caller that has just connected has a request on its way.
    last_head_s: float = 1.0
    # Seconds without a byte: above the 60 s after which load balancers close an idle connection, so
    # that none of them sends a request into one that is being closed (ELB user guide, "Connection
    # idle timeout", 2026-11-21).
    idle_s: int = 75
    # Connections without a request. Beyond it the one that waits longest is closed.
    waiting_max: int = 500


class BoundedConfig(uvicorn.Config):
    """Configuration of a server whose connections are bounded."""

    def __init__(self, app: ASGIApp, *, limits: ConnectionLimits, ids: IdSource, **more: Any):
        self.limits = limits
        self.ids = ids
        self.waiting: OrderedDict[BoundedConnection, None] = OrderedDict()
        self.is_stopping = False
        super().__init__(
            HeadGuard(app, limits, ids),
            http=BoundedConnection,
            timeout_keep_alive=limits.idle_s,
            h11_max_incomplete_event_size=limits.head_bytes_max,
            **more,
        )


class HeadGuard:
    """Refuses a head that is too long, and one whose body has two lengths, before any route."""

    def __init__(self, app: ASGIApp, limits: ConnectionLimits, ids: IdSource) -> None:
        self._app = app
        self._limits = limits
        self._ids = ids

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = self._refusal(scope) if scope["type"] == "http" else None
        if refusal is None:
            await self._app(scope, receive, send)
            return
        reply = _reply(refusal, self._ids)
        await Response(reply.body, reply.status, dict(reply.headers))(scope, receive, send)

    def _refusal(self, scope: Scope) -> GatewayError | None:
        headers: list[tuple[bytes, bytes]] = scope["headers"]
        target = len(scope["raw_path"]) + len(scope["query_string"])
        if target + sum(len(name) + len(value) for name, value in headers) > (
            self._limits.head_bytes_max
        ):
            return _too_long(self._limits)
        # A proxy that goes by the other length sees another request in the same bytes (RFC 9112,
        # 6.1 and 11.2).
        if {_CONTENT_LENGTH, _TRANSFER_ENCODING} <= {name for name, _ in headers}:
            return RequestError(
                ErrorCode.INVALID_REQUEST,
                "Content-Length and Transfer-Encoding exclude each other; send one of them.",
            )
        return None


class BoundedConnection(H11Protocol):
    """uvicorn's connection, closed if it waits too long for a head among too many others."""

    def __init__(
        self,
        config: BoundedConfig,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._limits = config.limits
        self._ids = config.ids
        self._config = config
        self._waiting = config.waiting
        self._deadline: asyncio.TimerHandle | None = None

    @override
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        # uvicorn times idle connections only after their first request.
        self.timeout_keep_alive_task = self.loop.call_later(
            self.timeout_keep_alive, self.timeout_keep_alive_handler
        )
        self._note_progress()
        if self._config.is_stopping:
            # It was accepted before the server stopped to listen.
            self.shutdown()

    @override
    def shutdown(self) -> None:
        """Close after the answer that is begun, or that a request on its way will get."""
        if self.cycle is None or self.conn.trailing_data[0]:
            self.loop.call_later(self._limits.last_head_s, self._close_unused)
        else:
            super().shutdown()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._stop_waiting()

    @override
    def handle_events(self) -> None:
        super().handle_events()
        if self._config.is_stopping and self._is_answering():
            self.cycle.keep_alive = False
        self._note_progress()

    @override
    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._note_progress()

    @override
    def send_400_response(self, msg: str) -> None:
        """Answer bytes that are no request, and close."""
        unread, _ = self.conn.trailing_data
        if len(unread) > self._limits.head_bytes_max:
            self._refuse(_too_long(self._limits))
        else:
            self._refuse(RequestError(ErrorCode.INVALID_REQUEST, "This is no HTTP request."))

    def _note_progress(self) -> None:
        """Start or stop the deadline, by what has arrived since the last answer."""
        if self.transport.is_closing() or self._is_answering():
            self._stop_waiting()
            return
        if self not in self._waiting:
            self._waiting[self] = None
            if len(self._waiting) > self._limits.waiting_max:
                longest, _ = self._waiting.popitem(last=False)
                longest.transport.abort()
        # The rest of a refused body counts too: nobody reads it, and it may trickle for ever.
        begun = bool(self.conn.trailing_data[0]) or self.conn.their_state is h11.SEND_BODY
        if begun and self._deadline is None:
            self._deadline = self.loop.call_later(self._limits.head_s, self._cut)
        elif not begun:
            self._stop_deadline()

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _close_unused(self) -> None:
        if not (self.transport.is_closing() or self._is_answering()):
            super().shutdown()

    def _stop_waiting(self) -> None:
        self._waiting.pop(self, None)
        self._stop_deadline()

    def _stop_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _cut(self) -> None:
        seconds = self._limits.head_s
        self._refuse(
            RequestError(
                ErrorCode.INVALID_REQUEST,
                f"The head of the request did not arrive within {seconds:g} s.",
            )
        )

    def _refuse(self, refusal: GatewayError) -> None:
        """Answer unless an answer has begun, and close."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            reply = _reply(refusal, self._ids)
            headers = [*reply.headers.items(), ("content-length", str(len(reply.body)))]
            events = (
                h11.Response(status_code=reply.status, headers=headers),
                h11.Data(data=reply.body),
                h11.EndOfMessage(),
            )
            self.transport.write(b"".join(self.conn.send(event) or b"" for event in events))
        if self._is_answering():
            # The request whose body this was is over: what its route answers has nowhere to go.
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self.transport.close()


def _too_long(limits: ConnectionLimits) -> GatewayError:
    return RequestError(
        ErrorCode.INVALID_REQUEST,
        f"The request line and the headers have more than {limits.head_bytes_max} bytes.",
    )


def _reply(refusal: GatewayError, ids: IdSource) -> ErrorReply:
    """Return the refusal as routes render one, on a connection that ends with it."""
    request_id = ids.new_id()
    reply = openai_reply(refusal, request_id)
    return replace(
        reply, headers={**reply.headers, "connection": "close", "x-request-id": request_id}
    )
