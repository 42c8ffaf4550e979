"""The request to judge texts as clients send it.

https://platform.openai.com/docs/api-reference/moderations/create (2026-08-21)
"""

from typing import Annotated, Final, Literal

from pydantic import Field, Tag

from tollgate.ingress.shared.wire.request_fields import EndUser, RoutingFields
from tollgate.ingress.shared.wire.request_model import Wire, by_shape

TEXTS_MAX: Final = 128


class TextObject(Wire):
    """A text as a part; parts with images are not served."""

    type: Literal["text"]
    text: Annotated[str, Field(min_length=1)]


_Text = Annotated[str, Field(min_length=1)]
_Entry = Annotated[
    Annotated[_Text, Tag("<string>")] | Annotated[TextObject, Tag("<object>")],
    by_shape("a string or an object with text"),
]
Moderated = Annotated[
    Annotated[_Text, Tag("<string>")]
    | Annotated[
        list[_Entry], Field(min_length=1, max_length=TEXTS_MAX, fail_fast=True), Tag("<array>")
    ],
    by_shape("a string or an array of strings"),
]


class ModerationBody(EndUser, RoutingFields):
    """The body of POST /v1/moderations. Null means the same as leaving a field out."""

    input: Moderated = Field(description="A text, or a list of texts.")
