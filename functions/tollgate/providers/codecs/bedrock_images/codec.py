"""Images by Nova Canvas and Stability AI on InvokeModel.

Nova user guide, "Image generation request and response format"; Bedrock user guide, "Stable Image
Core request and response", "Stable Diffusion 3.5 Large" (2026-11-22). AWS charges by image.
"""

from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import quote

from msgspec import Struct

from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.json_value import JsonValue
from tollgate.core.work.base import WorkResult
from tollgate.core.work.images import ImagePiece, ImageRequest
from tollgate.providers.ports.base import BatchCodec, Frame, Target, WireRequest
from tollgate.providers.ports.work_dialects import ImageFamily
from tollgate.providers.shared.bedrock import error_of_bedrock_reply
from tollgate.providers.shared.pictures import (
    image_result,
    inline_source,
    nearest_ratio,
    no_image_error,
    parse_size,
    picture_bytes_max,
    refuse_mask,
    refuse_urls,
    split_images,
    stated_options,
)
from tollgate.providers.shared.refusals import malformed_error
from tollgate.providers.shared.vectors import parse_body

_RATIOS: Final = ("16:9", "1:1", "21:9", "2:3", "3:2", "4:5", "5:4", "9:16", "9:21")
# Nova's quality for each of OpenAI's qualities.
_NOVA_QUALITIES: Final[Mapping[str, str]] = {
    "low": "standard",
    "medium": "standard",
    "standard": "standard",
    "high": "premium",
    "hd": "premium",
}
_NOVA_PICTURES_MAX: Final = 5
# Options that `_nova` and `_stability` handle themselves.
_FAMILY_OPTIONS: Final = frozenset({"output_format", "quality"})

_Fields = tuple[dict[str, JsonValue], list[str]]


class _Body(Struct, frozen=True):
    images: list[str] | None = None
    error: str | None = None
    """Nova's error; `images` is set too if the filter withheld only some images."""
    finish_reasons: list[str | None] | None = None
    """Stability's reasons, one for each image."""


def encode(work: ImageRequest, target: Target) -> WireRequest:
    """Encode one batch in the format of the model family."""
    refuse_urls(work, target)
    refuse_mask(work, target)
    body, adapted = _family(target)(work, target)
    never_taken = stated_options(work).keys() - _FAMILY_OPTIONS
    return WireRequest(
        path=f"/model/{quote(target.upstream_model, safe='')}/invoke",
        body=body,
        adapted=(*adapted, *sorted(never_taken)),
        reply_bytes_max=picture_bytes_max(work),
    )


def decode(frame: Frame, work: ImageRequest, target: Target) -> WorkResult:
    """Decode the answer to one batch, and leave out images that a filter withheld."""
    body = parse_body(frame.data, _Body, target)
    reasons = body.finish_reasons or []
    if "Inference error" in reasons:
        raise malformed_error(target.provider, "an inference error in place of a picture")
    if body.error and not body.images:
        raise no_image_error(target)
    images = [
        ImagePiece(b64_json=image)
        for place, image in enumerate(body.images or ())
        if image and not (place < len(reasons) and reasons[place])
    ]
    return image_result(images, work, target, upstream_id=frame.headers.get("x-amzn-requestid"))


def _nova(work: ImageRequest, target: Target) -> _Fields:
    config: dict[str, JsonValue] = {"numberOfImages": work.count}
    adapted: list[str] = []
    if work.size is not None:
        config["width"], config["height"] = parse_size(work.size)
    if work.quality is not None:
        quality = _NOVA_QUALITIES.get(work.quality)
        if quality is None:
            adapted.append("quality")
        else:
            config["quality"] = quality
    if work.output_format not in (None, "png"):
        adapted.append("output_format")
    body: dict[str, JsonValue] = {
        "taskType": "TEXT_IMAGE",
        "textToImageParams": {"text": work.prompt},
    }
    if work.images:
        if len(work.images) > _NOVA_PICTURES_MAX:
            raise RequestError(
                ErrorCode.INVALID_REQUEST,
                f"images must have at most {_NOVA_PICTURES_MAX} entries for {target.model}.",
                param="images",
            )
        pictures: list[JsonValue] = [inline_source(image).base64 for image in work.images]
        variation: JsonValue = {"text": work.prompt, "images": pictures}
        body = {"taskType": "IMAGE_VARIATION", "imageVariationParams": variation}
    return {**body, "imageGenerationConfig": config}, adapted


def _stability(work: ImageRequest, target: Target) -> _Fields:
    body: dict[str, JsonValue] = {"prompt": work.prompt}
    adapted: list[str] = []
    if work.size is not None:
        body["aspect_ratio"], is_same = nearest_ratio(work.size, _RATIOS)
        if not is_same:
            adapted.append("size")
    if work.output_format in ("png", "jpeg"):
        body["output_format"] = work.output_format
    elif work.output_format is not None:
        adapted.append("output_format")
    if work.quality is not None:
        adapted.append("quality")
    if work.images:
        raise RequestError(
            ErrorCode.INVALID_REQUEST,
            f"images must be empty: {target.provider} edits no images with {target.model}.",
            param="images",
        )
    return body, adapted


_FAMILIES: Final[Mapping[ImageFamily, Callable[[ImageRequest, Target], _Fields]]] = {
    "nova": _nova,
    "stability": _stability,
}


def _family(target: Target) -> Callable[[ImageRequest, Target], _Fields]:
    family = _FAMILIES.get(target.dialect.images.family)
    if family is None:
        raise RequestError(
            ErrorCode.INVALID_REQUEST,
            f"{target.model} makes no images on this provider.",
            param="model",
        )
    return family


CODEC: Final = BatchCodec(
    split=split_images, encode=encode, decode=decode, error=error_of_bedrock_reply
)
