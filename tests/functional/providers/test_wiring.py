"""The credentials that the wiring gives to a row of Google Cloud, as a deployed function has them.

Keeps C44.
"""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import unquote

import pytest

from tests.functional.providers.test_google import answered
from tests.functional.providers.test_google_federation import (
    AWS,
    exchanged,
    federation,
    subject_token,
)
from tests.upstream import FakeUpstream
from tollgate.core.clock import SystemClock
from tollgate.core.content import Text
from tollgate.core.request import GenerationRequest, UserMessage
from tollgate.providers.ports.base import ProviderRow, Target, Timeouts
from tollgate.settings import Settings
from tollgate.wiring.generation import Upstream, wire_upstream


@pytest.fixture
async def token_endpoint() -> AsyncIterator[FakeUpstream]:
    async with FakeUpstream() as server:
        yield server


@pytest.fixture
def configuration(google_file: Path, token_endpoint: FakeUpstream) -> str:
    """The path of the configuration of a federation from AWS."""
    google_file.write_text(federation(token_endpoint, {"environment_id": "aws1"}, subject=AWS))
    return str(google_file)


@pytest.fixture
async def wired(monkeypatch: pytest.MonkeyPatch, configuration: str) -> AsyncIterator[Upstream]:
    """Connections to providers, wired from the variables of a Lambda function."""
    variables = {
        "GOOGLE_APPLICATION_CREDENTIALS": configuration,
        "AWS_REGION": "eu-north-1",
        "AWS_ACCESS_KEY_ID": "ASIAROLE",
        "AWS_SECRET_ACCESS_KEY": "shh",
        "AWS_SESSION_TOKEN": "session",
    }
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    upstream = wire_upstream(Settings(), SystemClock())
    yield upstream
    await upstream.aclose()


async def test_the_role_of_the_function_is_exchanged_for_a_google_token(
    wired: Upstream, upstream: FakeUpstream, token_endpoint: FakeUpstream
) -> None:
    row = ProviderRow(
        slug="vertex",
        codec="gemini",
        transport="http_sse",
        base_url=upstream.url,
        auth="google",
        project="acme-1",
        location="global",
    )
    provider = wired.registry.provider(row)
    token_endpoint.enqueue(exchanged("ya29.role"))
    upstream.enqueue(answered())
    request = GenerationRequest(model="m", messages=(UserMessage(content=(Text(text="Hi"),)),))
    target = Target(provider="vertex", model="acme/m", upstream_model="m")
    wire = provider.codec.encode(request, target)
    async with provider.transport.open(wire, Timeouts()) as frames:
        assert [together async for together in frames]
    (exchange,) = token_endpoint.received
    signed = json.loads(unquote(subject_token(exchange.body)))
    assert signed["url"].startswith("https://sts.eu-north-1.amazonaws.com")
    assert "Credential=ASIAROLE/" in json.dumps(signed["headers"])
    assert upstream.received[0].headers["authorization"] == "Bearer ya29.role"
