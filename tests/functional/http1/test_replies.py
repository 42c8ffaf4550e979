"""Replies: whole, cut anywhere, too long, and what is not HTTP."""

import asyncio
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.functional.http1.scripted_server import Answer, ask, pooled, serving, whole
from tollgate.http1.connection import HEAD_BYTES_MAX, REPLY_FIELDS_MAX, UNREAD_BYTES_MAX
from tollgate.http1.errors import BrokenReply, ConnectionLost, HttpError, ReplyTooLong

BODY = b'{"a": "\xc3\xa9\r\n\r\n0\r\n"}'
OK = b"HTTP/1.1 200 OK\r\n"
WITH_LENGTH = OK + b"Content-Length: %d\r\nX-A:  b \r\n\r\n%b" % (len(BODY), BODY)
CHUNKED = OK + (
    b"X-A: b\r\nTransfer-Encoding: Chunked\r\n\r\n"
    b"7\r\n%b\r\n%X ;name=value\r\n%b\r\n0\r\nX-Trailer: y\r\n\r\n"
    % (BODY[:7], len(BODY) - 7, BODY[7:])
)
TO_THE_END = OK + b"X-A: b\r\n\r\n" + BODY
AFTER_HINTS = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nX-A: no\r\n\r\n" + WITH_LENGTH


@pytest.mark.parametrize("raw", [WITH_LENGTH, CHUNKED, AFTER_HINTS])
@settings(max_examples=25)
@given(cuts=st.lists(st.integers(0, len(CHUNKED)), max_size=8))
async def test_a_reply_reads_the_same_wherever_it_is_cut(raw: bytes, cuts: list[int]) -> None:
    edges = sorted({0, len(raw), *(min(cut, len(raw)) for cut in cuts)})
    pieces = [raw[start:end] for start, end in pairwise(edges)]
    async with serving(Answer(pieces), WITH_LENGTH) as server, pooled() as pool:
        for _ in range(2):
            reply, body = await whole(pool, ask(server))
            assert (reply.status, body, reply.headers["x-a"]) == (200, BODY, "b")
        assert server.connections == 1


async def test_a_body_may_end_with_its_connection() -> None:
    async with serving(Answer([TO_THE_END], "close"), WITH_LENGTH) as server, pooled() as pool:
        assert (await whole(pool, ask(server)))[1] == BODY
        await whole(pool, ask(server))
        assert server.connections == 2


@pytest.mark.parametrize("raw", [WITH_LENGTH, CHUNKED])
@pytest.mark.parametrize("then", ["close", "reset"])
async def test_a_connection_lost_at_any_byte_is_an_error(raw: bytes, then: str) -> None:
    for length in range(len(raw)):
        async with serving(Answer([raw[:length]], then)) as server, pooled() as pool:
            with pytest.raises(HttpError) as raised:
                await whole(pool, ask(server))
        # A reset may overtake the bytes before it.
        if length == 0 or then == "close":
            assert isinstance(raised.value, BrokenReply if length else ConnectionLost)


@pytest.mark.parametrize("status", [b"204 No Content", b"304 Not Modified"])
async def test_some_replies_have_no_body(status: bytes) -> None:
    raw = b"HTTP/1.1 " + status + b"\r\n\r\n"
    async with serving(raw, raw) as server, pooled() as pool:
        assert (await whole(pool, ask(server)))[1] == b""
        assert (await whole(pool, ask(server)))[1] == b""
        assert server.connections == 1


