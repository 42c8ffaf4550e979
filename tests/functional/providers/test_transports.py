"""What comes over a connection: answers, refusals, garbage, early ends.

Keeps C35, C36.
"""

import asyncio
import json
from typing import Any

import pytest

from tests.functional.providers.one_provider import AWS, CHAT, SAGEMAKER, OneProvider, both, script
from tests.upstream import FakeUpstream, Script
from tests.upstream import converse_events as converse
from tests.upstream.openai_chunks import DONE, chunk, sse, text_stream
from tollgate.core.content import Text
from tollgate.core.errors import ErrorCode, MissingCredentials
from tollgate.core.events import PartDelta
from tollgate.providers.ports.base import Timeouts, UpstreamRefused, WireRequest
from tollgate.providers.ports.dialect import Dialect
from tollgate.providers.transports.body_frames import WHOLE_BODY_BYTES_MAX
from tollgate.providers.transports.http_pool import ERROR_BODY_BYTES_MAX

GUARD_S = 5  # nothing waits that long: it ends a test that would hang


@both
async def test_an_answer_comes_through(
    transport: str, upstream: FakeUpstream, provider: OneProvider
) -> None:
    upstream.enqueue(script(transport))
    assert (await provider.answer(transport)).parts == (Text(text="Hello world"),)
    (received,) = upstream.received
    assert received.method == "POST"
    assert received.headers["content-type"] == "application/json"
    assert received.headers["accept-encoding"] == "identity"
    assert received.headers["user-agent"] == "tollgate"


async def test_the_key_goes_as_bearer_and_the_body_as_json(
    upstream: FakeUpstream, provider: OneProvider
) -> None:
    upstream.enqueue(script(CHAT))
    await provider.answer(CHAT)
    (received,) = upstream.received
    assert received.path == "/chat/completions"
    assert received.headers["authorization"] == "Bearer sk-secret"
    assert received.json["stream"] is True


async def test_azures_key_goes_in_its_own_header_and_its_version_in_a_query(
    upstream: FakeUpstream, provider: OneProvider
) -> None:
    path = "/openai/deployments/{model}/chat/completions?api-version=2024-10-21"
    dialect = Dialect(path=path)
    upstream.enqueue(script(CHAT))
    await provider.answer(CHAT, dialect=dialect, auth="api-key")
    (received,) = upstream.received
    assert received.path == "/openai/deployments/m%3A1/chat/completions?api-version=2024-10-21"
    assert received.headers["api-key"] == "sk-secret"
    assert "authorization" not in received.headers


async def test_bedrock_requests_are_signed_for_the_path_that_is_sent(
    upstream: FakeUpstream, provider: OneProvider
) -> None:
    upstream.enqueue(script(AWS))
    await provider.answer(AWS)
    (received,) = upstream.received
    assert received.path == "/model/m%3A1/converse-stream"
    assert "/eu-west-1/bedrock/aws4_request" in received.headers["authorization"]
    assert received.headers["x-amz-security-token"] == "token"
    assert received.headers["host"] == upstream.url.removeprefix("http://")


@both
async def test_c80_one_json_object_is_read_by_every_transport(
    transport: str, upstream: FakeUpstream, provider: OneProvider
) -> None:
    upstream.enqueue(Script.json(200, {"inputTokens": 7}))
    wire = WireRequest(
        path="/model/m%3A1/count-tokens", body={}, headers={"accept": "application/json"}
    )
    opened = provider.provider(transport).transport.open(wire, Timeouts())
    async with opened as frames:
        data = [frame.data async for together in frames for frame in together]
    (received,) = upstream.received
    assert [json.loads(each) for each in data] == [{"inputTokens": 7}]
    assert received.headers["accept"] == "application/json"


@pytest.mark.parametrize("transport", [CHAT, AWS, SAGEMAKER, "simulator"])
async def test_c62_a_request_that_is_ready_is_not_sent(
    transport: str, upstream: FakeUpstream, provider: OneProvider
) -> None:
    upstream.enqueue(Script.json(200, {}), Script.json(200, {}))
    body = {"model": "echo", "messages": [{"role": "user", "content": "Hi"}], "stream": True}
    wire = WireRequest(path="/any", body=body)
    is_sent = transport != "simulator"
    row = {} if is_sent else {"codec": "openai_chat", "key": None, "region": None}
    carrier = provider.provider(transport, **row).transport
    ready = await carrier.make_ready(wire, Timeouts())
    # Another request overtakes it: by then one that was sent would have come.
    async with carrier.open(wire, Timeouts()):
        assert len(upstream.received) == (1 if is_sent else 0)
    async with ready.open():
        assert len(upstream.received) == (2 if is_sent else 0)
    ready.release()


