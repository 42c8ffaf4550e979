"""Open connections."""

import asyncio
import ssl
from collections.abc import Callable
from functools import cache
from typing import Final

from tollgate.http1.connection import READ_BYTES, Connection
from tollgate.http1.errors import CannotConnect, ConnectTimedOut
from tollgate.http1.loop_timeout import LoopTimeout
from tollgate.http1.request import Origin

# RFC 8305 recommends it between attempts at the addresses of one name.
_NEXT_ADDRESS_S: Final = 0.25

TlsContext = Callable[[], ssl.SSLContext]


@cache
def tls_context() -> ssl.SSLContext:
    """Return the context of every connection, which checks certificate and host.

    Made with the first connection that needs it: reading the authorities takes longer than
    importing this package.
    """
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


def make_buffer() -> memoryview:
    """Return what the connections of one event loop read into."""
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

    It goes to `address` where one is given, and no name is resolved; the certificate has to be that
    of the origin all the same.
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
                # asyncio's race between addresses has nothing to do where there is one.
                happy_eyeballs_delay=None if _is_address(host) else _NEXT_ADDRESS_S,
            )
    except TimeoutError as late:
        raise ConnectTimedOut("no connection in time") from late
    except (OSError, UnicodeError) as failed:
        raise CannotConnect("cannot connect") from failed
    return connection


def _is_address(host: str) -> bool:
    return ":" in host or host.replace(".", "").isdigit()
