"""The strings of samples/puppet.py, a gate for lock-step, and a client that sees raw chunks."""

from __future__ import annotations

import asyncio
import base64
import json
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

SAMPLES = Path(__file__).parent / "samples"
Steps = list[list[Any]]

STREAMING = {
    "Lambda-Runtime-Function-Response-Mode": "streaming",
    "Transfer-Encoding": "chunked",
    "Content-Type": "application/vnd.awslambda.http-integration-response",
    "Trailer": "Lambda-Runtime-Function-Error-Type, Lambda-Runtime-Function-Error-Body",
}
PRELUDE = '{"statusCode":200,"headers":{"content-type":"text/event-stream"}}'
NULS = "\0" * 8


def post(headers: dict[str, str], *, call: str = "response", body: str | None = None) -> Steps:
    """The head of a POST for the current invocation, with a whole body where one is given."""
    lines = [f"POST /2018-06-01/runtime/invocation/{{id}}/{call} HTTP/1.1", "Host: {host}"]
    if body is not None:
        headers = {**headers, "Content-Length": str(len(body))}
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return [["send", "\r\n".join(lines) + "\r\n\r\n" + (body or "")]]


def chunk(text: str) -> Steps:
    return [["send", f"{len(text):x}\r\n{text}\r\n"]]


def end(trailers: dict[str, str] | None = None) -> Steps:
    """The last chunk; then the answer is read and the connection closed."""
    lines = "".join(f"{name}: {value}\r\n" for name, value in (trailers or {}).items())
    return [["send", f"0\r\n{lines}\r\n"], ["read", None], ["close", None]]


def opened(prelude: str = PRELUDE, **headers: str) -> Steps:
    """A stream up to and with its delimiter."""
    return post({**STREAMING, **headers}) + chunk(prelude + NULS)


def streamed(*texts: str) -> Steps:
    """A good stream."""
    return opened() + [step for text in texts for step in chunk(text)] + end()


def error_trailers(error_type: str, message: str) -> dict[str, str]:
    document = json.dumps({"errorMessage": message, "errorType": error_type})
    return {
        "Lambda-Runtime-Function-Error-Type": error_type,
        "Lambda-Runtime-Function-Error-Body": base64.b64encode(document.encode()).decode(),
    }


class Gate:
    """Puppets that wait stand at it until the test lets them through."""

    def __init__(self) -> None:
        self.port = 0
        self._waiting: asyncio.Queue[tuple[str, asyncio.StreamWriter]] = asyncio.Queue()
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._arrive, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._server is not None
        self._server.close()

    async def open(self, name: str) -> None:
        """Wait for the puppet at this gate and let it go on."""
        arrived, writer = await self._waiting.get()
        assert arrived == name
        writer.write(b"!")
        await writer.drain()
        writer.close()

    async def _arrive(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        name = (await reader.readline()).decode().rstrip("\n")
        self._waiting.put_nowait((name, writer))


@dataclass
class Response:
    """A response whose chunks are read one by one; `cut` when it ended without its last chunk."""

    status: int
    headers: dict[str, list[str]]
    reader: asyncio.StreamReader = field(repr=False)
    writer: asyncio.StreamWriter = field(repr=False)
    cut: bool = False

    async def chunk(self) -> bytes | None:
        """The next chunk; None at the end."""
        try:
            size = int(await self.reader.readuntil(b"\r\n"), 16)
            data = (await self.reader.readexactly(size + 2))[:-2]
        except asyncio.IncompleteReadError:
            self.cut = True
            return None
        return data or None

    async def body(self) -> bytes:
        """The whole rest."""
        if "content-length" in self.headers:
            return await self.reader.readexactly(int(self.headers["content-length"][0]))
        data = b""
        if "transfer-encoding" in self.headers:
            while piece := await self.chunk():
                data += piece
        return data

    async def json(self) -> Any:
        return json.loads(await self.body())

    def close(self) -> None:
        self.writer.close()


async def request(
    url: str, body: object = None, *, method: str = "POST", headers: dict[str, str] | None = None
) -> Response:
    """Send one request on a connection of its own; returns when the response's head is there."""
    host, _, target = url.removeprefix("http://").partition("/")
    reader, writer = await asyncio.open_connection(*host.split(":"))
    content = body if isinstance(body, bytes) else json.dumps(body).encode() if body else b""
    lines = [f"{method} /{target} HTTP/1.1", f"Host: {host}", f"Content-Length: {len(content)}"]
    sent = {"Content-Type": "application/json", **(headers or {})}
    lines += [f"{name}: {value}" for name, value in sent.items()]
    writer.write(("\r\n".join(lines) + "\r\n\r\n").encode() + content)
    await writer.drain()
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    found: dict[str, list[str]] = {}
    for line in head[1:-2]:
        name, _, value = line.partition(": ")
        found.setdefault(name.lower(), []).append(value)
    return Response(int(head[0].split(" ")[1]), found, reader, writer)
