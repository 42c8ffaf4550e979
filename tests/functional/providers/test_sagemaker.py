"""SageMaker endpoints: SSE bytes in the payload of an AWS event stream, cut anywhere.

Keeps C41.
"""

import json

import pytest

from tests.functional.providers.one_provider import SAGEMAKER, OneProvider
from tests.upstream import FakeUpstream, Script
from tests.upstream import converse_events as aws
from tests.upstream.openai_chunks import text_stream
from tollgate.core.content import Text
from tollgate.core.errors import ErrorCode
from tollgate.providers.ports.base import UpstreamRefused

STREAM = b"".join(text_stream())


def payload(part: bytes) -> bytes:
    headers = {
        ":event-type": "PayloadPart",
        ":content-type": "application/octet-stream",
        ":message-type": "event",
    }
    return aws.message(headers, part)


@pytest.mark.parametrize("size", [1, 7, 100, len(STREAM)])
async def test_an_answer_comes_through_however_its_payload_is_cut(
    size: int, upstream: FakeUpstream, provider: OneProvider
) -> None:
    parts = [payload(STREAM[at : at + size]) for at in range(0, len(STREAM), size)]
    upstream.enqueue(Script(chunks=[b"".join(parts)], headers=aws.HEADERS))
    assert (await provider.answer(SAGEMAKER)).parts == (Text(text="Hello world"),)
    (received,) = upstream.received
    assert received.path == "/endpoints/m%3A1/invocations-response-stream"
    assert "/eu-west-1/sagemaker/aws4_request" in received.headers["authorization"]
    assert received.json["messages"] == [{"role": "user", "content": "Hi"}]


async def test_q31_an_exception_in_the_stream_is_an_error(
    upstream: FakeUpstream, provider: OneProvider
) -> None:
    failed = aws.exception("ModelStreamError", "secret")
    chunks = [payload(text_stream()[0]), failed]
    upstream.enqueue(Script(chunks=chunks, headers=aws.HEADERS))
    failure = await provider.failure(SAGEMAKER)
    assert failure.code is ErrorCode.PROVIDER_UNAVAILABLE
    assert failure.message == "The provider acme failed while the model was answering."


async def test_an_event_of_another_kind_is_an_error_and_never_dropped(
    upstream: FakeUpstream, provider: OneProvider
) -> None:
    chunks = [payload(text_stream()[0]), aws.event("BrandNew", {}), payload(STREAM)]
    upstream.enqueue(Script(chunks=chunks, headers=aws.HEADERS))
    assert "unknown kind" in (await provider.failure(SAGEMAKER)).message


async def test_a_stream_that_ends_in_a_message_is_an_error(
    upstream: FakeUpstream, provider: OneProvider
) -> None:
    upstream.enqueue(Script(chunks=[payload(STREAM)[:-3]], headers=aws.HEADERS))
    assert (await provider.failure(SAGEMAKER)).code is ErrorCode.PROVIDER_UNAVAILABLE


async def test_without_credentials_nothing_is_sent(
    upstream: FakeUpstream, provider: OneProvider
) -> None:
    provider.credentials = None
    assert (await provider.failure(SAGEMAKER)).code is ErrorCode.PROVIDER_AUTH
    assert upstream.received == []


INNER = {"error": {"message": "This model's maximum context length is 8192 tokens."}}


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        (
            {"OriginalStatusCode": 400, "OriginalMessage": json.dumps(INNER), "Message": "x"},
            400,
            json.dumps(INNER).encode(),
        ),
        ({"OriginalStatusCode": 503, "OriginalMessage": "busy"}, 503, b"busy"),
        ({"OriginalStatusCode": 200, "OriginalMessage": "odd"}, 424, None),
        ({"Message": "no"}, 424, None),
    ],
)
async def test_c41_a_refusal_of_the_container_is_its_own(
    body: dict[str, object],
    status: int,
    said: bytes | None,
    upstream: FakeUpstream,
    provider: OneProvider,
) -> None:
    upstream.enqueue(Script.json(424, body))
    with pytest.raises(UpstreamRefused) as refused:
        await provider.answer(SAGEMAKER)
    assert refused.value.status == status
    assert refused.value.body == (said or json.dumps(body).encode())
