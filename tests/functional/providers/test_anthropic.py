"""Anthropic's format over real sockets: native, and by Bedrock's InvokeModel."""

import pytest

from tests.functional.providers.one_provider import CHAT, OneProvider
from tests.upstream import FakeUpstream, Script, converse_events, messages_events
from tollgate.core.content import Text
from tollgate.core.errors import ErrorCode
from tollgate.providers.ports.base import UpstreamRefused
from tollgate.providers.ports.dialect import Dialect

INVOKE = "bedrock_invoke"
ON_BEDROCK = Dialect(claude_carrier="bedrock")
ANSWER = messages_events.text_answer("Hel", "lo")


async def test_the_key_and_the_pinned_version_go_in_headers_of_their_own(
    upstream: FakeUpstream, provider: OneProvider
) -> None:
    upstream.enqueue(Script(chunks=[messages_events.sse(event) for event in ANSWER]))
    answer = await provider.answer(CHAT, codec="anthropic", auth="x-api-key")
    assert answer.parts == (Text(text="Hello"),)
    (received,) = upstream.received
    assert received.path == "/messages"
    assert received.headers["x-api-key"] == "sk-secret"
    assert received.headers["anthropic-version"] == "2023-06-01"
    assert "authorization" not in received.headers


async def test_invoke_model_is_signed_and_its_chunks_are_opened(
    upstream: FakeUpstream, provider: OneProvider
) -> None:
    chunks = [messages_events.invoke_chunk(event) for event in ANSWER]
    upstream.enqueue(Script(chunks=chunks, headers=converse_events.HEADERS))
    answer = await provider.answer(INVOKE, codec="anthropic", dialect=ON_BEDROCK)
    assert answer.parts == (Text(text="Hello"),)
    (received,) = upstream.received
    assert received.path == "/model/m%3A1/invoke-with-response-stream"
    assert received.json["anthropic_version"] == "bedrock-2023-05-31"
    assert "/eu-west-1/bedrock/aws4_request" in received.headers["authorization"]


async def test_q31_an_exception_after_chunks_is_an_error(
    upstream: FakeUpstream, provider: OneProvider
) -> None:
    chunks = [messages_events.invoke_chunk(event) for event in ANSWER[:3]]
    chunks.append(converse_events.exception("modelTimeoutException", "too slow"))
    upstream.enqueue(Script(chunks=chunks, headers=converse_events.HEADERS))
    error = await provider.failure(INVOKE, codec="anthropic", dialect=ON_BEDROCK)
    assert error.code is ErrorCode.PROVIDER_TIMEOUT


async def test_q40_an_overloaded_reply_is_a_refusal_with_its_headers(
    upstream: FakeUpstream, provider: OneProvider
) -> None:
    body = messages_events.error("overloaded_error", "Overloaded")
    upstream.enqueue(Script.json(529, body, retry_after="7"))
    with pytest.raises(UpstreamRefused) as raised:
        await provider.answer(CHAT, codec="anthropic", auth="x-api-key")
    assert raised.value.status == 529
    assert raised.value.headers["retry-after"] == "7"
