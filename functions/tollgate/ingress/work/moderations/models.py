"""Models for moderation requests and replies.

https://platform.openai.com/docs/api-reference/moderations/create (2026-11-22)
https://platform.openai.com/docs/api-reference/moderations/object (2026-08-21)
"""

from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, Tag

from tollgate.ingress.shared.wire.reply_models import Answer, TollgateMetadata
from tollgate.ingress.shared.wire.request_fields import EndUser, RoutingFields
from tollgate.ingress.shared.wire.request_model import Wire, by_field, by_shape

INPUTS_MAX: Final = 128

_Text = Annotated[str, Field(min_length=1)]


class TextPart(Wire):
    """Text."""

    type: Literal["text"]
    text: _Text


class PictureAddress(Wire):
    """The URL of an image, which may be a data URL."""

    url: Annotated[str, Field(min_length=1)] = Field(description="An http(s) URL, or a data URL.")


class PicturePart(Wire):
    """An image."""

    type: Literal["image_url"]
    image_url: PictureAddress


_Part = Annotated[
    Annotated[TextPart, Tag("<text>")] | Annotated[PicturePart, Tag("<image_url>")],
    by_field("type", "text", "image_url"),
]
_Entry = Annotated[
    Annotated[_Text, Tag("<string>")] | Annotated[_Part, Tag("<object>")],
    by_shape("a string or a part with text or an image"),
]
Moderated = Annotated[
    Annotated[_Text, Tag("<string>")]
    | Annotated[
        list[_Entry], Field(min_length=1, max_length=INPUTS_MAX, fail_fast=True), Tag("<array>")
    ],
    by_shape("a string, an array of strings or an array of parts"),
]


class ModerationBody(EndUser, RoutingFields):
    """The body of POST /v1/moderations; null means the same as omitting a field."""

    input: Moderated = Field(
        description="A text, a list of texts, or a list of parts that get one judgement."
    )


class Judgement(BaseModel):
    """The judgement about an input, in the model's categories."""

    model_config = ConfigDict(extra="allow")

    flagged: bool
    categories: dict[str, bool]
    category_scores: dict[str, float]


class ModerationReply(Answer):
    """The judgements, in the order of the inputs."""

    id: str
    model: str
    results: list[Judgement]
    tollgate_metadata: TollgateMetadata | None = None
