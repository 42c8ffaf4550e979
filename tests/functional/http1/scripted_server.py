"""A server that answers with raw bytes, piece by piece, and keeps what it is sent."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from tollgate.http1.connecting import tls_context
from tollgate.http1.pool import Pool
from tollgate.http1.reply import Reply
from tollgate.http1.request import Request

PATIENCE_S = 10.0


@dataclass
class Answer:
    """What one request gets; `then` says what becomes of the connection."""

    pieces: Sequence[bytes] = ()
    then: str = "keep"
    # Released once for each piece after the first.
    gate: asyncio.Semaphore | None = None


@dataclass
class ScriptedServer:
    """Gives the answers in order, over any number of connections."""

    answers: list[Answer]
    requests: list[bytes] = field(default_factory=list)
    connections: int = 0
    met: asyncio.Event = field(default_factory=asyncio.Event)
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    port: int = 0
    # Reads no body before it answers.
    is_hasty: bool = False

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.met.set()
        try:
            with suppress(asyncio.IncompleteReadError, ConnectionError):
                while True:
                    await self._read_request(reader)
                    answer = self.answers.pop(0) if self.answers else Answer(then="hang")
                    await self._write(writer, answer)
                    if answer.then == "close":
                        return
                    if answer.then == "reset":
                        writer.transport.abort()
                        return
                    if answer.then == "hang":
                        await reader.read()
                        return
        finally:
            self.gone.set()
            writer.close()

    async def _read_request(self, reader: asyncio.StreamReader) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        _, found, rest = head.lower().partition(b"content-length: ")
        size = int(rest.split(b"\r\n")[0]) if found and not self.is_hasty else 0
        self.requests.append(head + await reader.readexactly(size))

    async def _write(self, writer: asyncio.StreamWriter, answer: Answer) -> None:
        for number, piece in enumerate(answer.pieces):
            if number and answer.gate is not None:
                await answer.gate.acquire()
            elif number:
                await asyncio.sleep(0)
            writer.write(piece)
            await writer.drain()


@asynccontextmanager
async def serving(
    *answers: Answer | bytes, tls: ssl.SSLContext | None = None, is_hasty: bool = False
) -> AsyncIterator[ScriptedServer]:
    scripted = [it if isinstance(it, Answer) else Answer([it]) for it in answers]
    it = ScriptedServer(scripted, is_hasty=is_hasty)
    server = await asyncio.start_server(it.serve, "127.0.0.1", 0, ssl=tls)
    it.port = server.sockets[0].getsockname()[1]
    try:
        yield it
    finally:
        server.close()


@asynccontextmanager
async def pooled(
    *, connections_max: int = 4, tls: ssl.SSLContext | None = None, kept_s: float = 30.0
) -> AsyncIterator[Pool]:
    pool = Pool(connections_max, kept_s=kept_s, tls=(lambda: tls) if tls else tls_context)
    try:
        async with asyncio.timeout(PATIENCE_S):
            yield pool
    finally:
        await pool.close()


def ask(server: ScriptedServer, **fields: object) -> Request:
    """A request to the server."""
    whole = {
        "method": "POST",
        "url": f"http://127.0.0.1:{server.port}/",
        "headers": {},
        "body": (b"{}",),
    }
    return Request(**(whole | fields))  # type: ignore[arg-type]


async def whole(pool: Pool, request: Request, bytes_max: int = 1_000_000) -> tuple[Reply, bytes]:
    """The reply to a request, and its body."""
    reply = await pool.send(request, connect_s=5)
    try:
        return reply, await reply.read_all(bytes_max)
    finally:
        reply.close()
