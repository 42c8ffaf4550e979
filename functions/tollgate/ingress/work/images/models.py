"""The requests for pictures and their replies, as clients see them.

https://developers.openai.com/api/reference/resources/images/methods/generate and `/edit`, as
openai-python 3.52.0 has them (2026-11-22).
https://developers.openai.com/api/reference/resources/images, as openai-python 3.52.0 has it
(2026-11-22).
"""

import re
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from tollgate.core.work.images import (
    Background,
    Delivery,
    Fidelity,
    Moderation,
    PictureFormat,
    Style,
)
from tollgate.ingress.shared.wire.reply_models import Accounts, Answer, ErrorObject
from tollgate.ingress.shared.wire.request_fields import EndUser, RoutingFields
from tollgate.ingress.shared.wire.request_model import Wire

PROMPT_LENGTH_MAX: Final = 32_000
IMAGES_MAX: Final = 10
PICTURES_MAX: Final = 16
"""OpenAI's limit on the pictures of one edit."""
PARTIAL_IMAGES_MAX: Final = 3

_SIZE: Final = re.compile(r"auto|[1-9][0-9]{1,4}x[1-9][0-9]{1,4}")


def _check_size(size: str) -> str:
    if not _SIZE.fullmatch(size):
        raise PydanticCustomError("size", "must be auto, or a width and a height as 1024x1536")
    return size


_Size = Annotated[str, AfterValidator(_check_size)]
# Older models and some servers that imitate OpenAI know `standard` and `hd`.
Quality = Literal["auto", "low", "medium", "high", "xhigh", "max", "standard", "hd"]


class ImageOptions(EndUser, RoutingFields):
    """The options of both requests. Null means the same as leaving a field out."""

    prompt: Annotated[str, Field(min_length=1, max_length=PROMPT_LENGTH_MAX)]
    n: Annotated[int, Field(ge=1, le=IMAGES_MAX)] | None = Field(
        default=None, description="How many pictures; each is billed."
    )
    size: _Size | None = Field(default=None, description="`auto`, or as 1024x1536.")
    quality: Quality | None = None
    background: Background | None = None
    output_format: PictureFormat | None = None
    output_compression: Annotated[int, Field(ge=0, le=100)] | None = Field(
        default=None, description="Percent, of jpeg and webp."
    )
    response_format: Delivery | None = Field(
        default=None, description="`url` only where the provider has one."
    )
    stream: bool | None = None
    partial_images: Annotated[int, Field(ge=0, le=PARTIAL_IMAGES_MAX)] | None = Field(
        default=None, description="Previews of a streamed picture, where the provider has them."
    )


class GenerationBody(ImageOptions):
    """The body of POST /v1/images/generations."""

    moderation: Moderation | None = None
    style: Style | None = None


class PictureReference(Wire):
    """A picture by its URL, its content or the id of its file."""

    image_url: str | None = Field(default=None, description="An http(s) URL, or a data URL.")
    file_id: Annotated[str, Field(min_length=1, max_length=256)] | None = Field(
        default=None, description="The id of an uploaded file."
    )


class EditOptions(ImageOptions):
    """The fields of POST /v1/images/edits other than pictures, which are files in a form."""

    input_fidelity: Fidelity | None = None


class EditForm(EditOptions):
    """The fields of POST /v1/images/edits as a form."""

    image: Annotated[list[bytes], Field(min_length=1, max_length=PICTURES_MAX)] = Field(
        description="The pictures, each a file; also as `image[]`."
    )
    mask: bytes | None = Field(
        default=None, description="A file, transparent where the first picture is to be changed."
    )


class EditBody(EditOptions):
    """The body of POST /v1/images/edits as JSON."""

    images: Annotated[list[PictureReference], Field(min_length=1, max_length=PICTURES_MAX)]
    mask: PictureReference | None = Field(
        default=None, description="Transparent where the first picture is to be changed."
    )


class PictureTokens(Answer):
    """Tokens, split into those of texts and those of pictures."""

    text_tokens: int
    image_tokens: int


class ImageUsage(Answer):
    """The tokens of all pictures; 0 where a provider charges by the picture."""

    input_tokens: int
    input_tokens_details: PictureTokens
    output_tokens: int
    output_tokens_details: PictureTokens
    total_tokens: int
    cost: float | None = Field(default=None, description="US dollars, exact to a billionth.")


class ImageObject(Answer):
    """One picture, as base64 or at a URL of the provider."""

    b64_json: str | None = None
    url: str | None = None
    revised_prompt: str | None = None


class ImagesReply(Accounts):
    """The pictures, with the properties that all of them share."""

    created: int
    data: list[ImageObject]
    background: Literal["transparent", "opaque"] | None = None
    output_format: str | None = None
    quality: str | None = None
    size: str | None = Field(default=None, description="`WIDTHxHEIGHT` of the first.")
    usage: ImageUsage


class ImageEvent(ImageObject):
    """A preview of a picture, or a picture; the last event has the price of all pictures."""

    type: Literal[
        "image_generation.partial_image",
        "image_generation.completed",
        "image_edit.partial_image",
        "image_edit.completed",
    ]
    created_at: int
    background: str
    output_format: str
    quality: str
    size: str
    partial_image_index: int | None = None
    usage: ImageUsage | None = None
    credits_used: float | None = None
    model_used: str | None = None
    provider_used: str | None = None


class ImageFailure(Accounts):
    """The event that ends a stream which failed."""

    type: Literal["error"]
    error: ErrorObject
    usage: ImageUsage
