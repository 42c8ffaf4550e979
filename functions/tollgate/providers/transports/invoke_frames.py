"""Decodes answers of Bedrock's InvokeModel; each message contains one of the model's own events.

https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ResponseStream.html (seen
2026-11-21): a `chunk` has `bytes`, the event in base64, and `p`, padding that hides the length.
"""

import base64
import binascii
from collections.abc import Iterable, Iterator

from pydantic import BaseModel
from pydantic_core import ValidationError

from tollgate.core.errors import ErrorCode, UpstreamError
from tollgate.providers.ports.base import Frame, ProviderRow, Transport
from tollgate.providers.transports.authorization import ProviderServices
from tollgate.providers.transports.bedrock_runtime import BedrockRuntime, EventStreamFrames


class _Chunk(BaseModel):
    bytes: str


class InvokeFrames:
    """Decodes the event in each chunk into a frame, and passes exceptions on unchanged."""

    def __init__(self) -> None:
        self._messages = EventStreamFrames()

    def feed(self, chunk: bytes) -> Iterator[Frame]:
        for message in self._messages.feed(chunk):
            yield message if message.exception is not None else _inside(message)

    def end(self) -> Iterable[Frame]:
        return self._messages.end()


def _inside(message: Frame) -> Frame:
    try:
        inside = _Chunk.model_validate_json(message.data).bytes
        return Frame(data=base64.b64decode(inside, validate=True))
    except (ValidationError, binascii.Error) as invalid:
        raise UpstreamError(
            ErrorCode.PROVIDER_UNAVAILABLE, "The provider sent a chunk that cannot be read."
        ) from invalid


def make_bedrock_invoke(row: ProviderRow, services: ProviderServices) -> Transport:
    """Return the transport of a row for InvokeModel."""
    return BedrockRuntime(row, services, InvokeFrames)
