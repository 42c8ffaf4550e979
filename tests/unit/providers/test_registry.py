"""Rows become providers by name."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.clocks import FixedClock
from tollgate.core.secret import CredentialPlace, SecretReference
from tollgate.providers.codecs.anthropic.decode import MessagesDecoder
from tollgate.providers.codecs.bedrock.decode import ConverseDecoder
from tollgate.providers.codecs.gemini.decode import GeminiDecoder
from tollgate.providers.codecs.openai_chat.decode import ChatDecoder
from tollgate.providers.codecs.openai_responses.decode import ResponsesDecoder
from tollgate.providers.ports.base import ProviderRow, Target
from tollgate.providers.simulator.simulator import Simulator
from tollgate.providers.transports.authorization import ProviderServices
from tollgate.providers.transports.bedrock_runtime import BedrockRuntime
from tollgate.providers.transports.http_pool import HttpPool
from tollgate.providers.transports.http_sse import HttpSse
from tollgate.providers.transports.sagemaker_runtime import SageMakerRuntime
from tollgate.wiring.providers import Registry, RowError


class NoSecrets:
    """A secret store that has none."""

    async def read(self, reference: SecretReference) -> str | None:
        return None

    def place(self, reference: SecretReference) -> CredentialPlace:
        return CredentialPlace()


def registry_with(google_file: Path | None) -> Registry:
    return Registry(
        ProviderServices(
            pool=HttpPool(),
            secrets=NoSecrets(),
            credentials=lambda: None,
            aws_region="eu-west-1",
            google_file=google_file,
            clock=FixedClock(),
        )
    )


@pytest.fixture
def registry() -> Registry:
    return registry_with(None)


def row(codec: str, transport: str, **fields: Any) -> ProviderRow:
    return ProviderRow(slug="acme", codec=codec, transport=transport, **fields)


@pytest.mark.parametrize(
    ("asked", "decoder", "transport"),
    [
        (row("openai_chat", "http_sse", base_url="https://x"), ChatDecoder, HttpSse),
        (row("openai_chat", "simulator"), ChatDecoder, Simulator),
        (row("bedrock", "bedrock_runtime", region="eu-west-1"), ConverseDecoder, BedrockRuntime),
        (
            row("openai_chat", "sagemaker_runtime", region="eu-west-1"),
            ChatDecoder,
            SageMakerRuntime,
        ),
        (
            row("openai_responses", "http_sse", base_url="https://api.example"),
            ResponsesDecoder,
            HttpSse,
        ),
        (row("gemini", "http_sse", base_url="https://x", auth="google"), GeminiDecoder, HttpSse),
        (row("anthropic", "http_sse", base_url="https://x"), MessagesDecoder, HttpSse),
        (row("anthropic", "bedrock_invoke", region="eu-west-1"), MessagesDecoder, BedrockRuntime),
    ],
)
def test_d3_a_row_names_its_codec_and_transport_and_is_made_once(
    asked: ProviderRow, decoder: type, transport: type, registry: Registry
) -> None:
    made = registry.provider(asked)
    decoders = made.codec.decoder(Target(provider="acme", model="a/b", upstream_model="m"))
    assert (type(decoders), type(made.transport)) == (decoder, transport)
    assert registry.provider(asked) is made


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (row("telepathy", "http_sse", base_url="https://x"), "'telepathy' is not one of anthropic"),
        (row("openai_chat", "pigeon"), "'pigeon' is not one of bedrock_invoke"),
        (row("openai_chat", "http_sse"), "needs base_url"),
        (row("bedrock", "bedrock_runtime"), "needs region"),
        (row("openai_chat", "sagemaker_runtime"), "needs region"),
        (row("anthropic", "bedrock_invoke"), "needs region"),
    ],
)
def test_a_row_that_cannot_be_made_says_why(
    asked: ProviderRow, message: str, registry: Registry
) -> None:
    with pytest.raises(RowError, match=message):
        registry.provider(asked)


def test_without_an_aws_provider_botocore_is_not_imported() -> None:
    program = (
        "import sys, tollgate.wiring.providers as r\n"
        "import tollgate.providers.transports.http_sse, tollgate.providers.ports.formats as f\n"
        "f.codec_of('openai_chat')\n"
        "assert not [name for name in sys.modules if name.startswith('botocore')]\n"
        "assert not [name for name in sys.modules if name.startswith(f'{f.__package__}.gemini')]"
    )
    subprocess.run(
        [sys.executable, "-c", program], check=True, env={"PYTHONPATH": os.pathsep.join(sys.path)}
    )


def test_until_a_token_is_asked_for_google_auth_is_not_imported() -> None:
    program = (
        "import sys, tollgate.providers.ports.formats as f\n"
        "f.codec_of('gemini')\n"
        "import tollgate.providers.transports.google_token\n"
        "assert not [name for name in sys.modules if name.startswith(('google', 'cryptography'))]"
    )
    subprocess.run(
        [sys.executable, "-c", program], check=True, env={"PYTHONPATH": os.pathsep.join(sys.path)}
    )


async def test_a_row_of_google_without_a_key_is_usable_where_its_file_is(tmp_path: Path) -> None:
    google = row("gemini", "http_sse", base_url="https://x", auth="google")
    file = tmp_path / "application_default_credentials.json"
    missing = CredentialPlace(variables=("GOOGLE_APPLICATION_CREDENTIALS",))
    assert await registry_with(file).find_missing_key(google) == missing
    file.write_text("{}")
    assert await registry_with(file).find_missing_key(google) is None
