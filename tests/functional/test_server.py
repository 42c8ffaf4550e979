"""The web server of `tollgate dev` and `tollgate serve`: its sockets.

Keeps C4, C40, C41: also for requests that no route sees.
"""

import asyncio
import json
import signal
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import httpx
import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from tests.deployment import PATIENCE_S
from tollgate.cli.server.connections import ConnectionLimits
from tollgate.cli.server.server import Server, address_text, listen_on, stop_on_signals
from tollgate.core.clock import SystemClock
from tollgate.core.ids import IdSource
from tollgate.engine.replies.sink import ClientGone

ENOUGH_S: Final = 0.2
GET: Final = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"
LONG: Final = b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 50000000000\r\n\r\n"
USUAL: Final = ConnectionLimits()


async def app(scope: Scope, _receive: Receive, send: Send) -> None:
    """Answer at once, without reading the body."""
    body = scope["path"].encode()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})


class Client:
    """A client that writes bytes of its own."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writer = writer
        self._reader = reader

    async def head(self) -> str:
        """The next head of an answer."""
        async with asyncio.timeout(PATIENCE_S):
            return (await self._reader.readuntil(b"\r\n\r\n")).decode().lower()

    async def rest(self) -> bytes:
        """Everything up to the end of the connection, which the server has to close."""
        async with asyncio.timeout(PATIENCE_S):
            return await self._reader.read()


class Running:
    """A running server."""

    def __init__(self, address: tuple[str, int], server: Server) -> None:
        self._address = address
        self.server = server
        self._clients: list[Client] = []

    @property
    def url(self) -> str:
        host, port = self._address
        return f"http://{host}:{port}/"

    async def connect(self, sent: bytes = b"") -> Client:
        client = Client(*await asyncio.open_connection(*self._address))
        client.writer.write(sent)
        self._clients.append(client)
        return client

    def reset(self) -> None:
        """Connect, and reset the connection at once."""
        with socket.create_connection(self._address) as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def close(self) -> None:
        for client in self._clients:
            client.writer.close()


@asynccontextmanager
async def serving(
    limits: ConnectionLimits = USUAL, *, served: ASGIApp = app
) -> AsyncIterator[Running]:
    listener = listen_on("127.0.0.1", 0, limits=limits)
    server = Server(served, listener, ids=IdSource(SystemClock()), drain_s=1)
    task = asyncio.create_task(server.serve(sockets=[listener]))
    running = Running(listener.getsockname(), server)
    try:
        yield running
    finally:
        running.close()
        server.stop()
        await task


def refused(answer: bytes) -> dict[str, Any]:
    """The error of a refusal, which has to be the only answer and the last one."""
    head, _, body = answer.partition(b"\r\n\r\n")
    lines = head.decode().lower().split("\r\n")
    assert lines[0].startswith("http/1.1 400"), head
    assert "connection: close" in lines
    error: dict[str, Any] = json.loads(body)["error"]
    assert error["code"] == "invalid_request"
    assert f"x-request-id: {error['request_id']}".lower() in lines
    return error


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


def test_an_address_of_ipv6_is_written_as_in_urls() -> None:
    assert address_text("::1", 80) == "[::1]:80"
    assert address_text("127.0.0.1", 80) == "127.0.0.1:80"


async def test_c36_a_server_that_nohup_has_started_outlives_its_terminal() -> None:
    listener = listen_on("127.0.0.1", 0)
    server = Server(app, listener, ids=IdSource(SystemClock()), drain_s=0)
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with stop_on_signals(server):
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
            assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        listener.close()
        signal.signal(signal.SIGHUP, before)


async def test_a_caller_on_this_machine_names_no_other_address() -> None:
    """Else every request would be counted, and audited, under an address of its choice."""
    scopes: list[Scope] = []

    async def noting(scope: Scope, receive: Receive, send: Send) -> None:
        scopes.append(scope)
        await app(scope, receive, send)

    forged = GET.replace(
        b"host: x", b"host: x\r\nx-forwarded-for: 9.9.9.9\r\nx-forwarded-proto: https"
    )
    async with serving(served=noting) as server:
        await (await server.connect(forged)).head()
    [scope] = scopes
    assert scope["client"][0] == "127.0.0.1"
    assert scope["scheme"] == "http"


@pytest.mark.parametrize("first", ["content-length: 5", "transfer-encoding: chunked"])
async def test_a_body_of_two_lengths_is_refused_with_what_follows_it(first: str) -> None:
    """A proxy that goes by the length takes the hidden request for a part of the first one's."""
    lengths = ["content-length: 5", "transfer-encoding: chunked"]
    lengths.sort(key=lambda line: line != first)
    head = "\r\n".join(["POST / HTTP/1.1", "host: x", *lengths, "", ""]).encode()
    async with serving() as server:
        client = await server.connect(head + b"0\r\n\r\n" + GET.replace(b"/ ", b"/hidden "))
        answer = await client.rest()
    assert "exclude each other" in refused(answer)["message"]
    assert b"hidden" not in answer


