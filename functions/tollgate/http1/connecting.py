"""Opening of connections."""

import asyncio
import ssl
from collections.abc import Callable
from functools import cache
from typing import Final

from tollgate.http1.connection import READ_BYTES, Connection
from tollgate.http1.errors import CannotConnect, ConnectTimedOut
from tollgate.http1.loop_timeout import LoopTimeout
from tollgate.http1.request import Origin

# The delay that RFC 8305 recommends between attempts at the addresses of one name.
_NEXT_ADDRESS_S: Final = 0.25

TlsContext = Callable[[], ssl.SSLContext]


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
