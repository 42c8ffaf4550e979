"""Opens connections within a time limit."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import cache
from typing import Final

from tollgate.http1.connection import READ_BYTES, Connection
from tollgate.http1.errors import CannotConnect, ConnectTimedOut
from tollgate.http1.request import Origin

# Delay before the next address of a host is tried, as RFC 8305 recommends.
_NEXT_ADDRESS_S: Final = 0.25
# Share of a time limit that is counted only once the event loop runs.
_LAST_PART: Final = 0.05

TlsContext = Callable[[], ssl.SSLContext]


@asynccontextmanager
async def loop_timeout(limit_s: float | None) -> AsyncIterator[None]:
    """Raise TimeoutError after a time limit, like `asyncio.timeout`; None sets no limit.

    If a process had no CPU for longer than the limit, the awaited result and the timer are both due
    when the process wakes up. asyncio would then discard the result. Here the event loop can still
    deliver the result, because the last twentieth of the limit begins only when the loop runs.
    """
    if limit_s is None:
        yield
        return
    loop, last_s = asyncio.get_running_loop(), limit_s * _LAST_PART
    async with asyncio.timeout(None) as timeout:
        timer = loop.call_later(limit_s - last_s, lambda: timeout.reschedule(loop.time() + last_s))
        try:
            yield
        finally:
            timer.cancel()


@cache
def tls_context() -> ssl.SSLContext:
    """Return the TLS context for all connections, which verifies certificate and host name.

    The context is created on first use, because loading the certificate authorities is slow.
    """
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


def make_buffer() -> memoryview:
    """Return a buffer that all connections of an event loop read into."""
    return memoryview(bytearray(READ_BYTES))


async def connect(
    origin: Origin,
    buffer: memoryview,
    *,
    address: str | None = None,
    timeout_s: float | None = None,
    tls: TlsContext = tls_context,
) -> Connection:
    """Return a new connection; raise CannotConnect.

    `address` replaces the lookup of the host name; the certificate must still match that name.
    asyncio sets TCP_NODELAY.
    """
    secure = origin.scheme == "https"
    host = address or origin.host
    try:
        async with loop_timeout(timeout_s):
            _, connection = await asyncio.get_running_loop().create_connection(
                lambda: Connection(buffer),
                host,
                origin.port,
                ssl=tls() if secure else None,
                server_hostname=origin.host.rstrip(".") if secure else None,
                # A literal address leaves no other address to try in parallel.
                happy_eyeballs_delay=None if _is_address(host) else _NEXT_ADDRESS_S,
            )
    except TimeoutError as late:
        raise ConnectTimedOut("no connection in time") from late
    except (OSError, UnicodeError) as failed:
        raise CannotConnect("cannot connect") from failed
    return connection


def _is_address(host: str) -> bool:
    return ":" in host or host.replace(".", "").isdigit()
