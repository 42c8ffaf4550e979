"""Bedrock's OpenAI and Anthropic formats over real sockets: signed by the role, or with a key.

Keeps C36 and C41 as the other rows of `http_sse` do.
"""

import re

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from tests.functional.providers.one_provider import CHAT, KEY, OneProvider, script
from tests.upstream import FakeUpstream, Script, messages_events, responses_events
from tests.upstream.server import Received
from tollgate.core.content import Text
from tollgate.core.errors import ErrorCode
from tollgate.providers.ports.base import Auth, UpstreamRefused
from tollgate.providers.ports.dialect import Dialect

SIGNED = re.compile(r"SignedHeaders=(?P<names>[a-z0-9;-]+), ")


def verified_service(received: Received) -> str:
    """The service of a signature that botocore makes of the same request."""
    stated = received.headers["authorization"]
    service = stated.split("/")[3]
    names = SIGNED.search(stated)
    assert names is not None
    url = f"http://{received.headers['host']}{received.path}"
    signed = names["names"].split(";")
    headers = {name: received.headers[name] for name in signed}
    request = AWSRequest("POST", url, headers=headers, data=received.body)
    request.context["timestamp"] = received.headers["x-amz-date"]
    signer = SigV4Auth(Credentials("AKID", "shh", "token"), service, "eu-west-1")
    text = signer.string_to_sign(request, signer.canonical_request(request))
    assert stated.endswith(f"Signature={signer.signature(text, request)}")
    assert {"content-type", "host", "x-amz-security-token"} <= set(signed)
    return service


@pytest.mark.parametrize("auth", ["bedrock", "bedrock-mantle"])
async def test_chat_completions_are_signed_for_the_service_that_auth_names(
    auth: Auth, upstream: FakeUpstream, provider: OneProvider
) -> None:
    upstream.enqueue(script(CHAT))
    answer = await provider.answer(CHAT, key=None, auth=auth, region="eu-west-1")
    assert answer.parts == (Text(text="Hello world"),)
    (received,) = upstream.received
    assert received.path == "/chat/completions"
    assert verified_service(received) == auth
    assert received.json["model"] == "m:1"


async def test_responses_are_signed_never_stored_and_bounded(
    upstream: FakeUpstream, provider: OneProvider
) -> None:
    upstream.enqueue(Script(chunks=responses_events.text_stream("Hello")))
    row = {"codec": "openai_responses", "key": None, "auth": "bedrock", "region": "eu-west-1"}
    await provider.answer(CHAT, **row, dialect=Dialect(output_limit_default=4096))
    (received,) = upstream.received
    assert (received.path, verified_service(received)) == ("/responses", "bedrock")
    # Bedrock keeps a response for 30 days unless `store` is false, and needs other permissions.
    assert received.json["store"] is False
    assert received.json["max_output_tokens"] == 4096


async def test_messages_are_signed_with_their_version(
    upstream: FakeUpstream, provider: OneProvider
) -> None:
    events = messages_events.text_answer("Hel", "lo")
    upstream.enqueue(Script(chunks=[messages_events.sse(event) for event in events]))
    row = {"codec": "anthropic", "key": None, "auth": "bedrock-mantle", "region": "eu-west-1"}
    answer = await provider.answer(CHAT, **row, dialect=Dialect(output_limit_default=4096))
    assert answer.parts == (Text(text="Hello"),)
    (received,) = upstream.received
    assert (received.path, verified_service(received)) == ("/messages", "bedrock-mantle")
    assert received.headers["anthropic-version"] == "2023-06-01"
    assert received.json["max_tokens"] == 4096


async def test_a_bedrock_key_goes_as_bearer_and_nothing_is_signed(
    upstream: FakeUpstream, provider: OneProvider
) -> None:
    upstream.enqueue(script(CHAT))
    await provider.answer(CHAT, key=KEY, region="eu-west-1")
    (received,) = upstream.received
    assert received.headers["authorization"] == "Bearer sk-secret"
    assert "x-amz-date" not in received.headers


async def test_without_credentials_nothing_is_sent(
    upstream: FakeUpstream, provider: OneProvider
) -> None:
    provider.credentials = None
    row = {"key": None, "auth": "bedrock-mantle", "region": "eu-west-1"}
    error = await provider.failure(CHAT, **row)
    assert error.code is ErrorCode.PROVIDER_AUTH
    assert "AWS_ACCESS_KEY_ID" in error.message
    assert upstream.received == []


async def test_c41_a_refusal_keeps_its_status_and_headers(
    upstream: FakeUpstream, provider: OneProvider
) -> None:
    upstream.enqueue(Script.json(429, {"error": {"message": "slow down"}}, retry_after="3"))
    row = {"key": None, "auth": "bedrock-mantle", "region": "eu-west-1"}
    with pytest.raises(UpstreamRefused) as refused:
        await provider.answer(CHAT, **row)
    assert (refused.value.status, refused.value.headers["retry-after"]) == (429, "3")
