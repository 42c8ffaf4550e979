"""A client connection for HTTP/1.1 that carries one request after another.

asyncio's streams allocate 256 KiB for each read, and the kernel maps and unmaps that memory. Here,
all reads share one buffer (decision 214).
"""

import asyncio
import select
import ssl
from collections.abc import Callable
from typing import Final

from httptools import HttpParserError, HttpResponseParser
from typing_extensions import override

from tollgate.http1.errors import BrokenReply, ConnectionLost, HttpError

READ_BYTES: Final = 64 * 1024
# Maximum size of a reply's head, and of other data (such as framing) that arrives without any byte
# of the body.
HEAD_BYTES_MAX: Final = 64 * 1024
REPLY_FIELDS_MAX: Final = 256
# Number of unread bytes at which reading pauses, so that the server waits for a slow reader.
UNREAD_BYTES_MAX: Final = 128 * 1024
# Size of one TLS record, which OpenSSL may hold in addition to the pending bytes that asyncio
# counts.
_RECORD_BYTES: Final = 18 * 1024
# Maximum size of one write, because asyncio copies the part that the kernel does not accept
# immediately.
_WRITE_BYTES: Final = 256 * 1024
_WITHOUT_BODY: Final = frozenset({204, 304})


class Connection(asyncio.BufferedProtocol):
    """A connection whose owner calls `send`, `receive`, `read` and `finish` for each request.

    All connections of an event loop share `buffer`, because each read is parsed before the next.
    """

    def __init__(self, buffer: memoryview) -> None:
        self._loop = asyncio.get_running_loop()
        self._buffer = buffer
        self._room = buffer
        self._transport: asyncio.Transport | None = None
        self._arrivals: select.poll | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._closed: asyncio.Future[None] = self._loop.create_future()
        self._failure: HttpError | None = None
        self._is_writable = True
        self._is_paused = False
        # Unread parts of the current reply's body; the parser appends to this list.
        self._parts: list[bytes] = []
        self.on_body: Callable[[bytes], None] = self._parts.append
        self._parser = HttpResponseParser(self)
        self._parser.set_dangerous_leniencies(lenient_spaces_after_chunk_size=True)
        self._has_request = False
        self._has_ended = False
        self._begin()

    @property
    def is_open(self) -> bool:
        """True if another request may be sent."""
        return (
            self._failure is None
            and self._transport is not None
            and not self._transport.is_closing()
        )

    @property
    def is_quiet(self) -> bool:
        """True if another request may be sent and the socket has no unread bytes.

        Unread bytes would be mistaken for the reply to the next request.
        """
        return self.is_open and self._arrivals is not None and not self._arrivals.poll(0)

    @property
    def is_read(self) -> bool:
        """True if the reply's body was read to its end."""
        return self._has_ended and not self._parts

    @property
    def has_reply(self) -> bool:
        """True if the head of a reply has arrived."""
        return self.status != 0

    async def send(self, octets: bytes | memoryview) -> None:
        """Send part of a request; raise ConnectionLost.

        If the reply arrives early, the rest is not sent, and `finish` closes the connection.
        """
        if not self._has_request:
            self._begin()
            self._has_request = True
        if len(octets) <= _WRITE_BYTES:
            await self._write(octets)
            return
        view = memoryview(octets)
        for start in range(0, len(view), _WRITE_BYTES):
            await self._write(view[start : start + _WRITE_BYTES])

    async def receive(self) -> None:
        """Wait for the head of the reply; raise ConnectionLost or BrokenReply."""
        while not self.has_reply:
            if self._failure is not None:
                raise self._failure
            await self._wait()

    async def read(self) -> bytes:
        """Return the next bytes of the body, b"" at its end; raise BrokenReply."""
        while not self._parts:
            if self._has_ended:
                return b""
            if self._failure is not None:
                raise self._failure
            await self._wait()
        together = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        self._parts.clear()
        self._unread_bytes = 0
        if self._is_paused and self._transport is not None:
            self._is_paused = False
            self._transport.resume_reading()
        return together

    def finish(self) -> bool:
        """End the exchange; return True if the connection is reusable, otherwise abort it."""
        may_serve = (
            self._has_ended
            and self._stays_open
            and self.is_open
            and self._transport is not None
            and self._transport.get_write_buffer_size() == 0
        )
        self._has_request = False
        if not may_serve:
            self.abort()
        elif self._is_paused and self._transport is not None:
            self._is_paused = False
            self._transport.resume_reading()
        return may_serve

    def close(self) -> None:
        """Close the connection once all written bytes are sent."""
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Close the connection immediately, without sending buffered bytes."""
        if self._transport is not None:
            self._transport.abort()

    async def wait_closed(self) -> None:
        """Wait until the connection is closed."""
        await asyncio.shield(self._closed)

    def _begin(self) -> None:
        """Discard the state of the previous reply."""
        self.status = 0
        self.headers: dict[str, str] = {}
        self._parts.clear()
        self._unread_bytes = 0
        self._seen_bytes = 0
        self._head_bytes = 0
        self._fields = 0
        # Number of bytes received since the last part of the body.
        self._quiet_bytes = 0
        self._is_interim = False
        self._ends_by_close = False
        self._stays_open = False
        self._has_ended = False

    async def _write(self, octets: bytes | memoryview) -> None:
        if self.has_reply:
            self._stays_open = False
            return
        if self._failure is not None:
            raise self._failure
        if self._transport is None or self._transport.is_closing():
            raise ConnectionLost("closed")
        self._transport.write(octets)
        while not self._is_writable and not self.has_reply:
            if self._failure is not None:
                raise self._failure
            await self._wait()

    async def _wait(self) -> None:
        """Wait for the next event on the connection."""
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _break(self, reason: str) -> None:
        """Fail the current reply and abort the connection."""
        if self._failure is None:
            self._failure = (
                BrokenReply(reason)
                if self._has_request and self._seen_bytes
                else ConnectionLost(reason)
            )
        self.abort()
        self._wake()

    # Methods that asyncio calls.

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - asyncio says so
        self._transport = transport
        self._arrivals = select.poll()
        self._arrivals.register(transport.get_extra_info("socket"), select.POLLIN)

    @override
    def get_buffer(self, sizehint: int) -> memoryview:
        # At the end of a TLS connection, asyncio reads only the pending bytes that fit into this
        # buffer.
        size = sizehint + _RECORD_BYTES
        self._room = self._buffer if size < len(self._buffer) else memoryview(bytearray(size))
        return self._room

    @override
    def buffer_updated(self, nbytes: int) -> None:
        if not self._has_request or self._has_ended:
            # No request is pending, so these bytes could be mistaken for the next reply.
            self._stays_open = False
            self._break("sent bytes that were not requested")
            return
        self._seen_bytes += nbytes
        parts = len(self._parts)
        try:
            self._parser.feed_data(self._room[:nbytes])
        except HttpParserError as error:
            self._stays_open = False
            if not self._has_ended:
                self._break(f"invalid HTTP: {error}")
        if len(self._parts) > parts:
            self._quiet_bytes = 0
            self._unread_bytes += nbytes
            if self._unread_bytes > UNREAD_BYTES_MAX and not self._is_paused:
                self._pause()
        else:
            self._quiet_bytes += nbytes
            if self._quiet_bytes > HEAD_BYTES_MAX:
                self._break("the head of the reply, or the framing of its body, is too long")
        self._wake()

    def _pause(self) -> None:
        if self._transport is not None and not self._has_ended:
            self._is_paused = True
            self._transport.pause_reading()

    @override
    def eof_received(self) -> None:
        self._end_by_close()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        if exc is None:
            self._end_by_close()
        elif not self._has_ended:
            self._break("the connection was reset")
        if not self._closed.done():
            self._closed.set_result(None)
        self._wake()

    def _end_by_close(self) -> None:
        self._stays_open = False
        ends = (
            self._has_request and self.has_reply and self._ends_by_close and self._failure is None
        )
        if ends and (self._has_ended or not self._is_cut()):
            self._has_ended = True
            self._wake()
        elif not (self._has_request and self._has_ended):
            self._break("closed within a reply" if self._seen_bytes else "closed without a reply")

    def _is_cut(self) -> bool:
        """Return True if TLS ended without a close_notify alert; the reply may then be truncated.

        An attacker can cut off a connection in this way. asyncio does not report the alert, but a
        read of `ssl_object` returns nothing after the alert and raises an error without it (RFC
        9112, 9.8).
        """
        if self._transport is None:
            return True
        tls = self._transport.get_extra_info("ssl_object")
        try:
            return tls is not None and tls.read(1) != b""
        except ssl.SSLError:
            return True

    @override
    def pause_writing(self) -> None:
        self._is_writable = False

    @override
    def resume_writing(self) -> None:
        self._is_writable = True
        self._wake()

    # The parser calls these methods; an exception in any of them becomes an HttpParserError.

    def on_message_begin(self) -> None:
        if self._has_ended:
            raise ValueError("a second reply to one request")

    def on_header(self, name: bytes, value: bytes) -> None:
        self._fields += 1
        self._head_bytes += len(name) + len(value)
        if self._fields > REPLY_FIELDS_MAX or self._head_bytes > HEAD_BYTES_MAX:
            raise ValueError("too many headers")
        if self.has_reply:
            # Trailers are ignored.
            return
        key, text = name.decode("latin-1").lower(), value.decode("latin-1").strip(" \t")
        before = self.headers.get(key)
        self.headers[key] = text if before is None else f"{before}, {text}"

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if self._parser.get_http_version() not in ("1.1", "1.0") or status < 100 or status == 101:
            raise ValueError("an unexpected status line")
        if status < 200:
            self._is_interim = True
            self.headers.clear()
            return
        coding = self.headers.get("transfer-encoding")
        if coding is not None and coding.lower() != "chunked":
            raise ValueError("an unexpected transfer-encoding")
        self._stays_open = self._parser.should_keep_alive()
        self._ends_by_close = (
            coding is None and "content-length" not in self.headers and status not in _WITHOUT_BODY
        )
        self.status = status

    def on_message_complete(self) -> None:
        if self._is_interim:
            self._is_interim = False
        else:
            self._has_ended = True
            # A trailer may announce that the connection ends.
            self._stays_open = self._stays_open and self._parser.should_keep_alive()
