"""Servers that end connections at the worst moment, or send what was not asked for."""

import asyncio
import socket
import ssl
import threading
from pathlib import Path

import pytest

from tests.functional.http1.scripted_server import (
    PATIENCE_S,
    ask,
    pooled,
    serving,
    whole,
)
from tests.functional.http1.test_pool import OK, certificate
from tollgate.http1.errors import BrokenReply
from tollgate.http1.request import Request


def answer_and_end(listening: socket.socket, tls: ssl.SSLContext, raw: bytes) -> socket.socket:
    """Take one request, send the reply and the end of the connection without the end of TLS."""
    taken, _ = listening.accept()
    encrypted = tls.wrap_socket(taken, server_side=True)
    encrypted.recv(65_536)
    encrypted.sendall(raw)
    plain = socket.socket(fileno=encrypted.detach())
    plain.shutdown(socket.SHUT_WR)
    return plain


@pytest.mark.parametrize("size", [70_000, 400_000])
async def test_a_whole_reply_over_tls_survives_the_end_of_its_connection(
    size: int, tmp_path: Path
) -> None:
    """While its reader is slow, asyncio gets more of it than one read takes, and then the end."""
    theirs, pem = certificate(tmp_path, "127.0.0.1")
    ours = ssl.create_default_context(cadata=pem.decode())
    raw = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % size
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"https://127.0.0.1:{listening.getsockname()[1]}/"
        async with pooled(tls=ours) as pool:
            answering = asyncio.create_task(
                asyncio.to_thread(answer_and_end, listening, theirs, raw + b"x" * size)
            )
            reply = await pool.send(Request(method="GET", url=url, headers={}))
            with await answering:
                for _ in range(20):
                    await asyncio.sleep(0)
                assert await reply.read_all(size) == b"x" * size
            reply.close()


@pytest.mark.parametrize(
    "unasked",
    [b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", b""],
    ids=["a reply", "the end"],
)
async def test_what_came_before_a_request_is_not_its_reply(unasked: bytes) -> None:
    """It is in the system's hands: the event loop has had no time to read it."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setblocking(False)
        loop = asyncio.get_running_loop()
        request = Request(
            method="POST", url=f"http://127.0.0.1:{listening.getsockname()[1]}/", headers={}
        )

        async def answer() -> socket.socket:
            taken, _ = await loop.sock_accept(listening)
            await loop.sock_recv(taken, 65_536)
            taken.send(OK)
            return taken

        async with pooled() as pool:
            (_, first), kept = await asyncio.gather(whole(pool, request), answer())
            kept.send(unasked)
            kept.shutdown(socket.SHUT_WR)
            (reply, second), fresh = await asyncio.gather(whole(pool, request), answer())
            with kept, fresh:
                assert (reply.status, first, second) == (200, b"ok", b"ok")


async def test_tickets_of_tls_are_no_reason_to_connect_again(tmp_path: Path) -> None:
    """They came while the event loop was busy, so that nobody has read them yet."""
    theirs, pem = certificate(tmp_path, "127.0.0.1")
    ours = ssl.create_default_context(cadata=pem.decode())
    tickets_sent = threading.Event()

    def answer(listening: socket.socket) -> None:
        taken, _ = listening.accept()
        with theirs.wrap_socket(taken, server_side=True) as encrypted:
            tickets_sent.set()
            encrypted.recv(65_536)
            encrypted.sendall(OK)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"https://127.0.0.1:{listening.getsockname()[1]}/"
        async with pooled(tls=ours) as pool:
            answering = asyncio.create_task(asyncio.to_thread(answer, listening))
            reserved = await pool.reserve(Request(method="GET", url=url, headers={}))
            connection = reserved.connection
            # Without a turn of the event loop.
            assert tickets_sent.wait(PATIENCE_S)
            assert connection is not None
            assert not connection.is_quiet
            reply = await pool.send_reserved(reserved, connect_s=0.3)
            await answering
            assert await reply.read_all(2) == b"ok"
            reply.close()


async def test_a_trailer_may_announce_the_end_of_a_connection() -> None:
    """The parser remembers it, and would refuse the reply to the next request."""
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    raw = chunked + b"2\r\nok\r\n0\r\nConnection: close\r\n\r\n"
    async with serving(raw, OK) as server, pooled() as pool:
        assert (await whole(pool, ask(server)))[1] == b"ok"
        assert (await whole(pool, ask(server)))[1] == b"ok"
        assert server.connections == 2


async def test_a_body_over_tls_that_anybody_may_have_cut_is_not_whole(tmp_path: Path) -> None:
    """Without TLS's own end, anybody on the way can end a body that ends with its connection."""
    theirs, pem = certificate(tmp_path, "127.0.0.1")
    ours = ssl.create_default_context(cadata=pem.decode())
    raw = b"HTTP/1.1 200 OK\r\n\r\nbegun"
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"https://127.0.0.1:{listening.getsockname()[1]}/"
        async with pooled(tls=ours) as pool:
            answering = asyncio.create_task(
                asyncio.to_thread(answer_and_end, listening, theirs, raw)
            )
            with pytest.raises(BrokenReply):
                await whole(pool, Request(method="GET", url=url, headers={}))
            (await answering).close()
