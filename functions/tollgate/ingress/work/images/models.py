"""Models for image requests and replies.

https://developers.openai.com/api/reference/resources/images, as in openai-python 3.52.0
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
from tollgate.ingress.shared.wire.picture_reference import PictureReference
from tollgate.ingress.shared.wire.reply_models import Accounts, Answer, ErrorObject
from tollgate.ingress.shared.wire.request_fields import EndUser, RoutingFields

PROMPT_LENGTH_MAX: Final = 32_000
IMAGES_MAX: Final = 10
PICTURES_MAX: Final = 16
"""OpenAI's limit on the number of images in an edit."""
PARTIAL_IMAGES_MAX: Final = 3

_SIZE: Final = re.compile(r"auto|[1-9][0-9]{1,4}x[1-9][0-9]{1,4}")


def _check_size(size: str) -> str:
    if not _SIZE.fullmatch(size):
        raise PydanticCustomError("size", "must be auto, or width and height such as 1024x1536")
    return size


_Size = Annotated[str, AfterValidator(_check_size)]
# `standard` and `hd` are for older models and for some servers that imitate OpenAI.
Quality = Literal["auto", "low", "medium", "high", "xhigh", "max", "standard", "hd"]


class ImageOptions(EndUser, RoutingFields):
    """The options in both requests; null means the same as omitting a field."""

    prompt: Annotated[str, Field(min_length=1, max_length=PROMPT_LENGTH_MAX)]
    n: Annotated[int, Field(ge=1, le=IMAGES_MAX)] | None = Field(
        default=None, description="The number of images; each is billed."
    )
    size: _Size | None = Field(
        default=None, description="`auto`, or width and height such as 1024x1536."
    )
    quality: Quality | None = None
    background: Background | None = None
    output_format: PictureFormat | None = None
    output_compression: Annotated[int, Field(ge=0, le=100)] | None = Field(
        default=None, description="In percent, for jpeg and webp."
    )
    response_format: Delivery | None = Field(
        default=None, description="`url` only if the provider returns URLs."
    )
    stream: bool | None = None
    partial_images: Annotated[int, Field(ge=0, le=PARTIAL_IMAGES_MAX)] | None = Field(
        default=None,
        description="The number of previews in a stream, if the provider sends previews.",
    )


class GenerationBody(ImageOptions):
    """The body of POST /v1/images/generations."""

    moderation: Moderation | None = None
    style: Style | None = None


class EditOptions(ImageOptions):
    """The fields of POST /v1/images/edits without the images."""

    input_fidelity: Fidelity | None = None


class EditForm(EditOptions):
    """The fields of POST /v1/images/edits as a form."""

    image: Annotated[list[bytes], Field(min_length=1, max_length=PICTURES_MAX)] = Field(
        description="The images as files; also accepted as `image[]`."
    )
    mask: bytes | None = Field(
        default=None,
        description="A file that is transparent where the first image should be changed.",
    )


class EditBody(EditOptions):
    """The body of POST /v1/images/edits as JSON."""

    images: Annotated[list[PictureReference], Field(min_length=1, max_length=PICTURES_MAX)]
    mask: PictureReference | None = Field(
        default=None,
        description="An image that is transparent where the first image should be changed.",
    )


class PictureTokens(Answer):
    """Text tokens and image tokens."""

    text_tokens: int
    image_tokens: int


class ImageUsage(Answer):
    """The tokens for all images; 0 if the provider charges per image."""

    input_tokens: int
    input_tokens_details: PictureTokens
    output_tokens: int
    output_tokens_details: PictureTokens
    total_tokens: int
    cost: float | None = Field(default=None, description="US dollars, exact to a billionth.")


class ImageObject(Answer):
    """An image, either base64-encoded or as a URL hosted by the provider."""

    b64_json: str | None = None
    url: str | None = None
    revised_prompt: str | None = None


class ImagesReply(Accounts):
    """The images, and the properties that they share."""

    created: int
    data: list[ImageObject]
    background: Literal["transparent", "opaque"] | None = None
    output_format: str | None = None
    quality: str | None = None
    size: str | None = Field(
        default=None, description="Width and height of the first image, as `WIDTHxHEIGHT`."
    )
    usage: ImageUsage


class ImageEvent(ImageObject):
    """A preview or a complete image; the last event has the cost of all images."""

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
    """The last event of a failed stream."""

    type: Literal["error"]
    error: ErrorObject
    usage: ImageUsage
