"""The part of HTTP/1.1 that the Runtime API uses, over asyncio streams."""

import asyncio
import re
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

_CHUNK_SIZE: Final = re.compile(rb"([0-9A-Fa-f]{1,8})[ \t]*(?:;[^\r\n]*)?\r\n")


class MalformedReply(Exception):
    """The peer sent invalid HTTP/1.1, broke off inside a reply, or sent more than allowed."""


class HttpResponse(Struct, frozen=True, kw_only=True):
    """A whole reply; header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def keeps_alive(self) -> bool:
        """True if another request may follow on the same connection."""
        return self.headers.get("connection", "").lower() != "close"


class Address(Struct, frozen=True):
    """The host and port of a server."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> "Address":
        """Parse `host:port`; raise ValueError for anything else."""
        host, _, port = text.rpartition(":")
        if not host:
            raise ValueError(f"not host:port: {text!r}")
        return cls(host, int(port))


class Connection:
    """One TCP connection; asyncio sets TCP_NODELAY on it, so that no write waits for another."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, address: Address) -> "Connection":
        """Connect; raise OSError if no server listens."""
        return cls(*await asyncio.open_connection(address.host, address.port))

    async def send(self, octets: bytes) -> None:
        """Send all bytes in one write; raise OSError if the connection is lost."""
        self._writer.write(octets)
        await self._writer.drain()

    async def receive(self, *, body_bytes_max: int) -> HttpResponse:
        """Read the next reply on this connection; see `read_reply`."""
        return await read_reply(self._reader, body_bytes_max=body_bytes_max)

    def close(self) -> None:
        """Close once all sent bytes have left."""
        self._writer.close()


def encode_request_head(method: str, path: str, headers: Mapping[str, str]) -> bytes:
    """Encode a request up to its body."""
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", errors="replace")


def encode_chunk(octets: bytes) -> bytes:
    """Encode one chunk of a chunked body; no octets give no chunk, since it would end the body."""
    return b"%x\r\n%b\r\n" % (len(octets), octets) if octets else b""


def encode_last_chunk(trailers: Mapping[str, str] | None = None) -> bytes:
    """Encode the end of a chunked body."""
    fields = "".join(f"{name}: {value}\r\n" for name, value in (trailers or {}).items())
    return b"0\r\n%b\r\n" % fields.encode("latin-1", errors="replace")


async def read_reply(reader: asyncio.StreamReader, *, body_bytes_max: int) -> HttpResponse:
    """Read one reply to its end.

    Raises ConnectionError if the peer closed before it answered, MalformedReply for everything
    that is wrong with an answer.
    """
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        if not error.partial:
            raise ConnectionResetError("closed without a reply") from error
        raise MalformedReply("broke off in the head of a reply") from error
    except asyncio.LimitOverrunError as error:
        raise MalformedReply("the head of a reply is too long") from error
    status, headers = _parse_head(head)
    try:
        body = await _read_body(reader, headers, body_bytes_max)
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError) as error:
        raise MalformedReply("broke off in the body of a reply") from error
    return HttpResponse(status=status, headers=headers, body=body)


def _parse_head(head: bytes) -> tuple[int, dict[str, str]]:
    status_line, *lines = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    found = re.match(r"HTTP/1\.[01] ([0-9]{3})(?: |$)", status_line)
    if found is None:
        raise MalformedReply(f"not a status line: {status_line[:80]!r}")
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon:
            raise MalformedReply("a header line has no colon")
        headers[name.lower()] = value.strip()
    return int(found[1]), headers


async def _read_body(
    reader: asyncio.StreamReader, headers: Mapping[str, str], body_bytes_max: int
) -> bytes:
    if "transfer-encoding" in headers:
        if headers["transfer-encoding"].lower() != "chunked":
            raise MalformedReply(f"transfer-encoding {headers['transfer-encoding'][:80]!r}")
        return await _read_chunks(reader, body_bytes_max)
    length = headers.get("content-length", "")
    if re.fullmatch("[0-9]{1,12}", length) is None:
        raise MalformedReply(f"a reply of unknown length: {length[:80]!r}")
    if int(length) > body_bytes_max:
        raise MalformedReply(f"a reply of {length} bytes, more than {body_bytes_max}")
    return await reader.readexactly(int(length))


async def _read_chunks(reader: asyncio.StreamReader, body_bytes_max: int) -> bytes:
    body = bytearray()
    while size := _chunk_size(await reader.readuntil(b"\r\n")):
        if len(body) + size > body_bytes_max:
            raise MalformedReply(f"a reply of more than {body_bytes_max} bytes")
        body += await reader.readexactly(size)
        await _read_line_end(reader)
    # Lambda sends no trailers, so what could be one is refused instead of read past.
    await _read_line_end(reader)
    return bytes(body)


def _chunk_size(line: bytes) -> int:
    found = _CHUNK_SIZE.fullmatch(line)
    if found is None:
        raise MalformedReply(f"not the size of a chunk: {line[:80]!r}")
    return int(found[1], 16)


async def _read_line_end(reader: asyncio.StreamReader) -> None:
    if await reader.readexactly(2) != b"\r\n":
        raise MalformedReply("a chunk is longer than it says")
