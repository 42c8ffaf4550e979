"""Sends one request, over an open connection or over a connection that ends with the reply."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Final

from tollgate.http1.connecting import connect, make_buffer
from tollgate.http1.connection import Connection
from tollgate.http1.errors import TimedOut
from tollgate.http1.reply import Reply
from tollgate.http1.request import Origin, Request, write_request

# Maximum size of a body that is sent together with its head in one write.
_TOGETHER_BYTES: Final = 64 * 1024

# Returns a new connection to a server; raises HttpError.
Connect = Callable[[Origin], Awaitable[Connection]]


async def connect_anywhere(origin: Origin) -> Connection:
    """Return a connection to a server that the operator configured, at any address."""
    return await connect(origin, make_buffer())


@asynccontextmanager
async def send_alone(
    request: Request, *, timeout_s: float | None = None, connect: Connect = connect_anywhere
) -> AsyncIterator[Reply]:
    """Send a request over a new connection, and yield the reply; raise HttpError.

    `timeout_s` includes the time that the caller spends within the context.
    """
    origin, head = write_request(request)
    try:
        async with asyncio.timeout(timeout_s):
            connection = await connect(origin)
            try:
                await exchange(connection, head, request.body)
                yield Reply(connection, Connection.abort)
            finally:
                connection.abort()
    except TimeoutError as late:
        raise TimedOut("did not answer in time") from late


async def exchange(connection: Connection, head: bytes, body: Sequence[bytes | memoryview]) -> None:
    """Send a request, and wait for the reply's head; raise ConnectionLost or BrokenReply."""
    if sum(map(len, body)) <= _TOGETHER_BYTES:
        await connection.send(b"".join((head, *body)))
    else:
        await connection.send(head)
        for part in body:
            await connection.send(part)
    await connection.receive()