@pytest.mark.parametrize(
    "raw",
    [
        b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
        b"HTTP/2 200\r\n\r\n",
        b"HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/0.9 200 OK\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 2000 OK\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 099 No\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
        OK + b"no colon here\r\n\r\n",
        OK + b"X-A : b\r\nContent-Length: 0\r\n\r\n",
        OK + b"X-A: b\r\n folded\r\nContent-Length: 0\r\n\r\n",
        OK + b"X-A: b\nContent-Length: 0\r\n\r\n",
        OK + b"X-A: b\rContent-Length: 0\r\n\r\n",
        OK + b"X-A: \0\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\nContent-Length: 0\n\n",
        OK + b"Content-Length: -1\r\n\r\n",
        OK + b"Content-Length: +2\r\n\r\nok",
        OK + b"Content-Length: 0x2\r\n\r\nok",
        OK + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\nok",
        OK + b"Content-Length: " + b"9" * 3000 + b"\r\n\r\n",
        OK + b"Content-Length: 7\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        OK + b"Transfer-Encoding: chunked\r\nContent-Length: 7\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        OK + b"Transfer-Encoding: gzip\r\n\r\n",
        OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        OK + b"Transfer-Encoding: xchunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n+2\r\nok\r\n0\r\n\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n\r\nok\r\n0\r\n\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n2\nok\n0\n\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\nokay\r\n0\r\n\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
        OK + b"X-Long: " + b"y" * (HEAD_BYTES_MAX + 1) + b"\r\n\r\n",
        OK + b"".join(b"X-%d: y\r\n" % number for number in range(REPLY_FIELDS_MAX + 1)) + b"\r\n",
        OK + b"X-Endless: " + b"y" * (2 * HEAD_BYTES_MAX),
        b"HTTP/1.1 100 Continue\r\nX-A: b\r\n\r\n" * (REPLY_FIELDS_MAX + 1),
        OK + b"Transfer-Encoding: chunked\r\n\r\n0\r\nX-Trailer: " + b"y" * (2 * HEAD_BYTES_MAX),
        OK + b"Transfer-Encoding: chunked\r\n\r\n2;" + b"y" * (2 * HEAD_BYTES_MAX),
    ],
)
async def test_what_is_not_http_breaks_the_reply(raw: bytes) -> None:
    async with serving(Answer([raw], "hang"), WITH_LENGTH) as server, pooled() as pool:
        with pytest.raises(BrokenReply):
            await whole(pool, ask(server))
        assert (await whole(pool, ask(server)))[1] == BODY
        assert server.connections == 2


@pytest.mark.parametrize("raw", [WITH_LENGTH, CHUNKED])
async def test_a_body_over_the_limit_is_refused(raw: bytes) -> None:
    async with serving(raw, raw) as server, pooled() as pool:
        assert (await whole(pool, ask(server), len(BODY)))[1] == BODY
        with pytest.raises(ReplyTooLong):
            await whole(pool, ask(server), len(BODY) - 1)


@pytest.mark.parametrize("more", [b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nbad", b"bad"])
async def test_a_second_reply_to_one_request_is_nobodys(more: bytes) -> None:
    async with serving(WITH_LENGTH + more, WITH_LENGTH) as server, pooled() as pool:
        assert (await whole(pool, ask(server)))[1] == BODY
        assert (await whole(pool, ask(server)))[1] == BODY
        assert server.connections == 2


async def test_a_reply_that_nobody_asked_for_ends_the_connection() -> None:
    gate = asyncio.Semaphore(0)
    unasked = Answer([WITH_LENGTH, WITH_LENGTH.replace(BODY, BODY.upper())], gate=gate)
    async with serving(unasked, WITH_LENGTH) as server, pooled() as pool:
        await whole(pool, ask(server))
        gate.release()
        await server.gone.wait()
        assert (await whole(pool, ask(server)))[1] == BODY
        assert server.connections == 2


async def test_chunks_of_one_read_come_together_and_one_alone_comes_alone() -> None:
    gate = asyncio.Semaphore(0)
    head = OK + b"Transfer-Encoding: chunked\r\n\r\n"
    answer = Answer(
        [head + b"1\r\na\r\n1\r\nb\r\n1\r\nc\r\n", b"1\r\nd\r\n", b"0\r\n\r\n"], gate=gate
    )
    async with serving(answer) as server, pooled() as pool:
        reply = await pool.send(ask(server))
        assert await reply.read() == b"abc"
        gate.release()
        assert await reply.read() == b"d"
        gate.release()
        assert await reply.read() == b""
        reply.close()


async def test_a_peer_waits_for_a_slow_reader() -> None:
    piece = b"x" * 65_536
    pieces = [OK + b"Content-Length: %d\r\n\r\n" % (400 * len(piece)), *[piece] * 400]
    async with serving(Answer(pieces)) as server, pooled() as pool:
        reply = await pool.send(ask(server))
        for _ in range(2_000):
            await asyncio.sleep(0)
        connection = reply._connection
        assert connection is not None
        assert connection._unread_bytes <= UNREAD_BYTES_MAX + 65_536
        assert len(await reply.read_all(400 * len(piece))) == 400 * len(piece)
        reply.close()


async def test_fields_of_one_name_are_joined() -> None:
    raw = OK + b"Content-Encoding: identity\r\ncontent-encoding: gzip\r\nContent-Length: 0\r\n\r\n"
    async with serving(raw) as server, pooled() as pool:
        reply, _ = await whole(pool, ask(server))
        assert reply.headers["content-encoding"] == "identity, gzip"
