"""SageMaker endpoints with an OpenAI-like format, whose answers arrive in an AWS event stream.

https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_runtime_InvokeEndpointWithResponseStream.html
"""

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Final
from urllib.parse import quote

import pydantic_core
from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import ValidationError

from tollgate.aws.eventstream import EventStreamDecoder
from tollgate.aws.sigv4 import Credentials, Signer
from tollgate.core.clock import Clock
from tollgate.core.errors import ErrorCode, UpstreamError
from tollgate.providers.ports.base import (
    Frame,
    ProviderRow,
    ReadyRequest,
    Timeouts,
    Transport,
    UpstreamRefused,
    WireRequest,
)
from tollgate.providers.shared.refusals import malformed_error
from tollgate.providers.transports.authorization import required_credentials
from tollgate.providers.transports.body_frames import BodyFrames
from tollgate.providers.transports.http_pool import HttpCall, HttpPool, ReservedCall
from tollgate.providers.transports.provider_services import ProviderServices
from tollgate.providers.transports.sse import SseDecoder

_MODEL_FAILED: Final = 424


class _ModelError(BaseModel):
    """SageMaker's error for a refusal by the container behind an endpoint."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    status: int = Field(alias="OriginalStatusCode", ge=400, le=599)
    message: str = Field(alias="OriginalMessage")


class SageMakerRuntime:
    """Sends the requests of one row to the endpoint that the request names as its model."""

    def __init__(
        self,
        row: ProviderRow,
        pool: HttpPool,
        credentials: Callable[[], Credentials | None],
        clock: Clock,
    ) -> None:
        if row.region is None:
            raise ValueError(f"provider {row.slug} has no region")
        self._slug = row.slug
        self._base_url = row.base_url or f"https://runtime.sagemaker.{row.region}.amazonaws.com"
        self._pool = pool
        self._signer = Signer(
            "sagemaker", row.region, required_credentials(row.slug, credentials), clock
        )

    async def make_ready(self, request: WireRequest, timeouts: Timeouts) -> ReadyRequest:
        ready = await self._pool.reserve(self._call(request, timeouts))
        return ReadyRequest(partial(self.open, request, timeouts, ready), ready.reserved.release)

    @asynccontextmanager
    async def open(
        self, request: WireRequest, timeouts: Timeouts, ready: ReservedCall | None = None
    ) -> AsyncIterator[AsyncIterator[Sequence[Frame]]]:
        try:
            async with self._pool.send(ready or self._call(request, timeouts)) as reply:
                yield BodyFrames(reply, PayloadFrames(self._slug), self._slug)
        except UpstreamRefused as refused:
            raise _by_container(refused) from refused

    def _call(self, request: WireRequest, timeouts: Timeouts) -> HttpCall:
        # A SageMaker endpoint has one path, whatever the format's path is.
        endpoint = quote(str(request.body.get("model")), safe="")
        url = f"{self._base_url}/endpoints/{endpoint}/invocations-response-stream"
        body = pydantic_core.to_json(request.body)
        headers = {**request.headers, "content-type": "application/json"}
        return HttpCall(
            provider=self._slug,
            url=url,
            headers=self._signer.sign("POST", url, headers, body),
            body=body,
            connect_s=timeouts.connect_s,
        )


def _by_container(refused: UpstreamRefused) -> UpstreamRefused:
    """Return the container's own refusal, if SageMaker has passed one on."""
    if refused.status != _MODEL_FAILED:
        return refused
    try:
        inner = _ModelError.model_validate_json(refused.body)
    except ValidationError:
        return refused
    return UpstreamRefused(inner.status, refused.headers, inner.message.encode())


class PayloadFrames:
    """Decodes SSE events from event-stream payloads, which may cut events anywhere."""

    def __init__(self, provider: str) -> None:
        self._provider = provider
        self._messages = EventStreamDecoder()
        self._events = SseDecoder()

    def feed(self, chunk: bytes) -> Iterable[Frame]:
        for message in self._messages.feed(chunk):
            if message.exception is not None:
                raise UpstreamError(
                    ErrorCode.PROVIDER_UNAVAILABLE,
                    f"The provider {self._provider} failed while the model was answering.",
                )
            if message.event != "PayloadPart":
                raise malformed_error(self._provider, "an event of unknown kind")
            yield from self._events.feed(message.payload)

    def end(self) -> Iterable[Frame]:
        self._messages.end()
        return self._events.end()


def make_sagemaker_runtime(row: ProviderRow, services: ProviderServices) -> Transport:
    """Return the transport of a row, which signs with the gateway's AWS identity."""
    return SageMakerRuntime(row, services.pool, services.credentials, services.clock)
