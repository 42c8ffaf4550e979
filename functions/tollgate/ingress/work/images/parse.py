"""Parses requests for pictures."""

from base64 import b64encode
from typing import Any, TypeVar

from msgspec.structs import replace

from tollgate.core.content import Image, InlineMedia, MediaUrl
from tollgate.core.files.media_types import decode_base64, detect_media_type, is_form
from tollgate.core.files.picture_files import find_picture_fault
from tollgate.core.work.images import MASK_TYPE, ImageRequest
from tollgate.ingress.base import ParsedWork
from tollgate.ingress.form_body import Form, parse_form
from tollgate.ingress.shared.ignored_fields import printable_names
from tollgate.ingress.shared.media import (
    DATA_URL,
    MEDIA_BYTES_MAX,
    field_refusal,
    parse_address,
    parse_file_id,
    parse_inline,
)
from tollgate.ingress.shared.preferences import parse_preferences, unknown_fields
from tollgate.ingress.validation import validate_body, validate_texts
from tollgate.ingress.work.images.wire.image_request import (
    PICTURES_MAX,
    EditBody,
    EditOptions,
    GenerationBody,
    ImageOptions,
    PictureReference,
)

_Body = TypeVar("_Body", bound=ImageOptions)


def parse_generation(body: bytes) -> ParsedWork:
    """Parse a request for pictures made of a text; raise RequestError with the field at fault."""
    asked = _checked(validate_body(GenerationBody, body))
    return _parsed(
        asked, ImageRequest(**_options(asked), moderation=asked.moderation, style=asked.style)
    )


def parse_edit(body: bytes, content_type: str) -> ParsedWork:
    """Parse a request for pictures made of others; raise RequestError with the field at fault."""
    if is_form(content_type):
        return _parse_form_edit(parse_form(body, content_type))
    asked = _checked(validate_body(EditBody, body))
    request = ImageRequest(
        **_options(asked),
        images=tuple(
            _referenced(each, f"images[{index}]") for index, each in enumerate(asked.images)
        ),
        mask=None if asked.mask is None else _mask(asked.mask),
        fidelity=asked.input_fidelity,
    )
    return _parsed(asked, request)


def _parse_form_edit(form: Form) -> ParsedWork:
    if any(name.partition("[")[0] == "image" for name in form.texts):
        raise field_refusal("image", "must be a file")
    lists, objects = frozenset({"models"}), frozenset({"metadata", "provider"})
    asked = _checked(validate_texts(EditOptions, form.values(lists=lists, objects=objects)))
    files = form.files.get("image", ())
    if not files:
        raise field_refusal("image", "is required")
    if len(files) > PICTURES_MAX:
        raise field_refusal("image", f"must have at most {PICTURES_MAX} files")
    mask = form.file("mask")
    request = ImageRequest(
        **_options(asked),
        images=tuple(_uploaded(content, "image") for content in files),
        mask=None if mask is None else _check_mask(_uploaded(mask, "mask"), "mask"),
        fidelity=asked.input_fidelity,
    )
    parsed = _parsed(asked, request)
    unread = printable_names(form.unread_files("image", "mask"))
    return replace(parsed, ignored=(*parsed.ignored, *unread), described=form.described())


def _uploaded(content: bytes, path: str) -> Image:
    if len(content) > MEDIA_BYTES_MAX:
        raise field_refusal(path, f"must be at most {MEDIA_BYTES_MAX} bytes")
    fault = find_picture_fault(content)
    if fault is not None:
        raise field_refusal(path, fault)
    return Image(
        source=InlineMedia(
            media_type=detect_media_type(content) or "", base64=b64encode(content).decode()
        )
    )


def _checked(asked: _Body) -> _Body:
    if asked.partial_images and not asked.stream:
        raise field_refusal("partial_images", "must be 0 unless stream is true")
    if asked.background == "transparent" and asked.output_format == "jpeg":
        raise field_refusal("background", "must not be transparent in a jpeg")
    return asked


def _options(asked: ImageOptions) -> dict[str, Any]:
    """Return the options of a request, without those that leave the choice to the model."""
    return {
        "model": asked.model,
        "prompt": asked.prompt,
        "count": asked.n or 1,
        "size": None if asked.size == "auto" else asked.size,
        "quality": None if asked.quality == "auto" else asked.quality,
        "background": asked.background,
        "output_format": asked.output_format,
        "output_compression": asked.output_compression,
        "delivery": asked.response_format,
        "partial_images": asked.partial_images or 0,
        "stream": asked.stream or False,
        "user": asked.user,
        "metadata": asked.metadata or {},
        "preferences": parse_preferences(asked),
    }


def _parsed(asked: ImageOptions, request: ImageRequest) -> ParsedWork:
    return ParsedWork(
        request=request, stream=request.stream, ignored=printable_names(unknown_fields(asked))
    )


def _referenced(picture: PictureReference, path: str) -> Image:
    if picture.file_id is not None:
        if picture.image_url is not None:
            raise field_refusal(path, "must have exactly one of image_url and file_id")
        return Image(source=parse_file_id(picture.file_id, path))
    if picture.image_url is None:
        raise field_refusal(f"{path}.image_url", "is required")
    return Image(source=_source(picture.image_url, f"{path}.image_url"))


def _mask(picture: PictureReference) -> Image:
    return _check_mask(_referenced(picture, "mask"), "mask.image_url")


def _check_mask(mask: Image, path: str) -> Image:
    if isinstance(mask.source, InlineMedia) and mask.source.media_type != MASK_TYPE:
        raise field_refusal(path, "must be a PNG picture")
    return mask


def _source(url: str, path: str) -> InlineMedia | MediaUrl:
    if not DATA_URL.match(url):
        return parse_address(url, path)
    source = parse_inline(url, None, path)
    check_picture(source, path)
    return source


def check_picture(source: InlineMedia, path: str) -> None:
    """Raise RequestError for content that is no picture, or one of too many pixels."""
    fault = find_picture_fault(decode_base64(source.base64))
    if fault is not None:
        raise field_refusal(path, fault)