@pytest.mark.parametrize("transport", [CHAT, AWS, SAGEMAKER])
async def test_a_ready_request_leaves_on_its_own_connection_or_frees_it(
    transport: str, upstream: FakeUpstream, provider: OneProvider
) -> None:
    upstream.enqueue(Script.json(200, {}), Script.json(200, {}))
    carrier = provider.provider(transport).transport
    wire = WireRequest(path="/any", body={"model": "m"})
    unsent = await carrier.make_ready(wire, Timeouts())
    unsent.release()
    for ready in [await carrier.make_ready(wire, Timeouts()) for _ in range(2)]:
        async with ready.open():
            pass
    assert [received.connection for received in upstream.received] == [1, 2]
    assert upstream.connections == 2


async def test_a_row_without_a_key_sends_none(
    upstream: FakeUpstream, provider: OneProvider
) -> None:
    upstream.enqueue(script(CHAT))
    await provider.answer(CHAT, key=None)
    assert "authorization" not in upstream.received[0].headers


@pytest.mark.parametrize("secret", [None, "", " \n"])
async def test_a_missing_key_is_provider_auth_and_says_what_to_set(
    secret: str | None, upstream: FakeUpstream, provider: OneProvider
) -> None:
    provider.secrets.secret = secret
    error = await provider.failure(CHAT)
    assert isinstance(error, MissingCredentials)
    assert "set environment variable ACME_API_KEY, or make the secret" in error.message
    assert "aws secretsmanager create-secret --name tollgate/acme" in error.message
    assert upstream.received == []


async def test_an_unusable_key_is_provider_auth_and_is_not_told(
    upstream: FakeUpstream, provider: OneProvider
) -> None:
    provider.secrets.secret = "sk-one\r\nx-evil: two"
    error = await provider.failure(CHAT)
    assert isinstance(error, MissingCredentials)
    assert "evil" not in error.message
    assert upstream.received == []


async def test_missing_aws_credentials_are_provider_auth(
    upstream: FakeUpstream, provider: OneProvider
) -> None:
    provider.credentials = None
    error = await provider.failure(AWS)
    assert isinstance(error, MissingCredentials)
    assert "AWS_ACCESS_KEY_ID" in error.message
    assert upstream.received == []


@both
async def test_c35_chunks_come_one_by_one(
    transport: str, upstream: FakeUpstream, provider: OneProvider
) -> None:
    upstream.enqueue(script(transport, lock_step=True))
    events = provider.events(transport)
    await upstream.release()
    await upstream.release()
    async for event in events:
        if isinstance(event, PartDelta):
            assert event.text == "Hello"
            break
    for _ in range(10):
        await upstream.release()
    rest = [event async for event in events]
    assert PartDelta(index=0, text=" world") in rest


@both
async def test_c36_leaving_closes_the_connection_at_once(
    transport: str, upstream: FakeUpstream, provider: OneProvider
) -> None:
    upstream.enqueue(script(transport, lock_step=True))
    events = provider.events(transport)
    await upstream.release()
    await anext(events)
    assert not upstream.client_gone.is_set()
    await events.aclose()
    async with asyncio.timeout(GUARD_S):
        await upstream.client_gone.wait()


@both
async def test_c36_cancelling_before_an_answer_closes_the_connection_at_once(
    transport: str, upstream: FakeUpstream, provider: OneProvider
) -> None:
    upstream.enqueue(script(transport, before_headers="hang"))
    waiting = asyncio.create_task(provider.answer(transport))
    await upstream.requested()
    waiting.cancel()
    async with asyncio.timeout(GUARD_S):
        await upstream.client_gone.wait()
    with pytest.raises(asyncio.CancelledError):
        await waiting


@both
@pytest.mark.parametrize("end", ["close", "reset"])
@pytest.mark.parametrize("kept", [0, 1, 2])
async def test_a_connection_that_breaks_in_the_answer_is_an_error(
    transport: str, end: Any, kept: int, upstream: FakeUpstream, provider: OneProvider
) -> None:
    whole = script(transport)
    upstream.enqueue(script(transport, chunks=whole.chunks[:kept], end=end))
    error = await provider.failure(transport)
    assert error.code is ErrorCode.PROVIDER_UNAVAILABLE
    assert len(upstream.received) == 1


