"""A strict HTTP/1.1 reader over asyncio streams: what it does not understand it refuses.

Raw, because the bytes of the chunked POST and its trailers are what is under test.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from http import HTTPStatus

HEAD_BYTES_MAX = 64 * 1024
CHUNK_BYTES_MAX = 64 * 1024 * 1024
_TOKEN = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,8})(?:;.*)?")

HeaderList = list[tuple[str, str]]


class MalformedHttp(ValueError):
    """The peer's bytes are not HTTP/1.1."""


class Truncated(EOFError):
    """The peer closed the connection inside a message."""


def header(headers: HeaderList, name: str) -> str | None:
    """The value of a header, several joined by a comma; None when absent."""
    values = [value for key, value in headers if key.lower() == name.lower()]
    return ", ".join(values) if values else None


@dataclass
class Request:
    """A request and the way to its body; `trailers` are there once the body was read."""

    method: str
    target: str
    headers: HeaderList
    head_bytes: int
    reader: asyncio.StreamReader = field(repr=False)
    trailers: HeaderList = field(default_factory=list)
    _consumed: bool = False

    def header(self, name: str) -> str | None:
        return header(self.headers, name)

    @property
    def chunked(self) -> bool:
        return (self.header("transfer-encoding") or "").lower() == "chunked"

    @property
    def content_length(self) -> int:
        """0 when absent. Raises MalformedHttp."""
        value = self.header("content-length") or "0"
        if not re.fullmatch("[0-9]{1,12}", value):
            raise MalformedHttp(f"Content-Length: {value}")
        return int(value)

    async def body(self) -> AsyncIterator[bytes]:
        """One item a chunk, or one for all with Content-Length; nothing the second time.

        Raises MalformedHttp, Truncated.
        """
        if self._consumed:
            return
        self._consumed = True
        if not self.chunked:
            if self.content_length:
                yield await _exactly(self.reader, self.content_length)
            return
        while size := await self._chunk_size():
            chunk = await _exactly(self.reader, size)
            if await _exactly(self.reader, 2) != b"\r\n":
                raise MalformedHttp("a chunk is longer than its size line says")
            yield chunk
        while line := await _line(self.reader):
            self.trailers.append(_field(line))

    async def _chunk_size(self) -> int:
        line = await _line(self.reader)
        match = _CHUNK_SIZE.fullmatch(line)
        if match is None or int(match[1], 16) > CHUNK_BYTES_MAX:
            raise MalformedHttp(f"chunk size line {line!r}")
        return int(match[1], 16)


async def read_request(reader: asyncio.StreamReader) -> Request | None:
    """The next request of a connection; None at its end. Raises MalformedHttp, Truncated."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        if error.partial:
            raise Truncated("end of connection inside a request head") from error
        return None
    except asyncio.LimitOverrunError as error:
        raise MalformedHttp(f"request head over {HEAD_BYTES_MAX} bytes") from error
    request_line, *lines = head[:-4].split(b"\r\n")
    parts = request_line.split(b" ")
    if len(parts) != 3 or parts[2] != b"HTTP/1.1" or not _TOKEN.fullmatch(parts[0]):
        raise MalformedHttp(f"request line {request_line!r}")
    headers = [_field(line) for line in lines]
    request = Request(parts[0].decode(), parts[1].decode("latin-1"), headers, len(head), reader)
    if header(headers, "host") is None:
        raise MalformedHttp("no Host header")
    has_both = request.chunked and header(headers, "content-length") is not None
    if has_both or (header(headers, "transfer-encoding") is not None and not request.chunked):
        # RFC 9112, 6.1 and 6.3: both together is how requests are smuggled.
        raise MalformedHttp("Transfer-Encoding is chunked, and without Content-Length")
    return request


def response_head(status: int, headers: HeaderList) -> bytes:
    """The status line and the headers, ended by the empty line."""
    try:
        reason = HTTPStatus(status).phrase
    except ValueError:
        reason = ""
    lines = [f"HTTP/1.1 {status} {reason}", *(f"{name}: {value}" for name, value in headers)]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def valid_field(name: str, value: str) -> bool:
    """Whether a header can be written at all: a token and no control characters."""
    token = _TOKEN.fullmatch(name.encode("utf-8")) is not None
    return token and not re.search(r"[\x00-\x08\x0a-\x1f\x7f]", value) and value.isascii()


async def _line(reader: asyncio.StreamReader) -> bytes:
    try:
        line = await reader.readuntil(b"\r\n")
    except asyncio.IncompleteReadError as error:
        raise Truncated("end of connection inside a line") from error
    except asyncio.LimitOverrunError as error:
        raise MalformedHttp("endless line") from error
    return line[:-2]


async def _exactly(reader: asyncio.StreamReader, size: int) -> bytes:
    try:
        return await reader.readexactly(size)
    except asyncio.IncompleteReadError as error:
        raise Truncated(f"{len(error.partial)} of {size} bytes before the end") from error


def _field(line: bytes) -> tuple[str, str]:
    name, colon, value = line.partition(b":")
    if not colon or not _TOKEN.fullmatch(name) or b"\n" in value or b"\r" in value:
        raise MalformedHttp(f"header line {line!r}")
    return name.decode(), value.strip(b" \t").decode("latin-1")
