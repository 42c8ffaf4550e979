"""A Runtime API that plays a script over a real socket, and keeps every byte it is sent."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Self

PATIENCE_S = 10.0
ACCEPTED = b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"


def next_reply(event: bytes, *headers: str, request_id: str = "8476a536") -> bytes:
    """An invocation as Lambda hands it out; its deadline lies at second 1000."""
    lines = [
        "HTTP/1.1 200 OK",
        f"Lambda-Runtime-Aws-Request-Id: {request_id}",
        "Lambda-Runtime-Deadline-Ms: 1000000",
        f"Content-Length: {len(event)}",
        *headers,
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + event


@dataclass
class Post:
    """A request as it comes in; `raw` is its body with the framing."""

    path: str
    head: bytes
    raw: bytearray = field(default_factory=bytearray)
    _grown: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def headers(self) -> dict[str, str]:
        lines = self.head.decode().split("\r\n")[1:-2]
        return {name: value for name, _, value in (line.partition(": ") for line in lines)}

    def add(self, octets: bytes) -> None:
        self.raw += octets
        self._grown.set()

    async def until(self, ends: Callable[[bytes], bool]) -> bytes:
        """Wait until what has come is as wished."""
        async with asyncio.timeout(PATIENCE_S):
            while not ends(bytes(self.raw)):
                self._grown.clear()
                await self._grown.wait()
        return bytes(self.raw)


class Peer:
    """`script` is what GET next is answered with; None closes the connection instead."""

    def __init__(self, *script: bytes | None, acknowledgement: bytes | None = ACCEPTED) -> None:
        self.connections = 0
        self.requests: list[str] = []
        self.takes_responses = asyncio.Event()
        self.takes_responses.set()
        self._serving: list[asyncio.Task[None]] = []
        self._script: asyncio.Queue[bytes | None] = asyncio.Queue()
        for reply in script:
            self._script.put_nowait(reply)
        self._acknowledgement = acknowledgement
        self._begun: asyncio.Queue[Post] = asyncio.Queue()
        self._ended: asyncio.Queue[Post] = asyncio.Queue()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accepted, "127.0.0.1", 0)
        host, port = self._server.sockets[0].getsockname()
        self.address = f"{host}:{port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._serving:
            task.cancel()
        for ended in await asyncio.gather(*self._serving, return_exceptions=True):
            if isinstance(ended, Exception):
                raise ended

    async def begun(self) -> Post:
        """The next request with a body, as soon as its head is here."""
        return await asyncio.wait_for(self._begun.get(), PATIENCE_S)

    async def ended(self) -> Post:
        """The next request with a body, once it is whole."""
        return await asyncio.wait_for(self._ended.get(), PATIENCE_S)

    def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._serving.append(asyncio.create_task(self._serve(reader, writer)))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(asyncio.IncompleteReadError, ConnectionError):
                while answer := await self._answer(reader):
                    writer.write(answer)
                    await writer.drain()
        finally:
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader) -> bytes | None:
        head = await reader.readuntil(b"\r\n\r\n")
        method, path, _ = head.decode().split(" ", 2)
        self.requests.append(f"{method} {path}")
        if method == "GET":
            return await self._script.get()
        post = Post(path, head)
        self._begun.put_nowait(post)
        if self._acknowledgement is None:
            return None
        if "Content-Length" in post.headers:
            post.add(await reader.readexactly(int(post.headers["Content-Length"])))
        else:
            await self._read_chunks(reader, post)
        self._ended.put_nowait(post)
        await self.takes_responses.wait()
        return self._acknowledgement

    async def _read_chunks(self, reader: asyncio.StreamReader, post: Post) -> None:
        line = b""
        while line != b"0\r\n":
            line = await reader.readuntil(b"\r\n")
            post.add(
                line + (await reader.readexactly(int(line, 16) + 2) if line[:1] != b"0" else b"")
            )
        while line != b"\r\n":
            line = await reader.readuntil(b"\r\n")
            post.add(line)


def chunks(raw: bytes) -> tuple[list[bytes], dict[str, str]]:
    """The chunks and the trailers of a whole chunked body."""
    found = []
    while True:
        size, raw = raw.split(b"\r\n", 1)
        if size == b"0":
            break
        length = int(size, 16)
        found.append(raw[:length])
        assert raw[length : length + 2] == b"\r\n"
        raw = raw[length + 2 :]
    *lines, blank, rest = raw.decode().split("\r\n")
    assert (blank, rest) == ("", "")
    return found, {name: value for name, _, value in (line.partition(": ") for line in lines)}
