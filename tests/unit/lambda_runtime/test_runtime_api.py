"""The client of the Runtime API, against a scripted one on a real socket."""

import base64
import json
import logging
import socket

import pytest

from tests.unit.lambda_runtime.peer import ACCEPTED, Peer, chunks, next_reply
from tollgate.http1.connecting import connect, make_buffer
from tollgate.http1.request import parse_url
from tollgate.lambda_runtime.runtime_api import (
    INVOCATION_BYTES_MAX,
    FunctionError,
    Invocation,
    ResponseStream,
    RuntimeApi,
    RuntimeApiError,
)

INVOCATION = Invocation(request_id="8476a536", deadline_ms=1, event_bytes=b"", trace_id="Root=1")
BROKEN = FunctionError(type="Function.ValueError", message="Something went wrong on our side.")


async def finished(stream: ResponseStream) -> None:
    await stream.wait_acknowledged()
    stream.close()


async def test_an_invocation_has_what_lambda_says_of_it() -> None:
    headers = ("LAMBDA-RUNTIME-TRACE-ID: Root=1-5bef4de7", "lambda-runtime-invocation-id: inv-7")
    async with Peer(next_reply(b"{}", *headers)) as peer:
        api = RuntimeApi(peer.address)
        assert await api.next_invocation() == Invocation(
            request_id="8476a536",
            deadline_ms=1_000_000,
            event_bytes=b"{}",
            invocation_id="inv-7",
            trace_id="Root=1-5bef4de7",
        )
        assert peer.requests == ["GET /2018-06-01/runtime/invocation/next"]
        api.close()


async def test_an_event_of_6_mb_arrives_whole() -> None:
    event = b'"' + bytes(range(48, 58)) * 629_145 + b'"'
    async with Peer(next_reply(event)) as peer:
        api = RuntimeApi(peer.address)
        assert (await api.next_invocation()).event_bytes == event
        api.close()


async def test_invocations_are_fetched_over_one_connection() -> None:
    async with Peer(*[next_reply(b"{}")] * 3) as peer:
        api = RuntimeApi(peer.address)
        for _ in range(3):
            await api.next_invocation()
        assert peer.connections == 1
        api.close()


async def test_a_connection_that_died_between_invocations_is_replaced() -> None:
    async with Peer(next_reply(b"1"), None, next_reply(b"2")) as peer:
        api = RuntimeApi(peer.address)
        assert (await api.next_invocation()).event_bytes == b"1"
        assert (await api.next_invocation()).event_bytes == b"2"
        assert peer.connections == 2
        api.close()


async def test_a_connection_that_lambda_announced_to_close_is_not_used_again() -> None:
    async with Peer(next_reply(b"1", "Connection: close"), next_reply(b"2")) as peer:
        api = RuntimeApi(peer.address)
        await api.next_invocation()
        assert (await api.next_invocation()).event_bytes == b"2"
        assert peer.connections == 2
        api.close()


async def test_a_second_dead_connection_in_a_row_is_an_error() -> None:
    async with Peer(next_reply(b"1"), None, None, next_reply(b"2")) as peer:
        api = RuntimeApi(peer.address)
        await api.next_invocation()
        with pytest.raises(RuntimeApiError, match="closed without a reply"):
            await api.next_invocation()
        api.close()


async def test_a_first_connection_that_dies_is_an_error() -> None:
    async with Peer(None, next_reply(b"1")) as peer:
        api = RuntimeApi(peer.address)
        with pytest.raises(RuntimeApiError):
            await api.next_invocation()
        api.close()


@pytest.mark.parametrize(
    "reply",
    [
        next_reply(b"{}").replace(b"200 OK", b"500 Internal Server Error"),
        b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nLambda-Runtime-Deadline-Ms: 1\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nLambda-Runtime-Aws-Request-Id: r\r\nContent-Length: 0\r\n\r\n",
        next_reply(b"{}").replace(b"1000000", b"soon"),
        next_reply(b"{}").replace(b": 2\r\n", b": %d\r\n" % (INVOCATION_BYTES_MAX + 1)),
        b"garbage\r\n\r\n",
    ],
)
async def test_a_reply_that_is_no_invocation_is_an_error(reply: bytes) -> None:
    async with Peer(reply) as peer:
        api = RuntimeApi(peer.address)
        with pytest.raises(RuntimeApiError):
            await api.next_invocation()
        api.close()


async def test_nobody_listening_is_an_error() -> None:
    async with Peer() as peer:
        api = RuntimeApi(peer.address)
    with pytest.raises(RuntimeApiError):
        await api.next_invocation()


async def test_a_response_is_sent_as_the_guide_asks() -> None:
    async with Peer() as peer:
        stream = RuntimeApi(peer.address).make_response(INVOCATION)
        await stream.open()
        await stream.write(b"one")
        await stream.write(b"")
        await stream.end(b"two")
        await finished(stream)
        post = await peer.ended()
    assert post.path == "/2018-06-01/runtime/invocation/8476a536/response"
    assert post.headers == {
        "Host": peer.address,
        "Lambda-Runtime-Function-Response-Mode": "streaming",
        "Transfer-Encoding": "chunked",
        "Content-Type": "application/vnd.awslambda.http-integration-response",
        "Trailer": "Lambda-Runtime-Function-Error-Type, Lambda-Runtime-Function-Error-Body",
    }
    assert bytes(post.raw) == b"3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n"


