"""Opening of connections."""

import asyncio
import ssl
from collections.abc import Callable
from functools import cache
from types import TracebackType
from typing import Final

from tollgate.http1.connection import READ_BYTES, Connection
from tollgate.http1.errors import CannotConnect, ConnectTimedOut
from tollgate.http1.request import Origin

# The delay that RFC 8305 recommends between attempts at the addresses of one name.
_NEXT_ADDRESS_S: Final = 0.25
# The share of a time limit that begins only when the event loop gets to it.
_LAST_PART: Final = 0.05

TlsContext = Callable[[], ssl.SSLContext]


class LoopTimeout:
    """A limit like that of `asyncio.timeout`, which raises TimeoutError; None is no limit.

    If a process had no CPU for longer than the limit, the awaited result and the timer are due at
    the same time when it wakes up. asyncio then discards the result; here the last twentieth of the
    limit begins when the event loop gets to it.
    """

    __slots__ = ("_limit_s", "_timeout", "_timer")

    def __init__(self, limit_s: float | None) -> None:
        self._limit_s = limit_s
        self._timeout = asyncio.timeout(None)
        self._timer: asyncio.TimerHandle | None = None

    async def __aenter__(self) -> None:
        if self._limit_s is not None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._limit_s * (1 - _LAST_PART), self._begin_last_part)
        await self._timeout.__aenter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        await self._timeout.__aexit__(kind, error, traceback)

    def _begin_last_part(self) -> None:
        loop = asyncio.get_running_loop()
        self._timeout.reschedule(loop.time() + (self._limit_s or 0) * _LAST_PART)


@cache
def tls_context() -> ssl.SSLContext:
    """Return the TLS context of all connections, which verifies certificate and host.

    It is made with the first connection that needs it: loading the certificate authorities takes
    longer than importing this package.
    """
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


def make_buffer() -> memoryview:
    """Return the buffer into which all connections of one event loop read."""
    return memoryview(bytearray(READ_BYTES))


async def connect(
    origin: Origin,
    buffer: memoryview,
    *,
    address: str | None = None,
    timeout_s: float | None = None,
    tls: TlsContext = tls_context,
) -> Connection:
    """Return a new connection; raise CannotConnect. asyncio sets TCP_NODELAY on it.

    If `address` is stated, the connection goes there and no name is resolved; the certificate must
    still be that of the origin.
    """
    secure = origin.scheme == "https"
    host = address or origin.host
    try:
        async with LoopTimeout(timeout_s):
            _, connection = await asyncio.get_running_loop().create_connection(
                lambda: Connection(buffer),
                host,
                origin.port,
                ssl=tls() if secure else None,
                server_hostname=origin.host.rstrip(".") if secure else None,
                # With a single address there are no addresses to try in parallel.
                happy_eyeballs_delay=None if _is_address(host) else _NEXT_ADDRESS_S,
            )
    except TimeoutError as late:
        raise ConnectTimedOut("no connection in time") from late
    except (OSError, UnicodeError) as failed:
        raise CannotConnect("cannot connect") from failed
    return connection


def _is_address(host: str) -> bool:
    return ":" in host or host.replace(".", "").isdigit()
