"""Keep connections between requests."""

import asyncio
from collections.abc import Generator
from types import coroutine
from typing import Final

from tollgate.http1.connecting import TlsContext, connect, make_buffer, tls_context
from tollgate.http1.connection import Connection
from tollgate.http1.errors import ConnectionLost, ConnectTimedOut
from tollgate.http1.exchange import exchange
from tollgate.http1.reply import Reply
from tollgate.http1.request import Origin, Request, write_request

_KEPT_S: Final = 30.0


class Reservation:
    """A request and the connection that it will leave on; nothing of it was sent."""

    __slots__ = ("_pool", "connection", "head", "kept_until_s", "origin", "request")

    def __init__(
        self,
        pool: "Pool",
        request: Request,
        *,
        origin: Origin,
        head: bytes,
        connection: Connection,
        kept_until_s: float | None,
    ) -> None:
        self._pool = pool
        self.request = request
        self.origin = origin
        self.head = head
        self.connection: Connection | None = connection
        self.kept_until_s = kept_until_s
        """The time at which its connection is closed unused; None for a new one."""

    def take(self) -> Connection:
        """Return the connection, once."""
        connection, self.connection = self.connection, None
        if connection is None:
            raise RuntimeError("the request was sent, or its connection released")
        return connection

    def release(self) -> None:
        """Let the connection serve another request, if this one was not sent."""
        if self.connection is not None:
            self._pool.take_back(self.origin, self.take(), self.kept_until_s)


