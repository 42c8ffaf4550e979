"""The client formats of OpenAI's APIs for generating and editing images."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, ClassVar, Literal, TypeVar

from msgspec.json import decode as decode_json
from msgspec.structs import replace
from pydantic_core import to_json
from typing_extensions import override

from tollgate.core.content import Image, InlineMedia
from tollgate.core.errors import GatewayError
from tollgate.core.events import Output, Partial, StreamEvent
from tollgate.core.files.media_types import is_form
from tollgate.core.json_value import JsonValue
from tollgate.core.records.generation import GenerationRecord
from tollgate.core.response import GenerationResponse
from tollgate.core.usage import Usage
from tollgate.core.work.images import MASK_TYPE, ImagePiece, ImageRequest
from tollgate.ingress.base import NO_HEADERS, ParsedWork, ServedBy
from tollgate.ingress.errors import FieldNames
from tollgate.ingress.form_body import Form, parse_form
from tollgate.ingress.shared.accounts import ReplyAccounts
from tollgate.ingress.shared.fields import parse_preferences, printable_names, unknown_fields
from tollgate.ingress.shared.media import field_refusal
from tollgate.ingress.shared.openai_format import OpenAIFormat
from tollgate.ingress.shared.pictures import parse_referenced_picture, parse_uploaded_picture
from tollgate.ingress.validation import validate_body, validate_texts
from tollgate.ingress.work.images.models import (
    PICTURES_MAX,
    EditBody,
    EditOptions,
    GenerationBody,
    ImageOptions,
)

_Body = TypeVar("_Body", bound=ImageOptions)


def _parse_form_edit(form: Form) -> ParsedWork:
    if any(name.partition("[")[0] == "image" for name in form.texts):
        raise field_refusal("image", "must be a file")
    lists, objects = frozenset({"models"}), frozenset({"metadata", "provider"})
    fields = _checked(validate_texts(EditOptions, form.values(lists=lists, objects=objects)))
    files = form.files.get("image", ())
    if not files:
        raise field_refusal("image", "is required")
    if len(files) > PICTURES_MAX:
        raise field_refusal("image", f"must have at most {PICTURES_MAX} files")
    mask = form.file("mask")
    request = ImageRequest(
        **_options(fields),
        images=tuple(parse_uploaded_picture(content, "image") for content in files),
        mask=None if mask is None else _check_mask(parse_uploaded_picture(mask, "mask"), "mask"),
        fidelity=fields.input_fidelity,
    )
    parsed = _parsed(fields, request)
    unread = printable_names(form.unread_files("image", "mask"))
    return replace(parsed, ignored=(*parsed.ignored, *unread), described=form.described())


def _checked(fields: _Body) -> _Body:
    if fields.partial_images and not fields.stream:
        raise field_refusal("partial_images", "must be 0 unless stream is true")
    if fields.background == "transparent" and fields.output_format == "jpeg":
        raise field_refusal("background", "must not be transparent in a jpeg")
    return fields


def _options(fields: ImageOptions) -> dict[str, Any]:
    """Return the options as fields of ImageRequest; `auto` becomes None, the model's default."""
    return {
        "model": fields.model,
        "prompt": fields.prompt,
        "count": fields.n or 1,
        "size": None if fields.size == "auto" else fields.size,
        "quality": None if fields.quality == "auto" else fields.quality,
        "background": fields.background,
        "output_format": fields.output_format,
        "output_compression": fields.output_compression,
        "delivery": fields.response_format,
        "partial_images": fields.partial_images or 0,
        "stream": fields.stream or False,
        "user": fields.user,
        "metadata": fields.metadata or {},
        "preferences": parse_preferences(fields),
    }


def _parsed(fields: ImageOptions, request: ImageRequest) -> ParsedWork:
    return ParsedWork(
        request=request, stream=request.stream, ignored=printable_names(unknown_fields(fields))
    )


def _check_mask(mask: Image, path: str) -> Image:
    if isinstance(mask.source, InlineMedia) and mask.source.media_type != MASK_TYPE:
        raise field_refusal(path, "must be a PNG picture")
    return mask


_BACKGROUNDS = frozenset({"transparent", "opaque"})
_QUALITIES = frozenset({"low", "medium", "high", "xhigh", "max"})


