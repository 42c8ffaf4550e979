"""Images by Gemini (`generateContent`) and by Imagen (`predict`).

https://ai.google.dev/gemini-api/docs/image-generation, and "Imagen API" of Vertex AI (2026-11-22).
Gemini makes one image per request and charges for tokens. Imagen makes up to four images per
request and charges for images.
"""

from typing import Final

from msgspec import Struct

from tollgate.core.content import Text
from tollgate.core.json_value import JsonValue
from tollgate.core.work.base import WorkResult
from tollgate.core.work.images import ImagePiece, ImageRequest
from tollgate.providers.codecs.gemini.errors import error_of_reply
from tollgate.providers.codecs.gemini.media import part_of
from tollgate.providers.codecs.gemini.usage import usage_of
from tollgate.providers.codecs.gemini.wire import model_path, read_chunk
from tollgate.providers.ports.base import BatchCodec, Frame, Target, WireRequest
from tollgate.providers.shared.pictures import (
    image_result,
    nearest_ratio,
    no_image_error,
    parse_size,
    picture_bytes_max,
    refuse_mask,
    refuse_urls,
    split_images,
    stated_options,
)
from tollgate.providers.shared.vectors import parse_body

_RATIOS: Final = ("1:1", "2:3", "3:2", "3:4", "4:3", "4:5", "5:4", "9:16", "16:9", "21:9")
_IMAGEN_RATIOS: Final = ("1:1", "3:4", "4:3", "9:16", "16:9")
# Options that `_encode_imagen` handles itself.
_IMAGEN_OPTIONS: Final = frozenset({"output_compression", "output_format"})
# The maximum number of pixels on the longer side of each size, and the name of the size.
_NAMED_SIZES: Final = ((1_536, "1K"), (3_072, "2K"))
_LARGEST: Final = "4K"


class _Prediction(Struct, frozen=True, rename="camel"):
    bytes_base64_encoded: str | None = None
    prompt: str | None = None


class _Predictions(Struct, frozen=True):
    predictions: list[_Prediction] | None = None
    """The images; None if a filter withheld every image."""


def encode_pictures(work: ImageRequest, target: Target) -> WireRequest:
    """Encode one batch in the format of the model family."""
    refuse_urls(work, target)
    refuse_mask(work, target)
    if target.dialect.images.family == "imagen":
        return _encode_imagen(work, target)
    parts = [part_of(image) for image in work.images]
    config: dict[str, JsonValue] = {"responseModalities": ["IMAGE"]}
    shape, adapted = _shape(work, target, _RATIOS)
    if shape:
        config["imageConfig"] = shape
    return WireRequest(
        path=f"{model_path(target)}:generateContent",
        body={
            "contents": [{"role": "user", "parts": [*parts, part_of(Text(text=work.prompt))]}],
            "generationConfig": config,
        },
        adapted=(*adapted, *stated_options(work)),
        reply_bytes_max=picture_bytes_max(work),
    )


def decode_pictures(frame: Frame, work: ImageRequest, target: Target) -> WorkResult:
    if target.dialect.images.family == "imagen":
        return _decode_imagen(frame, work, target)
    answer = read_chunk(frame.data, target.provider)
    images = [
        ImagePiece(b64_json=part.blob.base64)
        for candidate in answer.candidates or ()
        for part in candidate.content.parts
        if part.blob is not None and not part.thought
    ]
    return image_result(
        # Some answers contain a draft before the final image; only the last image counts.
        images[-work.count :],
        work,
        target,
        usage=usage_of(answer.usage),
        raw_usage=answer.usage,
        upstream_id=answer.id,
        served_model=answer.model,
    )


def _shape(
    work: ImageRequest, target: Target, ratios: tuple[str, ...]
) -> tuple[dict[str, JsonValue], list[str]]:
    """Return the fields for the aspect ratio and the size, and the names of changed options."""
    if work.size is None:
        return {}, []
    ratio, is_same = nearest_ratio(work.size, ratios)
    shape: dict[str, JsonValue] = {"aspectRatio": ratio}
    if target.dialect.images.sizes_by_name:
        longer = max(parse_size(work.size))
        shape["imageSize"] = next((name for most, name in _NAMED_SIZES if longer <= most), _LARGEST)
    return shape, [] if is_same else ["size"]


def _encode_imagen(work: ImageRequest, target: Target) -> WireRequest:
    parameters: dict[str, JsonValue] = {"sampleCount": work.count}
    shape, adapted = _shape(work, target, _IMAGEN_RATIOS)
    if "aspectRatio" in shape:
        parameters["aspectRatio"] = shape["aspectRatio"]
    if "imageSize" in shape:
        # Imagen does not make images in 4K.
        parameters["sampleImageSize"] = min(str(shape["imageSize"]), "2K")
    if work.output_format in ("png", "jpeg"):
        options: dict[str, JsonValue] = {"mimeType": f"image/{work.output_format}"}
        if work.output_format == "jpeg" and work.output_compression is not None:
            options["compressionQuality"] = work.output_compression
        parameters["outputOptions"] = options
    elif work.output_format is not None:
        adapted.append("output_format")
    return WireRequest(
        path=f"{model_path(target)}:predict",
        body={"instances": [{"prompt": work.prompt}], "parameters": parameters},
        adapted=(*adapted, *sorted(stated_options(work).keys() - _IMAGEN_OPTIONS)),
        reply_bytes_max=picture_bytes_max(work),
    )


def _decode_imagen(frame: Frame, work: ImageRequest, target: Target) -> WorkResult:
    predictions = parse_body(frame.data, _Predictions, target).predictions
    if not predictions:
        raise no_image_error(target)
    images = [
        ImagePiece(b64_json=prediction.bytes_base64_encoded, revised_prompt=prediction.prompt)
        for prediction in predictions
        if prediction.bytes_base64_encoded
    ]
    return image_result(images, work, target)


IMAGE_CODEC: Final = BatchCodec(
    split=split_images, encode=encode_pictures, decode=decode_pictures, error=error_of_reply
)
