"""The transport for SageMaker endpoints, with OpenAI-like answers in AWS event streams.

https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_runtime_InvokeEndpointWithResponseStream.html
"""

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Final
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import ValidationError
from typing_extensions import override

from tollgate.aws.eventstream import EventStreamDecoder
from tollgate.core.errors import ErrorCode, UpstreamError
from tollgate.http1.reply import Reply
from tollgate.providers.ports.base import (
    Frame,
    ProviderRow,
    Timeouts,
    Transport,
    UpstreamRefused,
    WireRequest,
)
from tollgate.providers.shared.refusals import malformed_error
from tollgate.providers.transports.authorization import ProviderServices
from tollgate.providers.transports.bedrock_runtime import AwsRuntime
from tollgate.providers.transports.body_frames import FrameDecoder
from tollgate.providers.transports.http_pool import ReservedCall
from tollgate.providers.transports.sse import SseDecoder

_MODEL_FAILED: Final = 424


class _ModelError(BaseModel):
    """SageMaker's error if the container behind an endpoint refused a request."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    status: int = Field(alias="OriginalStatusCode", ge=400, le=599)
    message: str = Field(alias="OriginalMessage")


class SageMakerRuntime(AwsRuntime):
    """Sends each request to the endpoint named in the field `model`."""

    def __init__(self, row: ProviderRow, services: ProviderServices) -> None:
        super().__init__(row, services, service="sagemaker", host="runtime.sagemaker")

    @override
    @asynccontextmanager
    async def open(
        self, request: WireRequest, timeouts: Timeouts, ready: ReservedCall | None = None
    ) -> AsyncIterator[AsyncIterator[Sequence[Frame]]]:
        try:
            async with super().open(request, timeouts, ready) as frames:
                yield frames
        except UpstreamRefused as refused:
            raise _by_container(refused) from refused

    @override
    def _path(self, request: WireRequest) -> str:
        """Return the path of an endpoint, which is the same for every format."""
        endpoint = quote(str(request.body.get("model")), safe="")
        return f"/endpoints/{endpoint}/invocations-response-stream"

    @override
    def _decoder(self, reply: Reply, request: WireRequest) -> FrameDecoder:
        return PayloadFrames(self._slug)


def _by_container(refused: UpstreamRefused) -> UpstreamRefused:
    """Return the container's refusal if SageMaker's refusal contains one, else SageMaker's."""
    if refused.status != _MODEL_FAILED:
        return refused
    try:
        inner = _ModelError.model_validate_json(refused.body)
    except ValidationError:
        return refused
    return UpstreamRefused(inner.status, refused.headers, inner.message.encode())


class PayloadFrames:
    """Decodes SSE events from the payloads of messages, which may split events anywhere."""

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
    """Return the transport of a row for SageMaker."""
    return SageMakerRuntime(row, services)