class ImageRenderer:
    """Renders one reply, streamed or not."""

    def __init__(
        self,
        call: ParsedWork,
        served: ServedBy,
        *,
        events: Literal["image_generation", "image_edit"],
        credits_per_usd: Decimal,
    ) -> None:
        if not isinstance(call.request, ImageRequest):
            raise TypeError("not an image request")
        self._request = call.request
        self._served = served
        self._events = events
        self._accounts = ReplyAccounts(
            served, credits_per_usd, call.tells_routing, lambda record: _usage(record.usage)
        )
        self._pictures: list[ImagePiece] = []

    def feed(self, event: StreamEvent, choice: int = 0) -> bytes:
        """Render a preview; complete images are rendered by `close`, because the cost is known only
        then.
        """
        match event:
            case Partial(piece=piece):
                picture = decode_json(piece, type=ImagePiece)
                return self._frame(
                    "partial_image", picture, {"partial_image_index": picture.preview or 0}
                )
            case Output(pieces=pieces):
                self._pictures += (decode_json(piece, type=ImagePiece) for piece in pieces)
            case _:
                pass
        return b""

    def close(self, record: GenerationRecord) -> bytes:
        """Render an event for each image; the last event has the usage and cost of all images."""
        no_usage: dict[str, JsonValue] = {"usage": _usage(Usage())}
        *before, last = self._pictures
        frames = [self._frame("completed", picture, no_usage) for picture in before]
        return b"".join(
            [*frames, self._frame("completed", last, {}, self._accounts.render(record))]
        )

    def fail(self, error: GatewayError, record: GenerationRecord) -> bytes:
        """Render the last event of a stream that failed after its first bytes were sent."""
        failure = self._accounts.render_failure(error, record)
        return b'event: error\ndata: {"type":"error",%b}\n\n' % failure

    def whole(self, responses: Sequence[GenerationResponse], record: GenerationRecord) -> bytes:
        """Render the body of a non-streamed reply."""
        pictures = [decode_json(piece, type=ImagePiece) for piece in responses[0].output]
        body: dict[str, JsonValue] = {
            "created": self._served.created_s,
            "data": [_shown(picture) for picture in pictures],
            **self._stated(pictures[0]),
        }
        return b"%b,%b}" % (to_json(body)[:-1], self._accounts.render(record))

    def _stated(self, picture: ImagePiece) -> dict[str, JsonValue]:
        """Return those properties, as far as they are known, that OpenAI states once for all
        images.
        """
        background = picture.background or self._request.background
        quality = picture.quality or self._request.quality
        properties = {
            "background": background if background in _BACKGROUNDS else None,
            "output_format": picture.output_format,
            "quality": quality if quality in _QUALITIES else None,
            "size": picture.size,
        }
        return {name: value for name, value in properties.items() if value is not None}

    def _frame(
        self, name: str, picture: ImagePiece, more: dict[str, JsonValue], accounts: bytes = b""
    ) -> bytes:
        kind = f"{self._events}.{name}"
        event: dict[str, JsonValue] = {
            "type": kind,
            **_shown(picture),
            "created_at": self._served.created_s,
            "background": "auto",
            "output_format": self._request.output_format or "png",
            "quality": "auto",
            "size": self._request.size or "auto",
            **self._stated(picture),
            **more,
        }
        data = to_json(event)
        if accounts:
            data = b"%b,%b}" % (data[:-1], accounts)
        return b"event: %b\ndata: %b\n\n" % (kind.encode(), data)


def _shown(picture: ImagePiece) -> dict[str, JsonValue]:
    fields = {
        "b64_json": picture.b64_json,
        "url": picture.url,
        "revised_prompt": picture.revised_prompt,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _usage(usage: Usage) -> dict[str, JsonValue]:
    input_tokens, output_tokens = usage.input_tokens, usage.output_tokens or 0
    input_image_tokens, output_image_tokens = (
        usage.image_input_tokens or 0,
        usage.image_output_tokens or 0,
    )
    return {
        "input_tokens": input_tokens,
        "input_tokens_details": {
            "text_tokens": input_tokens - input_image_tokens,
            "image_tokens": input_image_tokens,
        },
        "output_tokens": output_tokens,
        "output_tokens_details": {
            "text_tokens": output_tokens - output_image_tokens,
            "image_tokens": output_image_tokens,
        },
        "total_tokens": input_tokens + output_tokens,
    }


class ImageGenerations(OpenAIFormat):
    """The format of POST /v1/images/generations."""

    field_names: ClassVar[FieldNames] = {"messages": "prompt"}
    _events: ClassVar[Literal["image_generation", "image_edit"]] = "image_generation"

    def parse(self, body: bytes, headers: Mapping[str, str] = NO_HEADERS) -> ParsedWork:
        fields = _checked(validate_body(GenerationBody, body))
        return _parsed(
            fields,
            ImageRequest(**_options(fields), moderation=fields.moderation, style=fields.style),
        )

    def renderer(
        self, call: ParsedWork, served: ServedBy, *, credits_per_usd: Decimal
    ) -> ImageRenderer:
        return ImageRenderer(call, served, events=self._events, credits_per_usd=credits_per_usd)


class ImageEdits(ImageGenerations):
    """The format of POST /v1/images/edits."""

    field_names: ClassVar[FieldNames] = {"messages": "images"}
    _events = "image_edit"

    @override
    def parse(self, body: bytes, headers: Mapping[str, str] = NO_HEADERS) -> ParsedWork:
        """Parse a JSON body or a form; raise RequestError with the field at fault."""
        content_type = headers.get("content-type", "")
        if is_form(content_type):
            return _parse_form_edit(parse_form(body, content_type))
        fields = _checked(validate_body(EditBody, body))
        mask = None
        if fields.mask is not None:
            mask = _check_mask(parse_referenced_picture(fields.mask, "mask"), "mask.image_url")
        request = ImageRequest(
            **_options(fields),
            images=tuple(
                parse_referenced_picture(picture, f"images[{index}]")
                for index, picture in enumerate(fields.images)
            ),
            mask=mask,
            fidelity=fields.input_fidelity,
        )
        return _parsed(fields, request)