async def test_each_write_leaves_before_the_next_is_known() -> None:
    async with Peer() as peer:
        stream = RuntimeApi(peer.address).make_response(INVOCATION)
        await stream.open()
        await stream.write(b"first")
        post = await peer.begun()
        await post.until(lambda raw: raw == b"5\r\nfirst\r\n")
        await stream.write(b"second")
        await post.until(lambda raw: raw.endswith(b"6\r\nsecond\r\n"))
        await stream.end()
        await finished(stream)


async def test_every_response_has_a_connection_of_its_own() -> None:
    async with Peer() as peer:
        api = RuntimeApi(peer.address)
        for _ in range(2):
            stream = api.make_response(INVOCATION)
            await stream.open()
            await stream.end(b"x")
            await finished(stream)
        assert peer.connections == 2


async def test_a_failure_in_mid_stream_is_told_in_the_trailers_byte_for_byte() -> None:
    async with Peer() as peer:
        stream = RuntimeApi(peer.address).make_response(INVOCATION)
        await stream.open()
        await stream.write(b"half")
        await stream.fail(BROKEN)
        await finished(stream)
        post = await peer.ended()
    told = (
        b'{"errorType":"Function.ValueError",'
        b'"errorMessage":"Something went wrong on our side.","stackTrace":[]}'
    )
    assert bytes(post.raw) == (
        b"4\r\nhalf\r\n0\r\n"
        b"Lambda-Runtime-Function-Error-Type: Function.ValueError\r\n"
        b"Lambda-Runtime-Function-Error-Body: " + base64.b64encode(told) + b"\r\n\r\n"
    )


async def test_the_invocation_id_is_sent_back_on_response_and_error() -> None:
    invocation = Invocation(
        request_id="a/b c", deadline_ms=1, event_bytes=b"", invocation_id="inv-7"
    )
    async with Peer() as peer:
        api = RuntimeApi(peer.address)
        stream = api.make_response(invocation)
        await stream.open()
        await stream.end()
        await finished(stream)
        await api.fail_invocation(invocation, BROKEN)
        response, error = await peer.ended(), await peer.ended()
    assert response.path == "/2018-06-01/runtime/invocation/a%2Fb%20c/response"
    assert response.headers["Lambda-Runtime-Invocation-Id"] == "inv-7"
    assert error.headers["Lambda-Runtime-Invocation-Id"] == "inv-7"


async def test_errors_are_reported_with_type_and_message() -> None:
    async with Peer() as peer:
        api = RuntimeApi(peer.address)
        await api.fail_invocation(INVOCATION, BROKEN)
        await api.fail_init(BROKEN)
        invocation, init = await peer.ended(), await peer.ended()
    assert invocation.path == "/2018-06-01/runtime/invocation/8476a536/error"
    assert init.path == "/2018-06-01/runtime/init/error"
    for post in (invocation, init):
        assert post.headers["Lambda-Runtime-Function-Error-Type"] == "Function.ValueError"
        assert json.loads(post.raw) == {
            "errorType": "Function.ValueError",
            "errorMessage": "Something went wrong on our side.",
            "stackTrace": [],
        }


@pytest.mark.parametrize(
    "acknowledgement", [ACCEPTED.replace(b"202", b"403"), b"nonsense\r\n\r\n", None]
)
async def test_an_error_that_cannot_be_reported_is_an_error(acknowledgement: bytes | None) -> None:
    async with Peer(acknowledgement=acknowledgement) as peer:
        with pytest.raises(RuntimeApiError, match="not reported"):
            await RuntimeApi(peer.address).fail_invocation(INVOCATION, BROKEN)


async def test_a_lost_response_is_logged_once_and_later_writes_are_dropped(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with Peer(acknowledgement=None) as peer:
        stream = RuntimeApi(peer.address).make_response(INVOCATION)
        await stream.open()
        await stream.write(b"x")
        await peer.begun()
        for _ in range(200):
            await stream.write(b"y" * 65_536)
        await stream.end()
        await finished(stream)
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert record.__dict__["fields"]["request_id"] == "8476a536"
    assert record.__dict__["fields"]["trace_id"] == "Root=1"


async def test_a_response_that_nobody_takes_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with Peer() as peer:
        stream = RuntimeApi(peer.address).make_response(INVOCATION)
    await stream.open()
    await stream.write(b"x")
    await stream.end()
    await finished(stream)
    assert [record.getMessage() for record in caplog.records] == ["response not delivered"]


@pytest.mark.parametrize("acknowledgement", [ACCEPTED.replace(b"202", b"413"), b"?\r\n\r\n"])
async def test_a_response_that_lambda_refuses_is_logged(
    acknowledgement: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with Peer(acknowledgement=acknowledgement) as peer:
        stream = RuntimeApi(peer.address).make_response(INVOCATION)
        await stream.open()
        await stream.end(b"x")
        await finished(stream)
        assert chunks(bytes((await peer.ended()).raw)) == ([b"x"], {})
    assert [record.getMessage() for record in caplog.records] == ["response not delivered"]


async def test_no_write_waits_for_another_in_the_kernel() -> None:
    async with Peer() as peer:
        origin, _ = parse_url(f"http://{peer.address}")
        connection = await connect(origin, make_buffer())
        own_side = connection._transport.get_extra_info("socket")
        assert own_side.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        connection.close()
        await connection.wait_closed()
