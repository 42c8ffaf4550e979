"""The loop from event to response, against a scripted Runtime API.

Keeps C35, C36, C40.
"""

import asyncio
import base64
import json
import logging

import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tests.unit.lambda_runtime.peer import PATIENCE_S, Peer, next_reply
from tests.unit.lambda_runtime.serving import (
    EVENT,
    POST,
    START,
    answered,
    body,
    hello,
    others_run,
    response,
    serving,
    until,
    with_lifespan,
)
from tollgate.lambda_runtime.loop import run_loop
from tollgate.lambda_runtime.runtime_api import RuntimeApiError


async def test_the_body_reaches_the_application_and_the_answer_reaches_lambda() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        request = await receive()
        assert request["more_body"] is False
        await send(START)
        await send(body(scope["path"].encode() + b" " + request["body"]))

    opening, parts, trailers = response(await answered(app))
    assert (opening["statusCode"], opening["headers"]) == (200, {"x": "y"})
    assert parts == ['/v1/chat/completions {"model":"ä"}'.encode()]
    assert trailers == {}


async def test_c35_status_and_frames_leave_one_by_one() -> None:
    read = asyncio.Queue[None]()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send(START)
        for number in range(3):
            await read.get()
            await send(body(b"frame %d" % number, more=True))
        await read.get()
        await send(body(b""))

    async with Peer(POST) as peer, serving(with_lifespan(app), peer):
        post = await peer.begun()
        await post.until(lambda raw: raw.endswith(bytes(8) + b"\r\n"))
        for number in range(3):
            read.put_nowait(None)
            await post.until(lambda raw, n=number: raw.endswith(b"7\r\nframe %d\r\n" % n))
        read.put_nowait(None)
        assert response(await peer.ended())[1] == [b"frame 0", b"frame 1", b"frame 2"]


async def test_an_empty_body_message_does_not_end_the_response() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send(START)
        for octets in (b"", b"a", b"", b"b"):
            await send(body(octets, more=True))
        await send({"type": "http.response.body"})

    assert response(await answered(app))[1:] == ([b"a", b"b"], {})


async def test_the_answer_to_head_has_no_body() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send(START)
        await send(body(b"not for head", more=True))
        await send(body(b"nor this"))

    event = next_reply(json.dumps({**EVENT, "httpMethod": "HEAD"}).encode())
    opening, parts, _ = response(await answered(app, event))
    assert (opening["statusCode"], parts) == (200, [])


async def test_c40_an_application_that_fails_before_it_starts_answers_500() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        raise ValueError("secret detail")

    opening, parts, trailers = response(await answered(app))
    assert opening["statusCode"] == 500
    assert opening["headers"] == {"content-type": "application/json", "x-request-id": "8476a536"}
    assert json.loads(b"".join(parts)) == {
        "error": {
            "message": "Something went wrong on our side.",
            "type": "server_error",
            "code": "internal_error",
            "param": None,
            "request_id": "8476a536",
        }
    }
    assert trailers == {}


async def test_a_failure_is_logged_with_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        raise ValueError("detail")

    await answered(app)
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], ValueError)
    assert record.__dict__["fields"] == {"request_id": "8476a536", "trace_id": None}


async def fails_in_mid_stream(scope: Scope, receive: Receive, send: Send) -> None:
    await send(START)
    await send(body(b"half", more=True))
    raise ValueError("secret detail")


async def returns_too_early(scope: Scope, receive: Receive, send: Send) -> None:
    await send(START)
    await send(body(b"half", more=True))


@pytest.mark.parametrize(
    ("app", "error_type"),
    [
        (fails_in_mid_stream, "Function.ValueError"),
        (returns_too_early, "Function.IncompleteResponse"),
    ],
)
async def test_a_failure_in_mid_stream_is_told_in_the_trailers(
    app: ASGIApp, error_type: str
) -> None:
    opening, parts, trailers = response(await answered(app))
    assert (opening["statusCode"], parts) == (200, [b"half"])
    assert trailers["Lambda-Runtime-Function-Error-Type"] == error_type
    assert json.loads(base64.b64decode(trailers["Lambda-Runtime-Function-Error-Body"])) == {
        "errorType": error_type,
        "errorMessage": "Something went wrong on our side.",
        "stackTrace": [],
    }


async def test_an_application_that_never_answers_gives_500() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        return

    assert response(await answered(app))[0]["statusCode"] == 500


async def test_headers_that_do_not_fit_the_prelude_give_500() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({**START, "headers": [(b"x", b"y" * 20_000)]})

    assert response(await answered(app))[0]["statusCode"] == 500


