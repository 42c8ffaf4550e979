"""One provider behind each transport, asked as the engine asks."""

from collections.abc import AsyncGenerator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from tests.unit.providers.decoding import folded
from tests.upstream import Script
from tests.upstream import converse_events as converse
from tests.upstream.openai_chunks import text_stream
from tollgate.aws.sigv4 import Credentials
from tollgate.core.clock import SystemClock
from tollgate.core.content import Text
from tollgate.core.errors import UpstreamError
from tollgate.core.events import StreamEvent
from tollgate.core.request import GenerationRequest, UserMessage
from tollgate.core.response import GenerationResponse
from tollgate.core.secret import CredentialPlace, SecretReference
from tollgate.providers.ports.base import Provider, ProviderRow, Target, Timeouts
from tollgate.providers.ports.dialect import Dialect
from tollgate.providers.transports.authorization import ProviderServices
from tollgate.providers.transports.http_pool import HttpPool
from tollgate.wiring.providers import Registry

KEY = SecretReference(env="ACME_API_KEY", secret="tollgate/acme")
CHAT = "http_sse"
AWS = "bedrock_runtime"
SAGEMAKER = "sagemaker_runtime"

both = pytest.mark.parametrize("transport", [CHAT, AWS])


class Secrets:
    """A secret store of one secret."""

    def __init__(self, secret: str | None) -> None:
        self.secret = secret

    async def read(self, reference: SecretReference) -> str | None:
        assert reference == KEY
        return self.secret

    def place(self, reference: SecretReference) -> CredentialPlace:
        assert reference == KEY
        return CredentialPlace(variables=("ACME_API_KEY",), secret="tollgate/acme")


class OneProvider:
    """One provider of each transport, in front of the scripted upstream."""

    def __init__(self, base_url: str, pool: HttpPool, google_file: Path | None = None) -> None:
        self.secrets = Secrets("sk-secret")
        self.credentials: Credentials | None = Credentials("AKID", "shh", "token")
        self._base_url = base_url
        self._registry = Registry(
            ProviderServices(
                pool=pool,
                secrets=self.secrets,
                credentials=lambda: self.credentials,
                aws_region="eu-west-1",
                google_file=google_file,
                clock=SystemClock(),
            )
        )

    def provider(self, transport: str, **fields: Any) -> Provider:
        row = {"base_url": self._base_url} | (
            {"codec": "openai_chat", "key": KEY}
            if transport == CHAT
            else {"codec": "openai_chat", "region": "eu-west-1"}
            if transport == SAGEMAKER
            else {"codec": "bedrock", "region": "eu-west-1"}
        )
        return self._registry.provider(
            ProviderRow(slug="acme", transport=transport, **(row | fields))
        )

    async def events(self, transport: str, **fields: Any) -> AsyncGenerator[StreamEvent, None]:
        """The events of one request, as the engine asks for them."""
        provider = self.provider(transport, **fields)
        dialect = fields.get("dialect", Dialect())
        target = Target(provider="acme", model="acme/m", upstream_model="m:1", dialect=dialect)
        request = GenerationRequest(
            model="acme/m", messages=(UserMessage(content=(Text(text="Hi"),)),)
        )
        wire = provider.codec.encode(request, target)
        decoder = provider.codec.decoder(target)
        async with provider.transport.open(wire, Timeouts(connect_s=5)) as frames:
            async for together in frames:
                for event in chain.from_iterable(map(decoder.feed, together)):
                    yield event
            for event in decoder.end():
                yield event

    async def answer(self, transport: str, **fields: Any) -> GenerationResponse:
        return folded([event async for event in self.events(transport, **fields)])

    async def failure(self, transport: str, **fields: Any) -> UpstreamError:
        with pytest.raises(UpstreamError) as raised:
            await self.answer(transport, **fields)
        return raised.value


def script(transport: str, **fields: Any) -> Script:
    """A whole answer of a transport's kind, but for what is changed."""
    whole = (
        {"chunks": text_stream()}
        if transport == CHAT
        else {"chunks": converse.text_stream(), "headers": converse.HEADERS}
    )
    return Script(**(whole | fields))
