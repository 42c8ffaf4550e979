"""Encodes requests for streamed images, and decodes previews and images as they arrive.

https://developers.openai.com/api/reference/resources/images/edit-streaming-events and openai-python
3.52.0 (2026-11-22).
"""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct
from msgspec.json import decode as decode_json
from msgspec.json import encode as encode_json

from tollgate.core.events import Ended, Output, Partial, Started, StreamEvent, UsageReported
from tollgate.core.json_value import JsonValue
from tollgate.core.usage import Usage
from tollgate.core.work.images import ImagePiece, ImageRequest
from tollgate.providers.codecs.openai_images.codec import (
    ImagesBody,
    encode_images_request,
    result_of,
    usage_of,
)
from tollgate.providers.ports.base import Frame, StreamedWorkCodec, Target, WireRequest
from tollgate.providers.shared.openai_errors import (
    parse_openai_reply_error,
    parse_openai_stream_error,
)
from tollgate.providers.shared.pictures import check_image, encode_images, picture_bytes_max
from tollgate.providers.shared.refusals import early_close_error, malformed_error
from tollgate.providers.shared.vectors import parse_body

# OpenAI does not send this mark, but some other servers do.
_END_MARK: Final = b"[DONE]"


class _Event(Struct, frozen=True):
    type: str = ""
    b64_json: str | None = None
    partial_image_index: int = 0
    quality: str | None = None
    background: str | None = None
    usage: object = None
    error: object = None


def encode_image_stream(work: ImageRequest, target: Target) -> WireRequest:
    """Encode one batch, and request a stream if the server can stream."""
    if "stream" not in target.dialect.images.takes:
        return encode_images_request(work, target, {})
    more: dict[str, JsonValue] = {"stream": True, "partial_images": work.partial_images}
    return encode_images_request(work, target, more)


class ImageDecoder:
    """Decodes one stream, or a whole answer from a server that does not stream."""

    def __init__(self, work: ImageRequest, target: Target) -> None:
        self._work = work
        self._target = target
        self._started = False
        self._made: list[ImagePiece] = []
        self._usage: Usage | None = None
        self._raw: list[JsonValue] = []
        self._is_whole = False
        self._bytes = 0

    def feed(self, frame: Frame) -> Iterator[StreamEvent]:
        """Yield the events of one frame; raise UpstreamError for an error or unreadable frame."""
        if frame.data == _END_MARK:
            return
        event = parse_body(frame.data, _Event, self._target)
        if event.error is not None:
            error = decode_json(encode_json(event.error))
            raise parse_openai_stream_error(error, self._target.provider)
        if not event.type:
            yield from self._whole(frame)
            return
        if not self._started:
            self._started = True
            yield Started()
        name = event.type.rpartition(".")[2]
        if name not in ("partial_image", "completed"):
            return
        is_preview = name == "partial_image"
        image = ImagePiece(
            b64_json=event.b64_json,
            quality=event.quality,
            background=event.background,
            preview=event.partial_image_index if is_preview else None,
        )
        if is_preview:
            yield Partial(piece=encode_json(check_image(image, self._target)))
            return
        self._bytes += len(frame.data)
        if len(self._made) == self._work.count or self._bytes > picture_bytes_max(self._work):
            raise malformed_error(self._target.provider, "more pictures than requested")
        usage = usage_of(event.usage)
        self._usage = usage if self._usage is None else self._usage.plus(usage)
        self._raw.append(event.usage if isinstance(event.usage, dict) else None)
        self._made.append(image)

    def end(self) -> Iterator[StreamEvent]:
        """Yield the images; raise UpstreamError if the stream closed without an image."""
        if self._is_whole:
            return
        if not self._made:
            raise early_close_error(self._target.provider)
        pieces = encode_images(self._made, self._work, self._target)
        counted = self._usage if self._target.dialect.images.tokens else None
        tokens = counted or Usage(uncached_input_tokens=0, output_tokens=0)
        yield UsageReported(
            usage=tokens.plus(Usage(images=len(pieces))),
            raw=self._raw[0] if len(self._raw) == 1 else self._raw,
        )
        yield Output(pieces=pieces)
        yield Ended(finish="stop")

    def _whole(self, frame: Frame) -> Iterator[StreamEvent]:
        if self._started:
            raise malformed_error(self._target.provider, "an event without a type")
        result = result_of(
            parse_body(frame.data, ImagesBody, self._target), self._work, self._target
        )
        self._started = self._is_whole = True
        yield Started(upstream_id=result.upstream_id, served_model=result.served_model)
        yield UsageReported(usage=result.usage, raw=result.raw_usage)
        yield Output(pieces=result.pieces)
        yield Ended(finish="stop")


STREAM_CODEC: Final = StreamedWorkCodec(
    encode=encode_image_stream, decoder=ImageDecoder, error=parse_openai_reply_error
)
