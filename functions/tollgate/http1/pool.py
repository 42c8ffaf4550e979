"""A pool of connections that stay open between requests."""

import asyncio
from collections.abc import Generator
from types import coroutine
from typing import Final

from msgspec import Struct

from tollgate.http1.connecting import TlsContext, connect, make_buffer, tls_context
from tollgate.http1.connection import Connection
from tollgate.http1.errors import ConnectionLost, ConnectTimedOut
from tollgate.http1.exchange import exchange
from tollgate.http1.reply import Reply
from tollgate.http1.request import Origin, Request, write_request

_KEPT_S: Final = 30.0


class Reservation(Struct, kw_only=True, eq=False):
    """An unsent request, and the connection reserved for it."""

    pool: "Pool"
    request: Request
    origin: Origin
    head: bytes
    connection: Connection | None
    """None after the request was sent or the connection released."""
    kept_until_s: float | None
    """Time at which the connection is closed if unused; None for a new connection."""

    def take(self) -> Connection:
        """Return the connection; a second call raises RuntimeError."""
        connection, self.connection = self.connection, None
        if connection is None:
            raise RuntimeError("the request was sent, or its connection released")
        return connection

    def release(self) -> None:
        """Return the connection to the pool if the request was not sent."""
        if self.connection is not None:
            self.pool.take_back(self.origin, self.take(), self.kept_until_s)


class Pool:
    """Connections to any server: at most `connections_max` in use, and as many idle.

    A pool works only in the event loop of its first request; in others it raises RuntimeError.
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
        # Idle connections by server, each with its closing time; the one that was used last is
        # reused first.
        self._idle: dict[Origin, list[tuple[Connection, float]]] = {}
        self._idle_count = 0
        self._closing: asyncio.TimerHandle | None = None

    async def send(self, request: Request, *, connect_s: float | None = None) -> Reply:
        """Send a request once and return its reply, which the caller must close; raise HttpError.

        `connect_s` limits the wait for a connection.
        """
        return await self._send(await self.reserve(request, connect_s=connect_s))

    async def reserve(
        self, request: Request, *, connect_s: float | None = None, fresh: bool = False
    ) -> Reservation:
        """Reserve a connection for a request that is not sent yet; raise HttpError.

        A `fresh` connection has served no other request.
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
            pool=self,
            request=request,
            origin=origin,
            head=head,
            connection=connection,
            kept_until_s=until_s,
        )

    async def send_reserved(
        self, reserved: Reservation, *, connect_s: float | None = None
    ) -> Reply:
        """Send a reserved request; use a new connection if the reserved one has ended."""
        connection = reserved.connection
        if not (connection is None or connection.is_quiet or await _becomes_quiet(connection)):
            reserved.take().abort()
            self._free.release()
            reserved = await self.reserve(reserved.request, connect_s=connect_s, fresh=True)
        return await self._send(reserved)

    def take_back(self, origin: Origin, unused: Connection, until_s: float | None) -> None:
        """Keep a connection that was reserved but not used, without extending its closing time."""
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
                # The other idle connections to the server have probably ended too, for example
                # while the process was frozen.
                self._drop(origin)
            raise
        return Reply(connection, lambda used: self._release(origin, used))

    async def close(self) -> None:
        """Close the idle connections; the next request opens a new one."""
        idle, self._idle, self._idle_count = self._idle, {}, 0
        if self._closing is not None:
            self._closing.cancel()
            self._closing = None
        for waiting in idle.values():
            for connection, _ in waiting:
                connection.abort()
                await connection.wait_closed()

    def _claim_loop(self) -> None:
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            if self._loop is not None:
                # Idle connections depend on the first event loop for reading and for their timer,
                # and that loop may be closed or never run again.
                raise RuntimeError("a pool works only in the event loop of its first request")
            self._loop = loop

    async def _enter(self, connect_s: float | None) -> None:
        """Wait until fewer than `connections_max` connections are in use."""
        if not self._free.locked():
            await self._free.acquire()
            return
        try:
            async with asyncio.timeout(connect_s):
                await self._free.acquire()
        except TimeoutError as late:
            raise ConnectTimedOut("no connection was free in time") from late

    def _take(self, origin: Origin) -> tuple[Connection, float] | tuple[None, None]:
        """Return an idle connection that seems alive and its closing time, or (None, None)."""
        waiting = self._idle.get(origin)
        now_s = asyncio.get_running_loop().time()
        while waiting:
            connection, until_s = waiting.pop()
            self._idle_count -= 1
            if now_s < until_s and connection.is_quiet:
                return connection, until_s
            connection.abort()
        return None, None

    def _drop(self, origin: Origin) -> None:
        """Close the idle connections to one server."""
        dropped = self._idle.pop(origin, [])
        self._idle_count -= len(dropped)
        for connection, _ in dropped:
            connection.abort()

    def _release(self, origin: Origin, connection: Connection) -> None:
        self._free.release()
        if connection.finish():
            self._keep(origin, connection)

    def _keep(self, origin: Origin, connection: Connection, until_s: float | None = None) -> None:
        if self._idle_count >= self._connections_max:
            connection.abort()
            return
        loop = asyncio.get_running_loop()
        until_s = loop.time() + self._kept_s if until_s is None else until_s
        self._idle.setdefault(origin, []).append((connection, until_s))
        self._idle_count += 1
        if self._closing is None:
            self._closing = loop.call_at(until_s, self._close_unused)

    def _close_unused(self) -> None:
        """Close connections that were idle for too long, and set the timer for the next ones."""
        self._closing = None
        loop = asyncio.get_running_loop()
        now_s = loop.time()
        next_s: list[float] = []
        for origin, waiting in list(self._idle.items()):
            lasting = []
            for connection, until_s in waiting:
                if connection.is_open and now_s < until_s:
                    lasting.append((connection, until_s))
                    next_s.append(until_s)
                else:
                    connection.abort()
            self._idle_count -= len(waiting) - len(lasting)
            if lasting:
                self._idle[origin] = lasting
            else:
                del self._idle[origin]
        if next_s:
            self._closing = loop.call_at(min(next_s), self._close_unused)


async def _becomes_quiet(connection: Connection) -> bool:
    """Return True if only TLS's own bytes have arrived, such as session tickets.

    Tickets follow the handshake, and a busy event loop may not have read them yet.
    """
    # The event loop notices the bytes in its next iteration, and reads them in the following one.
    await _turn()
    await _turn()
    return connection.is_quiet


@coroutine
def _turn() -> Generator[None, None, None]:
    """Let the event loop run one iteration."""
    yield