@pytest.mark.parametrize(
    "body",
    [b"content-length: 2\r\n\r\n{}", b"transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"],
)
async def test_either_length_by_itself_is_served_and_the_connection_is_kept(body: bytes) -> None:
    async def reading(scope: Scope, receive: Receive, send: Send) -> None:
        while (await receive()).get("more_body"):
            pass
        await app(scope, receive, send)

    async with serving(served=reading) as server:
        client = await server.connect(b"POST / HTTP/1.1\r\nhost: x\r\n" + body)
        assert (await client.head()).startswith("http/1.1 200")
        client.writer.write(GET.replace(b"/ ", b"/again "))
        client.writer.write_eof()
        assert b"/again" in await client.rest()


@pytest.mark.parametrize("before", [b"", GET])
async def test_a_head_that_trickles_is_cut(before: bytes) -> None:
    async with serving(ConnectionLimits(waiting_s=ENOUGH_S)) as server:
        client = await server.connect(before + GET[:-2])
        assert (await client.rest()).count(b"HTTP/1.1") == (1 if before else 0)


async def test_an_answer_that_takes_longer_than_a_head_may_is_sent_whole() -> None:
    """Two requests of one connection, of which the second begins before the first has returned."""
    begun = asyncio.Event()

    async def lingering(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == "/again":
            begun.set()
            await asyncio.sleep(2 * ENOUGH_S)
        await app(scope, receive, send)
        if scope["path"] != "/again":
            await begun.wait()

    async with serving(ConnectionLimits(waiting_s=ENOUGH_S), served=lingering) as server:
        client = await server.connect(GET + GET.replace(b"/ ", b"/again "))
        assert b"/again" in await client.rest()


async def test_a_long_answer_is_sent_whole_to_a_caller_that_reads_slowly() -> None:
    content = b"x" * 8_000_000

    async def long(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": content})

    async with serving(ConnectionLimits(waiting_s=ENOUGH_S), served=long) as server:
        client = await server.connect(GET)
        await client.head()
        await asyncio.sleep(2 * ENOUGH_S)
        assert content in await client.rest()


async def test_a_connection_that_never_sends_anything_is_closed() -> None:
    async with serving(ConnectionLimits(waiting_s=ENOUGH_S)) as server:
        assert await (await server.connect()).rest() == b""


async def test_a_refused_body_may_not_trickle_for_ever() -> None:
    head = b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\n"
    async with serving(ConnectionLimits(waiting_s=ENOUGH_S)) as server:
        client = await server.connect(head)
        assert (await client.head()).startswith("http/1.1 200")
        client.writer.write(b"{")
        assert not (await client.rest()).startswith(b"HTTP/1.1")


@pytest.mark.parametrize("length", ["content-length: 30000000", "transfer-encoding: chunked"])
async def test_c9_the_rest_of_a_long_refused_body_is_discarded_unparsed(length: str) -> None:
    """A client that sends its whole body first gets the answer, too."""
    parsed: list[int] = []

    async def counted(scope: Scope, receive: Receive, send: Send) -> None:
        parsed.append(len((await receive())["body"]))
        await app(scope, receive, send)
        # uvicorn passes parsed bytes on until it is asked no more.
        while (message := await receive())["type"] == "http.request":
            parsed.append(len(message["body"]))

    head = f"POST / HTTP/1.1\r\nhost: x\r\n{length}\r\n\r\n".encode()
    if "chunked" in length:
        head += b"1c9c380\r\n"
    async with serving(served=counted) as server:
        client = await server.connect(head)
        client.writer.write(bytes(30_000_000))
        await client.writer.drain()
        answer = await client.rest()
    assert answer.startswith(b"HTTP/1.1 200")
    assert b"connection: close" in answer.lower()
    assert sum(parsed) < 1_000_000


@pytest.mark.parametrize("size", [200_000, 30_000_000])
async def test_c9_clients_get_the_answer_to_a_body_that_nobody_reads(size: int) -> None:
    async with serving() as server, httpx.AsyncClient() as client:
        for _ in range(2):
            reply = await client.post(server.url, content=bytes(size))
            assert (reply.status_code, reply.text) == (200, "/")
            assert ("connection" in reply.headers) is (size > USUAL.unread_bytes_max)


async def send_until_reset(client: Client, piece: bytes) -> None:
    """Send bytes without end; raise ConnectionError once the server has reset the connection."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            client.writer.write(piece)
            await client.writer.drain()
            await asyncio.sleep(0)


async def test_c9_an_unread_body_may_not_trickle_for_ever() -> None:
    async with serving(ConnectionLimits(waiting_s=ENOUGH_S)) as server:
        client = await server.connect(LONG)
        await client.rest()
        with pytest.raises(ConnectionError):
            await send_until_reset(client, b"x")


async def test_c9_of_too_many_unread_bodies_the_oldest_is_reset() -> None:
    async with serving(ConnectionLimits(waiting_max=1)) as server:
        clients = [await server.connect(LONG) for _ in range(2)]
        for client in clients:
            await client.rest()
        with pytest.raises(ConnectionError):
            await send_until_reset(clients[0], bytes(64 * 1024))


async def test_a_long_head_is_refused() -> None:
    async with serving(ConnectionLimits(head_bytes_max=1_000)) as server:
        client = await server.connect(GET[:-2] + b"x-long: " + b"x" * 2_000 + b"\r\n\r\n")
        assert "more than 1000 bytes" in refused(await client.rest())["message"]


@pytest.mark.parametrize(
    "sent", [b"\x16\x03\x01 hello\r\n\r\n", GET[:-2] + b"x-long: " + b"x" * 2_000]
)
async def test_bytes_that_are_not_a_request_are_refused(sent: bytes) -> None:
    async with serving(ConnectionLimits(head_bytes_max=1_000)) as server:
        answer = await (await server.connect(sent)).rest()
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"connection: close" in answer.lower()


async def test_a_body_that_breaks_off_in_nonsense_is_refused_and_is_no_defect() -> None:
    gone: list[str] = []
    failures: list[Exception] = []

    async def watched(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await app(scope, receive, send)
        except ClientGone:
            gone.append(scope["path"])
        except Exception as failure:
            failures.append(failure)

    head = b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"
    async with serving(served=watched) as server:
        client = await server.connect(head + b"no chunk\r\n")
        assert (await client.head()).startswith("http/1.1 400")
        assert "200" in (await (await server.connect(GET)).head()).splitlines()[0]
    assert (gone, failures) == (["/"], [])


async def test_of_too_many_waiting_connections_the_longest_waiting_one_is_closed() -> None:
    async with serving(ConnectionLimits(waiting_max=2)) as server:
        kept = await server.connect(GET)
        await kept.head()
        idle = [await server.connect(GET[:-2])]
        idle.append(await server.connect(GET[:-2]))
        await kept.rest()
        served = await server.connect(GET)
        assert (await served.head()).startswith("http/1.1 200")
        assert await idle[0].rest() == b""
        idle[1].writer.write(b"\r\n")
        assert (await idle[1].head()).startswith("http/1.1 200")


async def test_connections_that_have_closed_do_not_count_as_waiting() -> None:
    async with serving(ConnectionLimits(waiting_max=2)) as server:
        kept = await server.connect(GET)
        await kept.head()
        for _ in range(3):
            last = GET.replace(b"host: x", b"host: x\r\nconnection: close")
            await (await server.connect(last)).rest()
        kept.writer.write(GET)
        assert (await kept.head()).startswith("1\r\n/\r\n0\r\n\r\n")
        assert "200 ok" in await kept.head()


async def test_connections_that_their_clients_reset_disturb_no_other() -> None:
    failures: list[dict[str, Any]] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, failure: failures.append(failure))
    try:
        async with serving(ConnectionLimits(waiting_max=2)) as server:
            for _ in range(20):
                # All are in the queue of the listener before the first is accepted.
                server.reset()
            assert "200 ok" in await (await server.connect(GET)).head()
    finally:
        loop.set_exception_handler(None)
    assert failures == []


async def test_a_connection_that_never_sends_anything_delays_the_end_little() -> None:
    async with serving(USUAL) as server:
        silent = await server.connect()
        # It has to be accepted before the server stops.
        other = await server.connect(GET)
        assert "200 ok" in await other.head()
        server.server.stop()
        assert await silent.rest() == b""
