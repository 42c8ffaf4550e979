"""Connections: kept, limited, lost, given up, encrypted."""

import asyncio
import ssl
import threading
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from tests.functional.http1.scripted_server import Answer, ask, pooled, serving, whole
from tests.ministack import free_port
from tollgate.http1.connecting import connect, make_buffer
from tollgate.http1.errors import (
    BrokenReply,
    CannotConnect,
    ConnectionLost,
    ConnectTimedOut,
    HttpError,
    InvalidRequest,
)
from tollgate.http1.pool import Pool
from tollgate.http1.request import Request, parse_url

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
SHORT_S = 0.3
LARGE = bytes(range(256)) * 20_000


async def test_a_request_is_written_as_given() -> None:
    async with serving(OK, OK) as server, pooled() as pool:
        await whole(pool, ask(server, headers={"x-a": "b é", "host": "elsewhere"}))
        await whole(
            pool, ask(server, method="GET", body=(), url=f"http://127.0.0.1:{server.port}?a=%20")
        )
        assert server.requests == [
            b"POST / HTTP/1.1\r\nx-a: b \xc3\xa9\r\nhost: elsewhere\r\ncontent-length: 2\r\n\r\n{}",
            f"GET /?a=%20 HTTP/1.1\r\nhost: 127.0.0.1:{server.port}\r\n\r\n".encode(),
        ]


@pytest.mark.parametrize(
    "fields",
    [
        {"headers": {"x-a": "b\r\nx-evil: c"}},
        {"headers": {"x-a": "b\nx-evil: c"}},
        {"headers": {"x-a": "b\rc"}},
        {"headers": {"x-a": "b\0"}},
        {"headers": {"x-a: b\r\nx-evil": "c"}},
        {"headers": {"x a": "b"}},
        {"headers": {"": "b"}},
        {"headers": {"Content-Length": "9"}},
        {"headers": {"transfer-encoding": "chunked"}},
        {"url": "http://127.0.0.1/a b"},
        {"url": "http://127.0.0.1/a\r\nx-evil: c"},
        {"url": "http://127.0.0.1/\té"},
        {"url": "http://127.0.0.1/#fragment"},
        {"url": "http://user:word@127.0.0.1/"},
        {"url": "http://127.0.0.1:0/"},
        {"url": "http://127.0.0.1:65536/"},
        {"url": "ftp://127.0.0.1/"},
        {"url": "http:///a"},
        {"url": ""},
    ],
)
async def test_what_could_end_a_line_early_is_never_sent(fields: dict[str, object]) -> None:
    async with serving(OK) as server, pooled() as pool:
        with pytest.raises(InvalidRequest):
            await pool.send(ask(server, **fields))
        assert server.requests == []


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://Provider.example:443/v1", "provider.example"),
        ("https://provider.example:8443/v1", "provider.example:8443"),
        ("http://[::1]:80/", "[::1]"),
        ("http://[::1]:8080/", "[::1]:8080"),
    ],
)
def test_the_host_header_lacks_the_schemes_own_port(url: str, host: str) -> None:
    assert parse_url(url)[0].host_header() == host


async def test_a_large_body_leaves_as_its_parts() -> None:
    async with serving(OK) as server, pooled() as pool:
        await whole(pool, ask(server, body=(b"a", LARGE, memoryview(LARGE)[:7], b"z")))
        _, _, body = server.requests[0].partition(b"\r\n\r\n")
        assert body == b"a" + LARGE + LARGE[:7] + b"z"


async def test_a_reply_before_the_end_of_a_request_is_read() -> None:
    refused = b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno"
    async with serving(Answer([refused], "hang"), OK, is_hasty=True) as server, pooled() as pool:
        reply, body = await whole(pool, ask(server, body=(LARGE * 4,)))
        assert (reply.status, body) == (413, b"no")
        await whole(pool, ask(server))
        assert server.connections == 2


async def test_a_request_that_is_not_sent_to_its_end_ends_its_connection() -> None:
    async with serving(OK, is_hasty=True) as server:
        origin, _ = parse_url(f"http://127.0.0.1:{server.port}/")
        connection = await connect(origin, make_buffer())
        await connection.send(b"POST / HTTP/1.1\r\ncontent-length: 2\r\n\r\n")
        await connection.receive()
        assert await connection.read() == b"ok"
        await connection.send(b"{}")
        assert not connection.finish()
        await server.gone.wait()
        assert len(server.requests) == 1


