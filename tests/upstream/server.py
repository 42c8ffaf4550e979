"""A provider that does exactly what its script says, over a real socket, one step at a time."""

import asyncio
import json
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Literal, Self

# clean: the body is finished properly        close: the connection closes in the middle of the body
# hang:  nothing more is sent                 reset: the connection is reset (RST)
# late:  finished properly, but only after the client has had turns to read its last chunk
End = Literal["clean", "close", "hang", "late", "reset"]
_TURNS = 50


@dataclass(frozen=True, kw_only=True)
class Script:
    """What is answered to one request.

    `lock_step` holds chunk k back until `release()` was awaited for the k-th time.
    `before_headers` says what happens instead of an answer. `raw` is sent verbatim in place of
    status line, headers and body.
    """

    status: int = 200
    headers: Mapping[str, str] = field(
        default_factory=lambda: {"content-type": "text/event-stream"}
    )
    chunks: Sequence[bytes] = ()
    end: End = "clean"
    lock_step: bool = False
    before_headers: Literal["answer", "hang", "close"] = "answer"
    raw: bytes | None = None

    @classmethod
    def json(cls, status: int, body: object, **headers: str) -> "Script":
        """A whole JSON reply; header names are written with underscores."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return cls(
            status=status,
            headers={"content-type": "application/json", **named},
            chunks=[json.dumps(body).encode()],
        )


@dataclass(frozen=True, kw_only=True)
class Received:
    """A request as it came in; `connection` numbers the sockets that were accepted."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    connection: int

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class FakeUpstream:
    """Serves enqueued scripts in order on 127.0.0.1; a request without a script is answered 599."""

    def __init__(self) -> None:
        self.received: list[Received] = []
        self.connections = 0
        self.client_gone = asyncio.Event()
        self._scripts: deque[Script] = deque()
        self._releases = asyncio.Semaphore(0)
        self._arrivals = asyncio.Semaphore(0)
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    @property
    def url(self) -> str:
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    def enqueue(self, *scripts: Script) -> None:
        self._scripts.extend(scripts)

    @property
    def unplayed(self) -> int:
        """How many scripts nobody has asked for yet."""
        return len(self._scripts)

    def reset(self) -> None:
        """Forget what was enqueued, received and released."""
        self.received.clear()
        self._scripts.clear()
        self._releases = asyncio.Semaphore(0)
        self._arrivals = asyncio.Semaphore(0)
        self.client_gone = asyncio.Event()

    async def release(self) -> None:
        """Let the next chunk of a lock-step script go."""
        self._releases.release()
        await asyncio.sleep(0)

    async def end_connections(self) -> None:
        """Close every connection that is open, and let the client notice."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for _ in range(_TURNS):
            await asyncio.sleep(0)

    async def requested(self) -> None:
        """Wait for the next request to have come in."""
        await self._arrivals.acquire()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.create_task(self._serve(reader, writer, self.connections))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, connection: int
    ) -> None:
        first = b""
        try:
            while (received := await _read_request(reader, first, connection)) is not None:
                self.received.append(received)
                self._arrivals.release()
                script = self._scripts.popleft() if self._scripts else Script(status=599)
                watch = asyncio.create_task(self._watch(reader))
                try:
                    if not await self._play(script, writer):
                        return
                finally:
                    watch.cancel()
                    (first,) = await asyncio.gather(watch, return_exceptions=True)
                first = first if isinstance(first, bytes) else b""
        except ConnectionError:
            self.client_gone.set()
        finally:
            writer.close()

    async def _watch(self, reader: asyncio.StreamReader) -> bytes:
        """Notice a client that leaves while it is answered; else the next request's first byte."""
        try:
            first = await reader.read(1)
        except ConnectionError:
            first = b""
        if not first:
            self.client_gone.set()
        return first

    async def _play(self, script: Script, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; whether the connection lives on."""
        if script.before_headers == "hang":
            await asyncio.Event().wait()
        if script.before_headers == "close":
            return False
        if script.raw is not None:
            writer.write(script.raw)
            await writer.drain()
            return False
        lines = [f"HTTP/1.1 {script.status} Scripted", "transfer-encoding: chunked"]
        lines += [f"{name}: {value}" for name, value in script.headers.items()]
        writer.write("\r\n".join([*lines, "", ""]).encode())
        await writer.drain()
        for chunk in script.chunks:
            if script.lock_step:
                await self._releases.acquire()
            writer.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
            await writer.drain()
        return await _finish(script.end, writer)


async def _finish(end: End, writer: asyncio.StreamWriter) -> bool:
    if end == "late":
        for _ in range(_TURNS):
            await asyncio.sleep(0)
    if end in {"clean", "late"}:
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True
    if end == "hang":
        await asyncio.Event().wait()
    if end == "reset":
        writer.transport.abort()
    return False


async def _read_request(
    reader: asyncio.StreamReader, first: bytes, connection: int
) -> Received | None:
    try:
        head = first + await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    request_line, *lines = head.decode("latin-1").split("\r\n")
    method, path, _ = request_line.split(" ", 2)
    pairs = (line.partition(":") for line in lines if line)
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Received(method=method, path=path, headers=headers, body=body, connection=connection)
