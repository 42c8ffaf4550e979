"""Limits the size of request heads, the connections that wait for a request, and the CPU spent on
the rest of a refused body.
"""

import asyncio
import contextlib
import socket
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any, Final

import h11
from msgspec import Struct
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from typing_extensions import override

from tollgate.core.errors import ErrorCode, GatewayError, RequestError
from tollgate.core.ids import IdSource
from tollgate.engine.replies.sink import ClientGone
from tollgate.ingress.errors import openai_reply

_CONTENT_LENGTH: Final = b"content-length"
_TRANSFER_ENCODING: Final = b"transfer-encoding"
_CLOSE: Final = (b"connection", b"close")
_GONE_WITHIN_S: Final = 1.0
# h11 copies each received block three times; one block of 256 KB, asyncio's default, takes ten
# times as long as four of 64 KB.
_RECEIVED_BYTES_MAX: Final = 64 * 1024
# Linux then discards received bytes without copying them (tcp(7), 2026-11-27).
_DISCARDING: Final = socket.MSG_TRUNC if sys.platform == "linux" else 0
_DISCARDED: Final = bytearray(1024 * 1024)


class ConnectionLimits(Struct, frozen=True, kw_only=True):
    """Limits on request heads and on connections that wait for a request."""

    head_bytes_max: int = 16_384
    """Maximum size of the request line and the headers."""
    waiting_s: float = 75
    """Seconds that a connection may wait for the head of its first or next request.

    Load balancers close idle connections after 60 s. With a longer limit here, no load balancer
    sends a request into a closing connection (ELB user guide, "Connection idle timeout", 2026-11).
    """
    waiting_max: int = 500
    """Maximum number of waiting connections; above it, the longest waiting one is closed."""
    unread_bytes_max: int = 256 * 1024
    """Maximum size of an unread body whose connection is kept once the request is answered.

    uvicorn parses the rest of such a body. The rest of a longer one is discarded.
    """


class _Connection(socket.socket):
    """An accepted connection that calls `on_close` when it is closed.

    If `is_discarding` is set, closing the connection only ends its sending side, and `end` closes
    it. A connection that is closed with unread bytes would be reset, and clients that still send
    their request would report the reset instead of the answer.
    """

    requests = 0
    is_discarding = False

    def __init__(self, handle: int, client: Any, on_close: "Callable[[_Connection], None]") -> None:
        super().__init__(fileno=handle)
        self.client = client
        self._on_close = on_close

    @override
    def recv(self, bufsize: int, flags: int = 0) -> bytes:
        return super().recv(min(bufsize, _RECEIVED_BYTES_MAX), flags)

    @override
    def close(self) -> None:
        self._on_close(self)
        if not self.is_discarding:
            super().close()

    def discard(self) -> bool:
        """Discard the bytes that have arrived; return False once no more can come."""
        try:
            return self.recv_into(_DISCARDED, len(_DISCARDED), _DISCARDING) > 0
        except BlockingIOError:
            return True
        except OSError:
            return False

    def end(self) -> None:
        """Close a connection whose bytes were discarded."""
        super().close()


class GuardedListener(socket.socket):
    """A listening socket that closes connections on which no request arrives in time."""

    def __init__(self, family: int, limits: ConnectionLimits) -> None:
        # asyncio disables Nagle's algorithm only for sockets with a protocol. Otherwise, small
        # answers on a reused connection would wait 40 ms for the client's delayed acknowledgement.
        super().__init__(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        self.limits = limits
        self._open: dict[Any, _Connection] = {}
        self._waiting: OrderedDict[_Connection, asyncio.TimerHandle] = OrderedDict()
        self._discarding: OrderedDict[_Connection, asyncio.TimerHandle] = OrderedDict()

    @override
    def accept(self) -> tuple[socket.socket, Any]:
        accepted, address = super().accept()
        connection = _Connection(accepted.detach(), address[:2], self._forget)
        self._open[connection.client] = connection
        self._wait(connection)
        return connection, address

    def begin_request(self, client: Any) -> None:
        """Record that a request head has arrived from a client address."""
        if (connection := self._open.get(client)) is not None:
            connection.requests += 1
            self._stop_waiting(connection)

    def end_request(self, client: Any) -> None:
        """Record that a request has been answered; the next request may have begun already."""
        if (connection := self._open.get(client)) is not None:
            connection.requests -= 1
            if not connection.requests:
                self._wait(connection)

    def discard_rest(self, client: Any) -> None:
        """Discard the unread body from a client address; the caller closes the connection."""
        connection = self._open.get(client)
        # If the listener is closed, the server is stopping and closes connections at once, so
        # nothing is discarded.
        if connection is not None and self.fileno() != -1:
            connection.is_discarding = True

    def end_discarding(self) -> None:
        """Close all connections whose bodies are being discarded."""
        for connection in list(self._discarding):
            self._end_discarding(connection)

    def _discard(self, connection: _Connection) -> None:
        loop, limits = asyncio.get_running_loop(), self.limits
        # shutdown() raises OSError if the client has already reset the connection.
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_WR)
        deadline = loop.call_later(limits.waiting_s, self._end_discarding, connection)
        self._discarding[connection] = deadline
        loop.add_reader(connection, self._discard_arrived, connection)
        if len(self._discarding) > limits.waiting_max:
            self._end_discarding(next(iter(self._discarding)))

    def _discard_arrived(self, connection: _Connection) -> None:
        if not connection.discard():
            self._end_discarding(connection)

    def _end_discarding(self, connection: _Connection) -> None:
        self._discarding.pop(connection).cancel()
        asyncio.get_running_loop().remove_reader(connection)
        connection.end()

    def _wait(self, connection: _Connection) -> None:
        loop, limits = asyncio.get_running_loop(), self.limits
        self._waiting[connection] = loop.call_later(limits.waiting_s, self._end, connection)
        if len(self._waiting) > limits.waiting_max:
            self._end(next(iter(self._waiting)))

    def _end(self, connection: _Connection) -> None:
        self._stop_waiting(connection)
        # uvicorn then sees EOF and closes the connection after the response in progress. shutdown()
        # raises OSError if the client has already reset the connection.
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_RD)

    def _stop_waiting(self, connection: _Connection) -> None:
        if (deadline := self._waiting.pop(connection, None)) is not None:
            deadline.cancel()

    def _forget(self, connection: _Connection) -> None:
        self._stop_waiting(connection)
        if self._open.get(connection.client) is connection:
            del self._open[connection.client]
            if connection.is_discarding:
                self._discard(connection)


