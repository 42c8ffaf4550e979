"""Models for embeddings requests and replies.

https://platform.openai.com/docs/api-reference/embeddings/create (2026-08-21); `input_type` is the
field of Cohere, Voyage and OpenRouter (2026-11-22).
https://platform.openai.com/docs/api-reference/embeddings/object (2026-08-21)
"""

from typing import Annotated, Final, Literal

from pydantic import Discriminator, Field, Tag

from tollgate.ingress.shared.wire.reply_models import Answer, TollgateMetadata
from tollgate.ingress.shared.wire.request_fields import EndUser, RoutingFields
from tollgate.ingress.shared.wire.request_model import shape

INPUTS_MAX: Final = 2_048
TOKEN_IDS_MAX: Final = 131_072
"""The maximum number of token ids in an input, above the context length of any model."""
TOKEN_ID_MAX: Final = 1_048_575
"""The largest accepted token id, above the ids in any vocabulary."""
DIMENSIONS_MAX: Final = 65_536


def _shape(value: object) -> str | None:
    """Return the union tag of an input; for an array, the first entry determines the tag."""
    first = value[0] if isinstance(value, list) and value else None
    if type(first) is int:
        return "<ids>"
    return "<lists of ids>" if isinstance(first, list) else shape(value)


_Text = Annotated[str, Field(min_length=1)]
_TokenId = Annotated[int, Field(ge=0, le=TOKEN_ID_MAX)]
_TokenIds = Annotated[list[_TokenId], Field(min_length=1, max_length=TOKEN_IDS_MAX, fail_fast=True)]
Input = Annotated[
    Annotated[_Text, Tag("<string>")]
    | Annotated[
        list[_Text], Field(min_length=1, max_length=INPUTS_MAX, fail_fast=True), Tag("<array>")
    ]
    | Annotated[_TokenIds, Tag("<ids>")]
    | Annotated[
        list[_TokenIds],
        Field(min_length=1, max_length=INPUTS_MAX, fail_fast=True),
        Tag("<lists of ids>"),
    ],
    Discriminator(
        _shape,
        custom_error_type="input_shape",
        custom_error_message="must be a string, or an array of strings or of token ids",
    ),
]
StatedInputType = Literal[
    "query",
    "document",
    "classification",
    "clustering",
    "search_query",
    "search_document",
    "passage",
]


class EmbeddingsRequest(EndUser, RoutingFields):
    """The body of POST /v1/embeddings; null means the same as omitting a field."""

    input: Input = Field(
        description="A text, a list of texts, the token ids of one input, or a list of such lists."
    )
    encoding_format: Literal["float", "base64"] | None = None
    dimensions: Annotated[int, Field(ge=1, le=DIMENSIONS_MAX)] | None = Field(
        default=None, description="The size of each vector, if the model supports several sizes."
    )
    input_type: StatedInputType | None = Field(
        default=None,
        description="The use of the vectors, for models that tell queries from documents.",
    )


class EmbeddingObject(Answer):
    """The vector for an input."""

    object: Literal["embedding"]
    index: int
    embedding: list[float] | str = Field(
        description="Numbers; with `encoding_format: base64`, little-endian 32-bit floats."
    )


class EmbeddingUsage(Answer):
    """The tokens in all inputs."""

    prompt_tokens: int
    total_tokens: int


class EmbeddingsReply(Answer):
    """The vectors, in the order of the inputs."""

    object: Literal["list"]
    data: list[EmbeddingObject]
    model: str
    usage: EmbeddingUsage
    tollgate_metadata: TollgateMetadata | None = None
