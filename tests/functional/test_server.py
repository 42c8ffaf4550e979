"""The web server of `tollgate dev` and `tollgate serve`: its sockets.

Keeps no contract statement: it holds what a client feels as speed.
"""

import asyncio
import socket

from tollgate.cli.server.server import listen_on


async def test_a_small_answer_waits_for_no_acknowledgement() -> None:
    delays: list[int] = []

    def accepted(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = writer.get_extra_info("socket")
        delays.append(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        writer.close()

    listener = listen_on("127.0.0.1", 0)
    async with await asyncio.start_server(accepted, sock=listener):
        reader, writer = await asyncio.open_connection(*listener.getsockname())
        await reader.read()
        writer.close()
    assert delays == [1]
