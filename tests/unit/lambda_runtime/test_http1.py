"""HTTP/1.1 as the Runtime API speaks it, cut and broken in every way."""

import asyncio
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tollgate.lambda_runtime.http1 import (
    Address,
    HttpResponse,
    MalformedReply,
    encode_chunk,
    encode_last_chunk,
    encode_request_head,
    read_reply,
)

BODY = b'{"httpMethod": "POST", "body": "\xc3\xa9\r\n\r\n0\r\n"}'
WITH_LENGTH = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nX-A: b\r\n\r\n%b" % (len(BODY), BODY)
CHUNKED = (
    b"HTTP/1.1 200 OK\r\nX-A: b\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"7\r\n%b\r\n%X ;name=value\r\n%b\r\n0\r\n\r\n" % (BODY[:7], len(BODY) - 7, BODY[7:])
)


async def read(*pieces: bytes, body_bytes_max: int = 1000) -> HttpResponse:
    """Read a reply that arrives piece by piece, then the end of the connection."""
    reader = asyncio.StreamReader(limit=4096)
    reading = asyncio.create_task(read_reply(reader, body_bytes_max=body_bytes_max))
    for piece in pieces:
        await asyncio.sleep(0)
        reader.feed_data(piece)
    await asyncio.sleep(0)
    reader.feed_eof()
    return await reading


@pytest.mark.parametrize("reply", [WITH_LENGTH, CHUNKED])
@given(cuts=st.lists(st.integers(0, len(CHUNKED)), max_size=8))
async def test_a_reply_reads_the_same_wherever_it_is_cut(reply: bytes, cuts: list[int]) -> None:
    edges = sorted({0, len(reply), *(min(cut, len(reply)) for cut in cuts)})
    pieces = [reply[start:end] for start, end in pairwise(edges)]
    read_back = await read(*pieces)
    assert (read_back.status, read_back.body, read_back.headers["x-a"]) == (200, BODY, "b")


@pytest.mark.parametrize("reply", [WITH_LENGTH, CHUNKED])
async def test_a_reply_cut_by_one_byte_each_reads_the_same(reply: bytes) -> None:
    assert (await read(*(bytes([octet]) for octet in reply))).body == BODY


@pytest.mark.parametrize("reply", [WITH_LENGTH, CHUNKED])
async def test_a_reply_that_breaks_off_is_malformed_at_every_byte(reply: bytes) -> None:
    for length in range(1, len(reply)):
        with pytest.raises(MalformedReply):
            await read(reply[:length])


async def test_a_connection_closed_without_a_byte_is_a_connection_error() -> None:
    with pytest.raises(ConnectionError):
        await read()


async def test_header_names_are_read_in_any_case() -> None:
    reply = await read(b"HTTP/1.1 200 OK\r\ncOnTeNt-LeNgTh:2\r\nLAMBDA-Runtime-X:  y \r\n\r\nok")
    assert reply.headers["lambda-runtime-x"] == "y"
    assert reply.body == b"ok"


@pytest.mark.parametrize(
    ("header", "kept"), [(b"Connection: close", False), (b"Connection: keep-alive", True)]
)
async def test_a_reply_says_whether_the_connection_stays(header: bytes, kept: bool) -> None:
    reply = await read(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n" + header + b"\r\n\r\n")
    assert reply.keeps_alive is kept


@pytest.mark.parametrize(
    "reply",
    [
        b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
        b"HTTP/2 200\r\n\r\n",
        b"HTTP/1.1 2000 OK\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon here\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\nof unknown length",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 0x2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 3000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n+2\r\nok\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\nok\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n123456789\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nokay\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nokay0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-Trailer: y\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1" * 9000,
        b"HTTP/1.1 200 OK\r\nX-Long: " + b"y" * 9000 + b"\r\n\r\n",
    ],
)
async def test_what_is_not_http_is_malformed(reply: bytes) -> None:
    with pytest.raises(MalformedReply):
        await read(reply)


@pytest.mark.parametrize("reply", [WITH_LENGTH, CHUNKED])
async def test_a_reply_over_the_limit_is_refused(reply: bytes) -> None:
    assert (await read(reply, body_bytes_max=len(BODY))).body == BODY
    with pytest.raises(MalformedReply, match="more than"):
        await read(reply, body_bytes_max=len(BODY) - 1)


def test_an_empty_chunk_is_not_written_because_it_would_end_the_body() -> None:
    assert encode_chunk(b"") == b""
    assert encode_chunk(b"sixteen octets!!") == b"10\r\nsixteen octets!!\r\n"


def test_the_last_chunk_carries_the_trailers() -> None:
    assert encode_last_chunk() == b"0\r\n\r\n"
    assert encode_last_chunk({"A": "1", "B": "2"}) == b"0\r\nA: 1\r\nB: 2\r\n\r\n"


def test_a_request_head_is_written_as_given() -> None:
    head = encode_request_head("GET", "/next", {"Host": "127.0.0.1:9001"})
    assert head == b"GET /next HTTP/1.1\r\nHost: 127.0.0.1:9001\r\n\r\n"


@pytest.mark.parametrize("text", ["", "9001", ":9001", "localhost:", "localhost:http"])
def test_an_address_that_is_not_host_and_port_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"not host:port|invalid literal"):
        Address.parse(text)