@pytest.mark.parametrize(
    "raw", [OK.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"), OK.replace(b"1.1", b"1.0")]
)
async def test_a_connection_that_is_announced_to_close_is_not_used_again(raw: bytes) -> None:
    async with serving(raw, OK) as server, pooled() as pool:
        await whole(pool, ask(server))
        await whole(pool, ask(server))
        assert server.connections == 2


async def test_a_connection_is_kept_for_its_time_alone() -> None:
    async with serving(OK, OK) as server, pooled(kept_s=0.02) as pool:
        await whole(pool, ask(server))
        await server.gone.wait()
        await whole(pool, ask(server))
        assert server.connections == 2


async def test_a_connection_past_its_time_is_not_used_though_no_timer_ran() -> None:
    """A function is frozen between two invocations, and its timers with it."""
    async with serving(OK, OK) as server, pooled(kept_s=0) as pool:
        await whole(pool, ask(server))
        await whole(pool, ask(server))
        assert server.connections == 2


async def test_a_request_that_was_lost_on_a_kept_connection_is_sent_once() -> None:
    """A provider that reads a request and ends its connection may bill it."""
    async with serving(OK, Answer(then="close"), OK) as server, pooled() as pool:
        await whole(pool, ask(server))
        with pytest.raises(ConnectionLost):
            await pool.send(ask(server))
        assert len(server.requests) == 2


async def test_a_connection_that_ended_while_it_was_kept_gets_no_request() -> None:
    async with serving(Answer([OK], "close"), OK) as server, pooled() as pool:
        await whole(pool, ask(server))
        await server.gone.wait()
        assert (await whole(pool, ask(server)))[1] == b"ok"
        assert (len(server.requests), server.connections) == (2, 2)


async def test_a_connection_that_was_lost_takes_the_others_that_are_kept_with_it() -> None:
    """A process that was frozen finds all of them dead, and each would cost a retry."""
    answering = asyncio.Semaphore(0)
    held = Answer([OK[:-1], OK[-1:]], gate=answering)
    async with serving(held, held, Answer(then="close"), OK) as server, pooled() as pool:
        both = [await pool.send(ask(server)), await pool.send(ask(server))]
        for reply in both:
            answering.release()
            assert await reply.read_all(2) == b"ok"
            reply.close()
        with pytest.raises(ConnectionLost):
            await pool.send(ask(server))
        await whole(pool, ask(server))
        assert server.connections == 3


async def test_a_body_that_is_left_closes_its_connection() -> None:
    async with serving(OK.replace(b": 2", b": 3"), OK) as server, pooled() as pool:
        reply = await pool.send(ask(server))
        reply.close()
        await server.gone.wait()


async def test_a_reply_that_was_let_go_has_no_end() -> None:
    async with serving(OK) as server, pooled() as pool:
        reply = await pool.send(ask(server))
        reply.close()
        with pytest.raises(BrokenReply):
            await reply.read()


async def test_a_cancelled_request_closes_its_connection_and_frees_its_place() -> None:
    async with serving(Answer(then="hang"), OK) as server, pooled(connections_max=1) as pool:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await pool.send(ask(server))
        await server.gone.wait()
        await whole(pool, ask(server))


async def test_a_request_waits_for_a_free_connection() -> None:
    async with serving(OK, OK) as server, pooled(connections_max=1) as pool:
        reply = await pool.send(ask(server))
        with pytest.raises(ConnectTimedOut):
            await pool.send(ask(server), connect_s=0.02)
        waiting = asyncio.create_task(whole(pool, ask(server)))
        await asyncio.sleep(0)
        assert await reply.read_all(10) == b"ok"
        reply.close()
        assert (await waiting)[1] == b"ok"
        assert server.connections == 1


async def test_no_server_and_no_name_are_no_connection() -> None:
    async with pooled() as pool:
        for url in (f"http://127.0.0.1:{free_port()}/", "http://provider.invalid/", "http://a..b/"):
            with pytest.raises(CannotConnect):
                await pool.send(Request(method="GET", url=url, headers={}), connect_s=5)


async def test_a_server_that_accepts_nothing_times_out() -> None:
    """The handshake of TLS is part of connecting."""
    async with serving() as server, pooled() as pool:
        with pytest.raises(ConnectTimedOut):
            await pool.send(ask(server, url=f"https://127.0.0.1:{server.port}/"), connect_s=0.05)


def certificate(folder: Path, host: str, *, days: int = 1) -> tuple[ssl.SSLContext, bytes]:
    """A server's side of TLS, and the certificate that signs itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
    now = datetime.now(UTC)
    known = x509.IPAddress(ip_address(host)) if host[0].isdigit() else x509.DNSName(host)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=2))
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.SubjectAlternativeName([known]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = made.public_bytes(Encoding.PEM)
    path = folder / "pem"
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()) + pem)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(path)
    return server, pem


async def test_a_trusted_server_is_read_over_tls_and_kept(tmp_path: Path) -> None:
    theirs, pem = certificate(tmp_path, "127.0.0.1")
    ours = ssl.create_default_context(cadata=pem.decode())
    body = LARGE * 2
    large = Answer([b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body), body])
    async with serving(large, OK, tls=theirs) as server, pooled(tls=ours) as pool:
        url = f"https://127.0.0.1:{server.port}/"
        assert (await whole(pool, ask(server, url=url, body=(LARGE,)), len(body)))[1] == body
        assert (await whole(pool, ask(server, url=url)))[1] == b"ok"
        assert server.connections == 1


async def test_a_body_over_tls_may_end_with_its_connection(tmp_path: Path) -> None:
    theirs, pem = certificate(tmp_path, "127.0.0.1")
    ours = ssl.create_default_context(cadata=pem.decode())
    answer = Answer([b"HTTP/1.1 200 OK\r\n\r\nall"], "close")
    async with serving(answer, tls=theirs) as server, pooled(tls=ours) as pool:
        assert (await whole(pool, ask(server, url=f"https://127.0.0.1:{server.port}/")))[
            1
        ] == b"all"


@pytest.mark.parametrize(
    ("host", "days", "is_trusted"),
    [("127.0.0.1", 1, False), ("127.0.0.1", -1, True), ("provider.example", 1, True)],
    ids=["signed by itself", "expired", "of another host"],
)
async def test_a_server_without_a_good_certificate_gets_nothing(
    host: str, days: int, is_trusted: bool, tmp_path: Path
) -> None:
    theirs, pem = certificate(tmp_path, host, days=days)
    ours = ssl.create_default_context(cadata=pem.decode()) if is_trusted else None
    async with serving(OK, tls=theirs) as server, pooled(tls=ours) as pool:
        with pytest.raises(HttpError) as raised:
            await pool.send(ask(server, url=f"https://127.0.0.1:{server.port}/"), connect_s=5)
        assert isinstance(raised.value, CannotConnect)
        assert server.requests == []


@pytest.mark.parametrize(("certified", "connects"), [("media.example", True), ("127.0.0.1", False)])
async def test_the_certificate_is_of_the_name_where_the_address_was_resolved_before(
    certified: str, connects: bool, tmp_path: Path
) -> None:
    """The address of a name may be anybody's."""
    theirs, pem = certificate(tmp_path, certified)
    ours = ssl.create_default_context(cadata=pem.decode())
    async with serving(OK, tls=theirs) as server:
        origin, _ = parse_url(f"https://media.example:{server.port}/")
        try:
            connection = await connect(
                origin, make_buffer(), address="127.0.0.1", timeout_s=5, tls=lambda: ours
            )
        except CannotConnect:
            assert not connects
        else:
            connection.abort()
            await connection.wait_closed()
            assert connects


async def test_a_kept_connection_serves_its_own_server_alone() -> None:
    """Requests carry credentials."""
    async with serving(OK, OK) as first, serving(OK) as second, pooled() as pool:
        await whole(pool, ask(first))
        await whole(pool, ask(second))
        await whole(pool, ask(first))
        assert [len(first.requests), len(second.requests)] == [2, 1]
        assert [first.connections, second.connections] == [1, 1]


async def test_a_connection_that_is_made_while_the_process_has_no_cpu_is_no_timeout() -> None:
    async with serving(OK) as server:
        origin, _ = parse_url(f"http://127.0.0.1:{server.port}/")
        connecting = asyncio.create_task(connect(origin, make_buffer(), timeout_s=SHORT_S))
        await asyncio.sleep(0)
        # The event loop stands still until the time is over.
        threading.Event().wait(SHORT_S)
        connection = await connecting
        connection.abort()
        await connection.wait_closed()


async def test_a_pool_says_that_it_serves_one_event_loop() -> None:
    """A kept connection would wait for a loop that never runs again."""

    def ask_in_another_loop(pool: Pool, request: Request) -> None:
        asyncio.run(whole(pool, request))

    async with serving(OK, OK) as server, pooled() as pool:
        await whole(pool, ask(server))
        with pytest.raises(RuntimeError, match="the event loop of its first request"):
            await asyncio.to_thread(ask_in_another_loop, pool, ask(server))
        await whole(pool, ask(server))