class Pool:
    """Connections to any server, at most `connections_max` in use and as many kept.

    It belongs to the event loop of its first request, and raises RuntimeError in another one.
    """

    def __init__(
        self,
        connections_max: int,
        *,
        kept_s: float = _KEPT_S,
        tls: TlsContext = tls_context,
    ) -> None:
        self._connections_max = connections_max
        self._kept_s = kept_s
        self._tls = tls
        self._buffer = make_buffer()
        self._free = asyncio.Semaphore(connections_max)
        self._loop: asyncio.AbstractEventLoop | None = None
        # For each server, with the time at which a connection is closed unused; the last one first.
        self._kept: dict[Origin, list[tuple[Connection, float]]] = {}
        self._kept_count = 0
        self._closing: asyncio.TimerHandle | None = None

    async def send(self, request: Request, *, connect_s: float | None = None) -> Reply:
        """Send a request once, and return its reply, which has to be closed; raise HttpError.

        `connect_s` limits waiting for a connection.
        """
        return await self._send(await self.reserve(request, connect_s=connect_s))

    async def reserve(
        self, request: Request, *, connect_s: float | None = None, fresh: bool = False
    ) -> Reservation:
        """Return a request with a connection of its own, to be sent or released; raise HttpError.

        Nothing of the request is sent. A `fresh` connection has served no other request.
        """
        origin, head = write_request(request)
        self._claim_loop()
        await self._enter(connect_s)
        try:
            connection, until_s = (None, None) if fresh else self._take(origin)
            if connection is None:
                connection = await connect(origin, self._buffer, timeout_s=connect_s, tls=self._tls)
        except BaseException:
            self._free.release()
            raise
        return Reservation(
            self, request, origin=origin, head=head, connection=connection, kept_until_s=until_s
        )

    async def send_reserved(
        self, reserved: Reservation, *, connect_s: float | None = None
    ) -> Reply:
        """Send as `send` does, on another connection if the one that waited has ended meanwhile."""
        connection = reserved.connection
        if not (connection is None or connection.is_quiet or await _becomes_quiet(connection)):
            reserved.take().abort()
            self._free.release()
            reserved = await self.reserve(reserved.request, connect_s=connect_s, fresh=True)
        return await self._send(reserved)

    def take_back(self, origin: Origin, unused: Connection, until_s: float | None) -> None:
        """Keep a connection that was reserved in vain, not longer than before if it was kept."""
        self._free.release()
        self._keep(origin, unused, until_s)

    async def _send(self, reserved: Reservation) -> Reply:
        origin, connection = reserved.origin, reserved.take()
        try:
            await exchange(connection, reserved.head, reserved.request.body)
        except BaseException as failed:
            connection.abort()
            self._free.release()
            if isinstance(failed, ConnectionLost) and reserved.kept_until_s is not None:
                # The other kept connections to the server most likely ended in the same way, such
                # as while the process was frozen: the next request needs one that lives.
                self._drop(origin)
            raise
        return Reply(connection, lambda used: self._release(origin, used))

    async def close(self) -> None:
        """Close the connections that are kept; the next request opens a new one."""
        kept, self._kept, self._kept_count = self._kept, {}, 0
        if self._closing is not None:
            self._closing.cancel()
            self._closing = None
        for waiting in kept.values():
            for connection, _ in waiting:
                connection.abort()
                await connection.wait_closed()

    def _claim_loop(self) -> None:
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            if self._loop is not None:
                # What it keeps is read and timed by that loop, which may be closed or never run
                # again.
                raise RuntimeError("a pool serves the event loop of its first request alone")
            self._loop = loop

    async def _enter(self, connect_s: float | None) -> None:
        """Wait for a free connection."""
        if not self._free.locked():
            await self._free.acquire()
            return
        try:
            async with asyncio.timeout(connect_s):
                await self._free.acquire()
        except TimeoutError as late:
            raise ConnectTimedOut("no connection was free in time") from late

    def _take(self, origin: Origin) -> tuple[Connection, float] | tuple[None, None]:
        """Return a kept connection that seems alive, and its time."""
        waiting = self._kept.get(origin)
        now_s = asyncio.get_running_loop().time()
        while waiting:
            connection, until_s = waiting.pop()
            self._kept_count -= 1
            if now_s < until_s and connection.is_quiet:
                return connection, until_s
            connection.abort()
        return None, None

    def _drop(self, origin: Origin) -> None:
        """Close the kept connections to one server."""
        dropped = self._kept.pop(origin, [])
        self._kept_count -= len(dropped)
        for connection, _ in dropped:
            connection.abort()

    def _release(self, origin: Origin, connection: Connection) -> None:
        self._free.release()
        if connection.finish():
            self._keep(origin, connection)

    def _keep(self, origin: Origin, connection: Connection, until_s: float | None = None) -> None:
        if self._kept_count >= self._connections_max:
            connection.abort()
            return
        loop = asyncio.get_running_loop()
        until_s = loop.time() + self._kept_s if until_s is None else until_s
        self._kept.setdefault(origin, []).append((connection, until_s))
        self._kept_count += 1
        if self._closing is None:
            self._closing = loop.call_at(until_s, self._close_unused)

    def _close_unused(self) -> None:
        """Close what has not been used in time; a timer calls it while anything is kept."""
        self._closing = None
        loop = asyncio.get_running_loop()
        now_s = loop.time()
        next_s: list[float] = []
        for origin, waiting in list(self._kept.items()):
            lasting = []
            for connection, until_s in waiting:
                if connection.is_open and now_s < until_s:
                    lasting.append((connection, until_s))
                    next_s.append(until_s)
                else:
                    connection.abort()
            self._kept_count -= len(waiting) - len(lasting)
            if lasting:
                self._kept[origin] = lasting
            else:
                del self._kept[origin]
        if next_s:
            self._closing = loop.call_at(min(next_s), self._close_unused)


async def _becomes_quiet(connection: Connection) -> bool:
    """Return whether what has come is nothing but TLS's own, such as tickets of sessions.

    Tickets follow a handshake: where the event loop is busy, they wait when the request may leave.
    """
    # In its next turn the event loop sees what has come, behind what is ready; it is read then.
    await _turn()
    await _turn()
    return connection.is_quiet


@coroutine
def _turn() -> Generator[None, None, None]:
    """Let the event loop turn once."""
    yield
