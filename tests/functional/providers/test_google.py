"""Rows of Google over real sockets: keys in a header, and tokens from a token endpoint."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.functional.providers.one_provider import OneProvider
from tests.upstream import FakeUpstream, Script
from tests.upstream import gemini_chunks as gemini
from tollgate.core.content import Text
from tollgate.core.errors import ErrorCode, MissingCredentials, UpstreamError
from tollgate.core.response import GenerationResponse

GOOGLE = "http_sse"


@pytest.fixture(scope="module")
def private_key() -> str:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ).decode()


@pytest.fixture
async def token_endpoint() -> AsyncIterator[FakeUpstream]:
    async with FakeUpstream() as server:
        yield server


@pytest.fixture
def account(token_endpoint: FakeUpstream, private_key: str) -> str:
    """The JSON key of a service account, as Google writes it."""
    return json.dumps(
        {
            "type": "service_account",
            "client_email": "tollgate@acme.example",
            "private_key": private_key,
            "private_key_id": "k1",
            "token_uri": f"{token_endpoint.url}/token",
        }
    )


def token(value: str, lives_s: int = 3600) -> Script:
    body = {"access_token": value, "expires_in": lives_s, "token_type": "Bearer"}
    return Script.json(200, body)


def answered() -> Script:
    return Script(chunks=[gemini.sse(chunk) for chunk in gemini.text_stream()])


class Google:
    """A row of Google Cloud in front of the scripted upstream."""

    def __init__(self, provider: OneProvider, account: str) -> None:
        self._provider = provider
        provider.secrets.secret = account
        self._row: dict[str, Any] = {
            "codec": "gemini",
            "auth": "google",
            "project": "acme-1",
            "location": "global",
        }

    def rotate(self, account: str) -> None:
        self._provider.secrets.secret = account

    async def answer(self, **fields: Any) -> GenerationResponse:
        return await self._provider.answer(GOOGLE, **(self._row | fields))

    async def failure(self, **fields: Any) -> UpstreamError:
        return await self._provider.failure(GOOGLE, **(self._row | fields))


@pytest.fixture
def google(provider: OneProvider, account: str) -> Google:
    return Google(provider, account)


@pytest.mark.parametrize("header", ["x-goog-api-key", "x-api-key"])
async def test_a_row_names_the_header_of_its_key(
    header: str, upstream: FakeUpstream, provider: OneProvider
) -> None:
    upstream.enqueue(answered())
    answer = await provider.answer(GOOGLE, codec="gemini", auth=header)
    assert answer.parts == (Text(text="Hello world"),)
    (received,) = upstream.received
    assert received.path == "/v1beta/models/m%3A1:streamGenerateContent?alt=sse"
    assert received.headers[header] == "sk-secret"
    assert "authorization" not in received.headers


async def test_a_service_account_asks_for_a_token_and_sends_it(
    upstream: FakeUpstream, token_endpoint: FakeUpstream, google: Google
) -> None:
    token_endpoint.enqueue(token("ya29.one"))
    upstream.enqueue(answered())
    assert (await google.answer()).parts == (Text(text="Hello world"),)
    (asked,) = token_endpoint.received
    assert (asked.method, asked.path) == ("POST", "/token")
    form = parse_qs(asked.body.decode())
    assert form["grant_type"] == ["urn:ietf:params:oauth:grant-type:jwt-bearer"]
    assert upstream.received[0].headers["authorization"] == "Bearer ya29.one"


async def test_a_token_serves_until_shortly_before_its_end(
    upstream: FakeUpstream, token_endpoint: FakeUpstream, google: Google
) -> None:
    token_endpoint.enqueue(token("short", lives_s=200), token("long"))
    upstream.enqueue(answered(), answered(), answered())
    for _ in range(3):
        await google.answer()
    sent = [request.headers["authorization"] for request in upstream.received]
    assert sent == ["Bearer short", "Bearer long", "Bearer long"]


async def test_requests_at_once_ask_for_one_token(
    upstream: FakeUpstream, token_endpoint: FakeUpstream, google: Google
) -> None:
    token_endpoint.enqueue(token("one"))
    upstream.enqueue(*(answered() for _ in range(4)))
    await asyncio.gather(*(google.answer() for _ in range(4)))
    assert len(token_endpoint.received) == 1


async def test_a_rotated_account_is_used_at_once(
    upstream: FakeUpstream, token_endpoint: FakeUpstream, google: Google, account: str
) -> None:
    token_endpoint.enqueue(token("old"), token("new"))
    upstream.enqueue(answered(), answered())
    await google.answer()
    google.rotate(account.replace("tollgate@", "other@"))
    await google.answer()
    sent = [request.headers["authorization"] for request in upstream.received]
    assert sent == ["Bearer old", "Bearer new"]


@pytest.mark.parametrize(
    "unusable", ["not json", "[]", "{}", '{"type": "service_account", "private_key": "x"}']
)
async def test_an_account_that_cannot_be_read_is_provider_auth_and_is_not_told(
    unusable: str, upstream: FakeUpstream, google: Google
) -> None:
    google.rotate(unusable)
    error = await google.failure()
    assert isinstance(error, MissingCredentials)
    assert "environment variable ACME_API_KEY or secret tollgate/acme" in error.message
    assert unusable not in error.message
    assert upstream.received == []


async def test_a_missing_account_is_provider_auth_and_says_what_to_set(google: Google) -> None:
    google.rotate(" ")
    error = await google.failure()
    assert isinstance(error, MissingCredentials)
    assert "set environment variable ACME_API_KEY" in error.message


async def test_a_token_that_is_refused_is_provider_auth_in_words_of_ours(
    token_endpoint: FakeUpstream, google: Google
) -> None:
    refusal = {"error": "invalid_grant", "error_description": "Account tollgate@acme deleted."}
    token_endpoint.enqueue(Script.json(400, refusal))
    error = await google.failure()
    assert not isinstance(error, MissingCredentials)
    assert error.code is ErrorCode.PROVIDER_AUTH
    assert "deleted" not in error.message


async def test_a_token_endpoint_that_cannot_be_reached_is_provider_unavailable(
    token_endpoint: FakeUpstream, google: Google
) -> None:
    token_endpoint.enqueue(Script(before_headers="close"))
    error = await google.failure()
    assert error.code is ErrorCode.PROVIDER_UNAVAILABLE
    assert "127.0.0.1" not in error.message


@pytest.fixture
def google_file(tmp_path: Path, account: str) -> Path:
    """The environment's own credentials, those of the account."""
    file = tmp_path / "google.json"
    file.write_text(account)
    return file


async def test_a_row_without_a_key_uses_the_credentials_of_the_environment(
    upstream: FakeUpstream, token_endpoint: FakeUpstream, google: Google
) -> None:
    token_endpoint.enqueue(token("default"))
    upstream.enqueue(answered())
    await google.answer(key=None)
    assert upstream.received[0].headers["authorization"] == "Bearer default"