class _Rest:
    """The part of a request's body that the application has not read."""

    def __init__(self, headers: Iterable[tuple[bytes, bytes]]) -> None:
        stated = dict(headers)
        self._is_chunked = _TRANSFER_ENCODING in stated
        # uvicorn has verified that the length is a number.
        self._length = int(stated.get(_CONTENT_LENGTH, b"0"))

    def note(self, message: Message) -> None:
        """Subtract a part that the application has read."""
        self._length -= len(message.get("body", b""))
        self._is_chunked = self._is_chunked and bool(message.get("more_body"))

    def exceeds(self, most: int) -> bool:
        """Return whether more bytes may come; a chunked body does not state its length."""
        return self._is_chunked or self._length > most


class RequestGuard:
    """An ASGI app that, before any route, refuses long request heads, and requests with both
    Content-Length and Transfer-Encoding.

    If a request is answered before its body was read, and much of the body is still to come, the
    answer closes the connection, and the rest of the body is discarded.
    """

    def __init__(self, app: ASGIApp, listener: GuardedListener, ids: IdSource) -> None:
        self._app = app
        self._listener = listener
        self._head_bytes_max = listener.limits.head_bytes_max
        self._unread_bytes_max = listener.limits.unread_bytes_max
        self._ids = ids

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        # The address of a trusted proxy is replaced in the scope.
        client, rest = scope["client"], _Rest(scope["headers"])

        async def receive_noting() -> Message:
            message = await receive()
            rest.note(message)
            return message

        async def send_unless_refused(message: Message) -> None:
            if message["type"] == "http.response.start" and rest.exceeds(self._unread_bytes_max):
                message = {**message, "headers": [*message.get("headers", ()), _CLOSE]}
                self._listener.discard_rest(client)
            try:
                await send(message)
            except h11.LocalProtocolError as refused:
                # uvicorn has refused a malformed body with status 400, and closes the connection.
                if await _is_gone(receive):
                    raise ClientGone from refused
                raise

        self._listener.begin_request(client)
        try:
            app = self._refusal(scope) or self._app
            await app(scope, receive_noting, send_unless_refused)
        finally:
            self._listener.end_request(client)

    def _refusal(self, scope: Scope) -> ASGIApp | None:
        headers: list[tuple[bytes, bytes]] = scope["headers"]
        target = len(scope["raw_path"]) + len(scope["query_string"])
        size = target + sum(len(name) + len(value) for name, value in headers)
        if size > self._head_bytes_max:
            limit = f"{self._head_bytes_max} bytes"
            return self._refuse(f"The request line and the headers have more than {limit}.")
        # A proxy that relies on the other header would find a different request in the same bytes
        # (RFC 9112, 6.1 and 11.2).
        if {_CONTENT_LENGTH, _TRANSFER_ENCODING} <= {name for name, _ in headers}:
            return self._refuse(
                "Content-Length and Transfer-Encoding exclude each other; send one of them."
            )
        return None

    def _refuse(self, message: str) -> ASGIApp:
        """Return a reply with an error in the form that routes use; the reply closes the
        connection.
        """
        request_id = self._ids.new_id()
        refusal: GatewayError = RequestError(ErrorCode.INVALID_REQUEST, message)
        reply = openai_reply(refusal, request_id)
        more = {"connection": "close", "x-request-id": request_id}
        return Response(reply.body, reply.status, {**reply.headers, **more})


async def _is_gone(receive: Receive) -> bool:
    """Return whether the connection closes within a second."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_GONE_WITHIN_S):
            while (await receive())["type"] != "http.disconnect":
                pass
            return True
    return False
