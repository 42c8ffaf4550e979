"""A TCP listener on 127.0.0.1 whose connections are tasks that somebody looks after."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from tests.emulator.http1 import HEAD_BYTES_MAX, Truncated

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Listener:
    """Calls `serve` for each connection and closes it afterwards.

    A peer that leaves ends its connection quietly; any other exception is a fault of the emulator
    and goes to `failures`, which end the test.
    """

    def __init__(self, serve: Serve, failures: list[Exception]) -> None:
        self._serve = serve
        self._failures = failures
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    async def start(self) -> str:
        """Returns host:port."""
        # Not a coroutine: asyncio 3.11 logs a traceback for each of its own that is cancelled.
        self._server = await asyncio.start_server(
            self._connected, "127.0.0.1", 0, limit=HEAD_BYTES_MAX
        )
        host, port = self._server.sockets[0].getsockname()[:2]
        return f"{host}:{port}"

    async def close(self, *, drain_s: float = 0) -> None:
        """Stop listening; connections get `drain_s` to come to their end by themselves."""
        if self._server is not None:
            self._server.close()
        if self._connections and drain_s:
            await asyncio.wait(self._connections, timeout=drain_s)
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._run(reader, writer))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _run(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._serve(reader, writer)
        except (Truncated, ConnectionError):
            # A client that left, or a process that died: both are recorded where they matter.
            pass
        except Exception as error:
            self._failures.append(error)
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()
