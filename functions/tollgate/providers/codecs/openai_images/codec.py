"""Encodes image requests in OpenAI's format, and decodes answers that are not streamed.

https://developers.openai.com/api/reference/resources/images (2026-11-22). For other servers, the
dialects list the options that are missing or have other names: docs.together.ai (`width`),
docs.x.ai (no `size`), docs.hyperbolic.ai/inference/image-apis (`images[].image`), all seen
2026-11-22.
"""

from base64 import b64decode
from collections.abc import Iterator
from typing import Any, Final

from msgspec import Struct

from tollgate.core.content import Image
from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.json_value import JsonValue
from tollgate.core.usage import Usage
from tollgate.core.work.base import WorkResult
from tollgate.core.work.images import ImagePiece, ImageRequest
from tollgate.providers.ports.base import BatchCodec, FormPart, Frame, Target, WireRequest
from tollgate.providers.shared.counts import Counts
from tollgate.providers.shared.openai_errors import (
    parse_openai_reply_error,
    parse_openai_stream_error,
)
from tollgate.providers.shared.openai_writing import url_of
from tollgate.providers.shared.pictures import (
    image_result,
    inline_source,
    nearest_ratio,
    parse_size,
    picture_bytes_max,
    refuse_mask,
    refuse_urls,
    split_images,
    stated_options,
)
from tollgate.providers.shared.vectors import parse_body

# xAI's aspect ratios, except ratios with fractions.
_RATIOS: Final = ("1:1", "3:4", "4:3", "9:16", "16:9", "2:3", "3:2", "9:20", "20:9", "1:2", "2:1")


class _Item(Struct, frozen=True):
    b64_json: str | None = None
    url: str | None = None
    revised_prompt: str | None = None
    image: str | None = None
    """Hyperbolic's name for `b64_json`."""


class ImagesBody(Struct, frozen=True):
    """A whole answer; Hyperbolic sends the list as `images`."""

    data: list[_Item] | None = None
    images: list[_Item] | None = None
    usage: object = None
    quality: object = None
    background: object = None
    model: object = None
    id: object = None
    error: Any = None


def encode_whole(work: ImageRequest, target: Target) -> WireRequest:
    """Encode one batch for an answer that is not streamed."""
    return encode_images_request(work, target, {})


def encode_images_request(
    work: ImageRequest, target: Target, more: dict[str, JsonValue]
) -> WireRequest:
    """Encode one batch, with the further fields `more`; raise RequestError if the provider cannot
    accept it.
    """
    dialect = target.dialect.images
    refuse_urls(work, target)
    adapted: list[str] = []
    body: dict[str, JsonValue] = {
        dialect.model_field: target.upstream_model,
        "prompt": work.prompt,
        **_options(work, target, adapted),
        **_size(work, target, adapted),
        **more,
    }
    if dialect.images_max > 1:
        body["n"] = work.count
    if dialect.base64 is not None:
        body["response_format"] = "url" if work.delivery == "url" else dialect.base64
    if work.user is not None and "user" not in target.dialect.refuses:
        body["user"] = work.user
    form: tuple[FormPart, ...] = ()
    if work.images:
        if "mask" not in dialect.takes or dialect.edits != "form":
            refuse_mask(work, target)
        if dialect.edits == "reference_images":
            body["reference_images"] = [url_of(image.source) for image in work.images]
        elif dialect.edits == "form":
            form = tuple(_form(work, body))
        else:
            raise RequestError(
                ErrorCode.INVALID_REQUEST,
                f"images must be empty: {target.provider} edits no images with {target.model}.",
                param="images",
            )
    default = "/images/edits" if form else "/images/generations"
    return WireRequest(
        path=default if form else dialect.path or default,
        body={} if form else body,
        form=form,
        adapted=tuple(adapted),
        reply_bytes_max=None if more else picture_bytes_max(work),
        event_bytes_max=picture_bytes_max(work),
    )


def decode_whole(frame: Frame, work: ImageRequest, target: Target) -> WorkResult:
    return result_of(parse_body(frame.data, ImagesBody, target), work, target)


def result_of(body: ImagesBody, work: ImageRequest, target: Target) -> WorkResult:
    """Return the checked images from a whole answer; raise UpstreamError if it has an error."""
    if body.error is not None:
        raise parse_openai_stream_error(body.error, target.provider)
    images = [
        ImagePiece(
            b64_json=item.b64_json or item.image,
            url=item.url,
            revised_prompt=item.revised_prompt or None,
            quality=body.quality if isinstance(body.quality, str) else None,
            background=body.background if isinstance(body.background, str) else None,
        )
        for item in body.data or body.images or ()
        # xAI sends an item without content for an image that its filter withheld:
        # https://github.com/vercel/ai/issues/19168 (2026-11-22).
        if item.b64_json or item.url or item.image
    ]
    reports = target.dialect.images.tokens
    return image_result(
        images,
        work,
        target,
        usage=usage_of(body.usage) if reports else None,
        raw_usage=body.usage if isinstance(body.usage, dict) else None,
        upstream_id=body.id if isinstance(body.id, str) else None,
        served_model=body.model if isinstance(body.model, str) else None,
    )


def usage_of(raw: object) -> Usage:
    """Return the tokens of texts and images; without details, all output is image tokens."""
    report = Counts(raw if isinstance(raw, dict) else None)
    written = report.count("output_tokens")
    drawn = report.inside("output_tokens_details").count("image_tokens")
    return Usage(
        uncached_input_tokens=report.count("input_tokens"),
        image_input_tokens=report.inside("input_tokens_details").count("image_tokens"),
        output_tokens=written,
        image_output_tokens=written if drawn is None else drawn,
    )


def _options(work: ImageRequest, target: Target, adapted: list[str]) -> dict[str, JsonValue]:
    """Return the options that the server accepts, and add the names of the others to `adapted`."""
    dialect = target.dialect.images
    options = stated_options(work)
    adapted += (name for name in options if name not in dialect.takes)
    return {
        dialect.format_field if name == "output_format" else name: value
        for name, value in options.items()
        if name in dialect.takes
    }


def _size(work: ImageRequest, target: Target, adapted: list[str]) -> dict[str, JsonValue]:
    if work.size is None:
        return {}
    match target.dialect.images.size:
        case "size":
            return {"size": work.size}
        case "width_height":
            width, height = parse_size(work.size)
            return {"width": width, "height": height}
        case "aspect_ratio":
            ratio, is_same = nearest_ratio(work.size, _RATIOS)
            if not is_same:
                adapted.append("size")
            return {"aspect_ratio": ratio}
        case "none":
            adapted.append("size")
            return {}


def _form(work: ImageRequest, body: dict[str, JsonValue]) -> Iterator[FormPart]:
    """Yield the fields of a form, and then the files."""
    for name, value in body.items():
        yield FormPart(name=name, content=_in_form(value))
    for image in work.images:
        yield _file("image[]", image)
    if work.mask is not None:
        yield _file("mask", work.mask)


def _in_form(value: JsonValue) -> bytes:
    return b"true" if value is True else str(value).encode()


def _file(name: str, image: Image) -> FormPart:
    source = inline_source(image)
    return FormPart(
        name=name,
        content=b64decode(source.base64),
        file_name=f"picture.{source.media_type.rpartition('/')[2]}",
        media_type=source.media_type,
    )


CODEC: Final = BatchCodec(
    split=split_images, encode=encode_whole, decode=decode_whole, error=parse_openai_reply_error
)