@both
async def test_an_answer_that_ends_properly_but_too_early_is_an_error(
    transport: str, upstream: FakeUpstream, provider: OneProvider
) -> None:
    upstream.enqueue(script(transport, chunks=script(transport).chunks[:2]))
    error = await provider.failure(transport)
    assert error.code is ErrorCode.PROVIDER_UNAVAILABLE
    assert "closed before the end" in error.message


async def test_a_frame_that_is_cut_is_an_error(
    upstream: FakeUpstream, provider: OneProvider
) -> None:
    whole = b"".join(converse.text_stream())
    upstream.enqueue(script(AWS, chunks=[whole[:-3]]))
    error = await provider.failure(AWS)
    assert error.code is ErrorCode.PROVIDER_UNAVAILABLE
    assert "middle of a message" in error.message


@both
@pytest.mark.parametrize(
    "garbage", [b"\x00\x01garbage" * 99, b"data: {]\n\n", b"<html>Bad gateway</html>"]
)
async def test_garbage_is_an_error(
    transport: str, garbage: bytes, upstream: FakeUpstream, provider: OneProvider
) -> None:
    upstream.enqueue(script(transport, chunks=[garbage]))
    assert (await provider.failure(transport)).code is ErrorCode.PROVIDER_UNAVAILABLE


@both
async def test_what_is_not_http_is_an_error(
    transport: str, upstream: FakeUpstream, provider: OneProvider
) -> None:
    upstream.enqueue(Script(raw=b"SSH-2.0-OpenSSH_9.6\r\n\r\n"))
    assert (await provider.failure(transport)).code is ErrorCode.PROVIDER_UNAVAILABLE


async def test_an_encoding_nobody_asked_for_is_an_error(
    upstream: FakeUpstream, provider: OneProvider
) -> None:
    headers = {"content-type": "text/event-stream", "content-encoding": "gzip"}
    upstream.enqueue(script(CHAT, headers=headers))
    assert "encoding" in (await provider.failure(CHAT)).message


@both
async def test_an_error_status_is_a_refusal_with_headers_and_a_bounded_body(
    transport: str, upstream: FakeUpstream, provider: OneProvider
) -> None:
    body = [b"x" * 50_000] * 3
    upstream.enqueue(Script(status=429, headers={"Retry-After": "7"}, chunks=body))
    with pytest.raises(UpstreamRefused) as refused:
        await provider.answer(transport)
    assert refused.value.status == 429
    assert refused.value.headers["retry-after"] == "7"
    assert len(refused.value.body) == ERROR_BODY_BYTES_MAX


@both
async def test_a_redirect_is_refused_and_the_key_stays_here(
    transport: str, upstream: FakeUpstream, provider: OneProvider
) -> None:
    upstream.enqueue(Script(status=307, headers={"location": f"{upstream.url}/elsewhere"}))
    with pytest.raises(UpstreamRefused) as refused:
        await provider.answer(transport)
    assert refused.value.status == 307
    assert len(upstream.received) == 1


@pytest.mark.parametrize("end", ["hang", "close", "reset"])
async def test_nothing_that_happens_after_the_end_mark_matters(
    end: Any, upstream: FakeUpstream, provider: OneProvider
) -> None:
    upstream.enqueue(script(CHAT, end=end))
    assert (await provider.answer(CHAT)).finish == "stop"


async def test_a_server_that_does_not_stream_answers_all_the_same(
    upstream: FakeUpstream, provider: OneProvider
) -> None:
    message = {"role": "assistant", "content": "Hello"}
    body = {"id": "x", "choices": [{"message": message, "finish_reason": "stop"}]}
    upstream.enqueue(Script.json(200, body))
    assert (await provider.answer(CHAT)).parts == (Text(text="Hello"),)


async def test_a_whole_body_has_a_limit(upstream: FakeUpstream, provider: OneProvider) -> None:
    piece = b" " * (1024 * 1024)
    chunks = [piece] * (WHOLE_BODY_BYTES_MAX // len(piece) + 1)
    upstream.enqueue(Script(headers={"content-type": "application/json"}, chunks=chunks))
    assert "more than" in (await provider.failure(CHAT)).message


async def test_an_error_in_the_stream_is_an_error(
    upstream: FakeUpstream, provider: OneProvider
) -> None:
    broken = sse(chunk({"content": ""}, error={"code": 529, "message": "busy"}))
    upstream.enqueue(script(CHAT, chunks=[*text_stream()[:2], broken, DONE]))
    assert (await provider.failure(CHAT)).code is ErrorCode.PROVIDER_OVERLOADED
