"""The two directions of an ASGI exchange: reading the body, and writing the reply in pieces."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, Final

from starlette.types import Message, Receive, Send

from tollgate.core.clock import give_way
from tollgate.core.errors import ErrorCode, RequestError
from tollgate.engine.replies.sink import ClientGone
from tollgate.engine.side_thread import LARGE_BYTES
from tollgate.ingress.validation import has_more_marks
from tollgate.web.http.body_decoding import BodyDecoder

# Size limit of a reply that the platform does not stream. "Lambda quotas": 6 MB (6,291,556 bytes),
# minus the headers and the JSON around the body.
REPLY_BYTES_MAX: Final = 6_000_000

# Largest piece of a body that is sent at once: uvicorn copies it, which takes 0.2 s for 64 MB.
_PIECE_BYTES: Final = 1024 * 1024

# Number of commas and brackets at which parsing a short body costs as much as parsing a large one.
# A message has three of these characters and takes 10 µs.
_FREE_MARKS: Final = 1_000


def is_large_body(body: bytes) -> bool:
    """Return whether parsing a body may take more than a few milliseconds."""
    return len(body) > LARGE_BYTES or has_more_marks(body, _FREE_MARKS)


def size_in_reply(body: bytes) -> int:
    """Return the size of a JSON body as the platform counts it, which is as a string
    inside JSON.
    """
    return len(body) + body.count(b'"') + body.count(b"\\")


class AsgiReply:
    """An ASGI reply that the engine starts as soon as the status is known."""

    def __init__(self, send: Send, *, id_header: str | None = None) -> None:
        self._send_message = send
        # Name of a second header that repeats `x-request-id`.
        self._id_header = id_header
        self.started = False

    async def start(self, status: int, headers: Mapping[str, str]) -> None:
        """Send the status and the headers."""
        raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
        if self._id_header is not None:
            raw.append((self._id_header.encode(), headers["x-request-id"].encode()))
        self.started = True
        await self._send({"type": "http.response.start", "status": status, "headers": raw})

    async def write(self, body: bytes) -> None:
        """Send a piece of the body."""
        await self._send_body(body, more_body=True)

    async def end(self, body: bytes) -> None:
        """Send the last piece of the body."""
        await self._send_body(body, more_body=False)

    async def abort(self) -> None:
        """Send nothing: servers close the connection if an application leaves a body incomplete."""

    async def _send_body(self, body: bytes, *, more_body: bool) -> None:
        last = max(len(body) - 1, 0) // _PIECE_BYTES * _PIECE_BYTES
        for start in range(0, last, _PIECE_BYTES):
            piece = body[start : start + _PIECE_BYTES]
            await self._send({"type": "http.response.body", "body": piece, "more_body": True})
            await give_way()
        await self._send(
            {"type": "http.response.body", "body": body[last:], "more_body": more_body}
        )

    async def _send(self, message: Message) -> None:
        try:
            await self._send_message(message)
        except OSError as lost:
            # Servers raise OSError once the connection is closed (ASGI HTTP specification, 2.4).
            raise ClientGone from lost


async def read_body(
    receive: Receive,
    bytes_max: int,
    *,
    coding: str | None = None,
    announced_bytes: str | None = None,
    free_bytes: int | None = None,
    admit: Callable[[], Awaitable[None]] | None = None,
) -> bytes:
    """Return the whole request body; await `admit` once before more than `free_bytes` are read.

    `coding` is the value of Content-Encoding, and `announced_bytes` that of Content-Length. Both
    limits apply to the announced and the received body as well as to its decoded content. Raises
    RequestError as soon as the body exceeds `bytes_max` or cannot be decoded, and ClientGone if the
    client disconnects.
    """
    body = _Body(bytes_max, free_bytes, admit)
    decoder = None if coding in (None, "", "identity") else BodyDecoder(coding)
    received = 0
    if announced_bytes is not None and announced_bytes.isdecimal():
        await body.check(int(announced_bytes))
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        piece = message.get("body", b"")
        received += len(piece)
        await body.check(received)
        if decoder is None:
            await body.add(piece)
        else:
            for content in decoder.decode(piece):
                await body.add(content)
                await give_way()
        if not message.get("more_body", False):
            break
    if decoder is not None:
        decoder.end()
    return b"".join(body.pieces)


class _Body:
    """The content of a body decoded so far, and the body's limits."""

    def __init__(
        self,
        bytes_max: int,
        free_bytes: int | None,
        admit: Callable[[], Awaitable[None]] | None,
    ) -> None:
        self.pieces: list[bytes] = []
        self._size = 0
        self._bytes_max = bytes_max
        self._free_bytes = free_bytes
        self._admit = admit

    async def add(self, content: bytes) -> None:
        """Add content; raise RequestError if the limit is exceeded."""
        self._size += len(content)
        await self.check(self._size)
        self.pieces.append(content)

    async def check(self, size: int) -> None:
        """Raise RequestError for a size above the limit; admit the request above `free_bytes`."""
        if size > self._bytes_max:
            raise RequestError(
                ErrorCode.PAYLOAD_TOO_LARGE,
                f"The request is larger than {self._bytes_max:,} bytes.",
            )
        if self._admit is not None and self._free_bytes is not None and size > self._free_bytes:
            admit, self._admit = self._admit, None
            await admit()


async def wait_for_disconnect(receive: Receive) -> None:
    """Wait until the client has disconnected."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def unless_gone(work: Coroutine[Any, Any, None], receive: Receive) -> None:
    """Run the work, and cancel it when the client disconnects."""
    task = asyncio.create_task(work)
    watcher = asyncio.create_task(wait_for_disconnect(receive))
    watcher.add_done_callback(lambda _: task.cancel())
    try:
        await task
    except asyncio.CancelledError:
        if not watcher.done():
            raise
        watcher.result()
    finally:
        watcher.cancel()