@pytest.mark.parametrize(
    "messages",
    [
        [body(b"before the start")],
        [START, START],
        [START, body(b""), body(b"after the end")],
        [START, body(b""), START],
        [START, {"type": "http.response.trailers"}],
    ],
)
async def test_messages_out_of_order_are_an_error_of_the_application(
    messages: list[Message],
) -> None:
    raised = asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        for message in messages[:-1]:
            await send(message)
        with pytest.raises(RuntimeError):
            await send(messages[-1])
        raised.set()

    async with Peer(POST) as peer, serving(with_lifespan(app), peer):
        await asyncio.wait_for(raised.wait(), PATIENCE_S)
        await peer.ended()


async def test_a_failure_after_the_end_changes_nothing_for_the_client() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send(START)
        await send(body(b"whole"))
        raise ValueError("in the tail")

    async with Peer(POST) as peer, serving(with_lifespan(app), peer):
        assert response(await peer.ended())[1:] == ([b"whole"], {})
        await until(lambda: len(peer.requests) == 3)
        await others_run()
    assert [request.split()[0] for request in peer.requests] == ["GET", "POST", "GET"]


async def test_the_next_event_is_asked_for_once_lambda_has_taken_the_response() -> None:
    async with Peer(POST) as peer, serving(with_lifespan(hello), peer):
        peer.takes_responses.clear()
        await peer.ended()
        await others_run()
        assert len(peer.requests) == 2
        peer.takes_responses.set()
        await until(lambda: len(peer.requests) == 3)


async def test_the_disconnect_comes_only_after_the_end() -> None:
    seen: list[str] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        waiting = asyncio.ensure_future(receive())
        await send(START)
        await send(body(b"x", more=True))
        await asyncio.sleep(0)
        seen.append(f"done: {waiting.done()}")
        await send(body(b""))
        seen.append((await waiting)["type"])

    async with Peer(POST) as peer, serving(with_lifespan(app), peer):
        await until(lambda: len(seen) == 2)
    assert seen == ["done: False", "http.disconnect"]


async def test_work_after_the_end_is_done_before_the_next_event_is_asked_for() -> None:
    tail = asyncio.Event()
    asked: list[int] = []

    async with Peer(POST) as peer:

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            await send(START)
            await send(body(b""))
            await tail.wait()
            asked.append(sum(request.startswith("GET") for request in peer.requests))

        async with serving(with_lifespan(app), peer):
            await peer.ended()
            tail.set()
            await until(lambda: bool(asked))
    assert asked == [1]


@pytest.mark.parametrize("event", [b'{"invokeCompletionStatus":"Success"}', b"[]", b'"ping"'])
async def test_an_event_that_is_no_request_gets_an_empty_200(
    event: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        raise AssertionError("not to be called")

    caplog.set_level(logging.DEBUG, "tollgate")
    opening, parts, trailers = response(await answered(app, next_reply(event)))
    assert opening["statusCode"] == 200
    assert (parts, trailers) == ([], {})
    assert [record.levelno for record in caplog.records] == [logging.DEBUG]


async def test_an_event_that_is_not_json_is_an_error_and_the_next_one_is_served() -> None:
    async with Peer(next_reply(b"{"), POST) as peer, serving(with_lifespan(hello), peer):
        refused, served = await peer.ended(), await peer.ended()
    assert refused.path == "/2018-06-01/runtime/invocation/8476a536/error"
    assert refused.headers["Lambda-Runtime-Function-Error-Type"] == "Runtime.InvalidEvent"
    assert response(served)[1] == [b"hello"]


async def test_c36_an_application_goes_on_to_its_end_when_the_response_is_lost(
    caplog: pytest.LogCaptureFixture,
) -> None:
    settled = asyncio.Event()

    async with Peer(POST, acknowledgement=None) as peer:

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            await send(START)
            await peer.begun()
            for _ in range(200):
                await send(body(b"y" * 65_536, more=True))
            await send(body(b""))
            settled.set()

        async with serving(with_lifespan(app), peer):
            await asyncio.wait_for(settled.wait(), PATIENCE_S)
            await until(lambda: sum("GET" in request for request in peer.requests) == 2)
    assert [record.getMessage() for record in caplog.records] == ["response not delivered"]


async def test_the_loop_ends_when_the_runtime_api_is_gone() -> None:
    async with Peer(None) as peer:
        with pytest.raises(RuntimeApiError):
            await run_loop(with_lifespan(hello), peer.address)
