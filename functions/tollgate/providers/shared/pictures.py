"""Batches, sizes and checks of images, for every format."""

import re
from collections.abc import Sequence
from fractions import Fraction
from typing import Final

from msgspec.json import encode as encode_json
from msgspec.structs import replace

from tollgate.core.content import Image, InlineMedia, MediaUrl, SentMedia
from tollgate.core.errors import ErrorCode, RequestError, UpstreamError
from tollgate.core.files.media_types import NotBase64, decode_base64
from tollgate.core.files.picture_files import picture_format, pixel_size
from tollgate.core.json_value import JsonValue
from tollgate.core.usage import Usage
from tollgate.core.work.base import WorkResult
from tollgate.core.work.images import ImagePiece, ImageRequest
from tollgate.providers.ports.base import Target
from tollgate.providers.ports.work_dialects import ImageOption
from tollgate.providers.shared.refusals import malformed_error

# A PNG of 3840x2160 pixels of noise takes up 33 MB in base64. All previews of one image together
# have about the same size.
_BYTES_PER_IMAGE_MAX: Final = 48 * 1024 * 1024
_BYTES_MAX: Final = 160 * 1024 * 1024
_OTHER_BYTES_MAX: Final = 1024 * 1024
_DATA_URL: Final = re.compile(r"data:[^,]{0,255}?;base64,", re.IGNORECASE)
_ADDRESS: Final = re.compile(r"https?://[!-~]{1,8192}")


def split_images(work: ImageRequest, target: Target) -> Sequence[ImageRequest]:
    """Return the work in batches, each within the endpoint's limit of images per request."""
    return work.split(target.dialect.images.images_max)


def picture_bytes_max(work: ImageRequest) -> int:
    """Return the maximum size of the answer to a batch, in bytes."""
    return min(work.count * _BYTES_PER_IMAGE_MAX, _BYTES_MAX) + _OTHER_BYTES_MAX


def parse_size(size: str) -> tuple[int, int]:
    """Return the width and the height of a `WIDTHxHEIGHT`."""
    width, height = size.split("x")
    return int(width), int(height)


def nearest_ratio(size: str, ratios: Sequence[str]) -> tuple[str, bool]:
    """Return the aspect ratio (`3:2`) that is nearest to a size, and whether it is exact."""
    exact = Fraction(*parse_size(size))

    def distance(ratio: str) -> Fraction:
        quotient = exact / Fraction(ratio.replace(":", "/"))
        return max(quotient, 1 / quotient)

    nearest = min(ratios, key=distance)
    return nearest, distance(nearest) == 1


def stated_options(work: ImageRequest) -> dict[ImageOption, JsonValue]:
    """Return the options that the caller set, under OpenAI's names."""
    options: dict[ImageOption, JsonValue] = {
        "background": work.background,
        "input_fidelity": work.fidelity,
        "moderation": work.moderation,
        "output_compression": work.output_compression,
        "output_format": work.output_format,
        "quality": work.quality,
        "style": work.style,
    }
    return {name: value for name, value in options.items() if value is not None}


def refuse_urls(work: ImageRequest, target: Target) -> None:
    """Raise RequestError if the caller wants URLs but the provider does not return URLs."""
    if work.delivery == "url" and not target.dialect.images.urls:
        raise RequestError(
            ErrorCode.INVALID_REQUEST,
            f"response_format must be b64_json: {target.provider} has no URLs for {target.model}.",
            param="response_format",
        )


def refuse_mask(work: ImageRequest, target: Target) -> None:
    """Raise RequestError if the caller sends a mask, which the provider does not accept."""
    if work.mask is not None:
        raise RequestError(
            ErrorCode.INVALID_REQUEST,
            f"mask is not accepted by {target.provider} for {target.model}.",
            param="mask",
        )


def inline_source(image: Image) -> InlineMedia:
    """Return the content of an image; raise ValueError for a URL, which the engine must fetch."""
    if not isinstance(image.source, InlineMedia):
        raise ValueError("the picture was not fetched")
    return image.source


def check_image(image: ImagePiece, target: Target) -> ImagePiece:
    """Return an image with its real size and format; raise UpstreamError if it is not an image.

    A data URL in any field counts as content, because callers expect a web address in `url`.
    """
    text = image.b64_json
    if text is None and image.url is not None and not _ADDRESS.fullmatch(image.url):
        text = image.url
    if text is None:
        if image.url is None:
            raise malformed_error(target.provider, "a picture without content")
        return image
    head = _DATA_URL.match(text)
    text = text[head.end() :] if head else text
    try:
        content = decode_base64(text)
    except NotBase64 as invalid:
        raise malformed_error(target.provider, "a picture that is not base64") from invalid
    format_, size = picture_format(content), pixel_size(content)
    if format_ is None or size is None:
        raise malformed_error(target.provider, "a picture of no known format")
    return replace(
        image, b64_json=text, url=None, output_format=format_, size=f"{size[0]}x{size[1]}"
    )


def check_shown(source: SentMedia, provider: str) -> SentMedia:
    """Return an answer's image with its real media type; raise UpstreamError if it is invalid."""
    if isinstance(source, MediaUrl):
        if not _ADDRESS.fullmatch(source.url):
            raise malformed_error(provider, "a picture that cannot be read")
        return source
    try:
        format_ = picture_format(decode_base64(source.base64))
    except NotBase64 as invalid:
        raise malformed_error(provider, "a picture that is not base64") from invalid
    if format_ is None:
        raise malformed_error(provider, "a picture of no known format")
    return replace(source, media_type=f"image/{format_}")


def encode_images(
    images: Sequence[ImagePiece], work: ImageRequest, target: Target
) -> tuple[bytes, ...]:
    """Return images as checked pieces; raise UpstreamError if their number is wrong, or if URLs
    were sent in place of bytes (or bytes in place of URLs).
    """
    if not images:
        raise no_image_error(target)
    if len(images) > work.count:
        raise malformed_error(target.provider, f"{len(images)} pictures in place of {work.count}")
    checked = [check_image(image, target) for image in images]
    for image in checked:
        if work.delivery == "url" and image.url is None:
            raise malformed_error(target.provider, "a picture in place of its URL")
        if work.delivery == "b64_json" and image.b64_json is None:
            raise malformed_error(target.provider, "a URL in place of a picture")
    return tuple(map(encode_json, checked))


def image_result(
    images: Sequence[ImagePiece],
    work: ImageRequest,
    target: Target,
    *,
    usage: Usage | None = None,
    raw_usage: JsonValue = None,
    upstream_id: str | None = None,
    served_model: str | None = None,
) -> WorkResult:
    """Return the result of one batch; without `usage` its tokens are 0."""
    pieces = encode_images(images, work, target)
    tokens = usage or Usage(uncached_input_tokens=0, output_tokens=0)
    return WorkResult(
        pieces=pieces,
        usage=replace(tokens, images=len(pieces)),
        raw_usage=raw_usage,
        upstream_id=upstream_id,
        served_model=served_model,
    )


def no_image_error(target: Target) -> UpstreamError:
    """Return the error for an answer that has no images because a filter withheld all of them."""
    return UpstreamError(
        ErrorCode.CONTENT_FILTER, f"{target.provider} made no picture: its filter withheld it."
    )
