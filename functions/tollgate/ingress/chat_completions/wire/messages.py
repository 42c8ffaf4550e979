"""The messages of an OpenAI chat completion request.

https://platform.openai.com/docs/api-reference/chat/create (2026-08-21)
"""

from typing import Annotated, Any, Final, Literal

from pydantic import Discriminator, Field, Tag

from tollgate.core.content import ServerToolId
from tollgate.ingress.chat_completions.wire.parts import AssistantPart, TextPart, ToolPart, UserPart
from tollgate.ingress.shared.wire.request_model import (
    NAME_LENGTH_MAX,
    Name,
    String,
    Wire,
    by_field,
    by_shape,
    tag_of,
)

PARTS_MAX: Final = 4_096
CALLS_MAX: Final = 512
IMAGES_MAX: Final = 64


_ContentShape = by_shape("a string or an array of parts")
# Messages of users and operators must not be empty; messages of tools and models may be.
SystemContent = Annotated[
    String | Annotated[list[TextPart], Field(min_length=1, max_length=PARTS_MAX), Tag("<array>")],
    _ContentShape,
]
UserContent = Annotated[
    String | Annotated[list[UserPart], Field(min_length=1, max_length=PARTS_MAX), Tag("<array>")],
    _ContentShape,
]
ToolContent = Annotated[
    String | Annotated[list[ToolPart], Field(max_length=PARTS_MAX), Tag("<array>")],
    _ContentShape,
]
AssistantContent = Annotated[
    String | Annotated[list[AssistantPart], Field(max_length=PARTS_MAX), Tag("<array>")],
    _ContentShape,
]


class FunctionCall(Wire):
    """The function of a call, and its arguments."""

    name: Name
    arguments: str = Field(description="JSON text, as the model wrote it.")


class GoogleContent(Wire):
    """Gemini's data on a call."""

    thought_signature: str | None = None


class ExtraContent(Wire):
    """The data that providers attached to a call, by provider."""

    google: GoogleContent | None = None


_EXTRA_CONTENT: Final = Field(
    default=None, description="Data that a provider attached to the call; send it back untouched."
)


class FunctionToolCall(Wire):
    """A call of a function."""

    id: Annotated[str, Field(min_length=1)]
    type: Literal["function"] = "function"
    function: FunctionCall
    extra_content: ExtraContent | None = _EXTRA_CONTENT


class CustomCall(Wire):
    """The tool of a call, and its free text."""

    name: Name
    input: str


class CustomToolCall(Wire):
    """A call of a tool that takes free text."""

    id: Annotated[str, Field(min_length=1)]
    type: Literal["custom"]
    custom: CustomCall
    extra_content: ExtraContent | None = _EXTRA_CONTENT


def _call_type(value: object) -> str | None:
    # Some clients omit the type.
    if isinstance(value, dict) and "type" not in value:
        return "<function>"
    return tag_of(value, "type", "<function>")


ToolCall = Annotated[
    Annotated[FunctionToolCall, Tag("<function>")] | Annotated[CustomToolCall, Tag("<custom>")],
    Discriminator(
        _call_type,
        custom_error_type="unknown_type",
        custom_error_message="must be 'function' or 'custom'",
    ),
]


class Position(Wire):
    """The position of a piece of reasoning: the text, calls and runs that precede it."""

    text: Annotated[int, Field(ge=0)] = 0
    calls: Annotated[int, Field(ge=0)] = 0
    runs: Annotated[int, Field(ge=0)] = 0


class ReasoningDetail(Wire):
    """A piece of a model's reasoning from an earlier answer, unchanged.

    https://openrouter.ai/docs/use-cases/reasoning-tokens (2026-11-21)
    """

    type: str = "reasoning.text"
    index: int | None = None
    id: str | None = None
    format: str | None = Field(default=None, description="The signer of the reasoning.")
    text: str | None = None
    summary: str | None = None
    signature: str | None = None
    data: str | None = None
    model: str | None = None
    after: Position | None = None


class RunPosition(Wire):
    """The position of a run: the text that precedes it."""

    text: Annotated[int, Field(ge=0)] = 0


class ReturnedRun(Wire):
    """A run of one of the gateway's tools from an earlier answer, unchanged."""

    id: Annotated[str, Field(min_length=1, max_length=NAME_LENGTH_MAX)]
    type: Literal["server_tool"] = "server_tool"
    index: int | None = None
    name: ServerToolId
    arguments: str = Field(description="JSON text, as the model wrote it.")
    status: Literal["completed", "failed"] = "completed"
    result: str = Field(default="", description="The text that the model got.")
    error: str | None = None
    sources: list[Any] | None = Field(default=None, description="Has no effect.")
    after: RunPosition | None = None


class SystemMessage(Wire):
    """Instructions of the operator."""

    role: Literal["system"]
    content: SystemContent
    name: Name | None = None


class DeveloperMessage(Wire):
    """Instructions of the operator, under OpenAI's newer name."""

    role: Literal["developer"]
    content: SystemContent
    name: Name | None = None


class UserMessage(Wire):
    """A message of the user: text and media."""

    role: Literal["user"]
    content: UserContent
    name: Name | None = None


class MadeImageUrl(Wire):
    """The data: URL of a picture."""

    url: Annotated[str, Field(min_length=1)]


class MadeImage(Wire):
    """A picture that a model made."""

    type: Literal["image_url"] = "image_url"
    index: int | None = None
    image_url: MadeImageUrl
    extra_content: ExtraContent | None = _EXTRA_CONTENT


class ReturnedText(Wire):
    """The text of a page."""

    type: Literal["text"]
    text: str


class ReturnedPicture(Wire):
    """The picture of a page."""

    type: Literal["image_url"]
    image_url: MadeImageUrl


ReturnedPart = Annotated[ReturnedText | ReturnedPicture, Field(discriminator="type")]


class ReturnedFile(Wire):
    """A document that was read for an earlier answer."""

    hash: Annotated[str, Field(max_length=NAME_LENGTH_MAX)] = Field(
        description="SHA-256 of the file's bytes, by which this request's file is recognized."
    )
    name: Annotated[str, Field(max_length=NAME_LENGTH_MAX)] | None = None
    pages: Annotated[int, Field(ge=0, le=1_000_000)] | None = None
    content: Annotated[list[ReturnedPart], Field(max_length=PARTS_MAX)]


class ReturnedAnnotation(Wire):
    """An annotation from an earlier answer; an annotation on a file avoids reading it again."""

    type: str = ""
    index: int | None = None
    file: ReturnedFile | None = None
    url_citation: Any | None = Field(default=None, description="Has no effect.")


class AssistantMessage(Wire):
    """An earlier answer of a model."""

    role: Literal["assistant"]
    content: AssistantContent | None = None
    refusal: str | None = None
    name: Name | None = None
    tool_calls: Annotated[list[ToolCall], Field(max_length=CALLS_MAX)] | None = None
    reasoning: str | None = None
    reasoning_content: str | None = Field(default=None, description="Alias of `reasoning`.")
    reasoning_details: Annotated[list[ReasoningDetail], Field(max_length=PARTS_MAX)] | None = Field(
        default=None, description="Takes precedence over `reasoning`: it has the signatures."
    )
    images: Annotated[list[MadeImage], Field(max_length=IMAGES_MAX)] | None = Field(
        default=None, description="Pictures of the answer, unchanged."
    )
    annotations: Annotated[list[ReturnedAnnotation], Field(max_length=PARTS_MAX)] | None = Field(
        default=None, description="Annotations of the answer, unchanged."
    )
    server_tool_calls: Annotated[list[ReturnedRun], Field(max_length=CALLS_MAX)] | None = Field(
        default=None, description="Runs of the gateway's tools, unchanged."
    )
    function_call: None = Field(default=None, description="Not supported: use `tool_calls`.")
    audio: None = Field(default=None, description="Not supported.")


class ToolMessage(Wire):
    """The result of a call."""

    role: Literal["tool"]
    tool_call_id: Annotated[str, Field(min_length=1)]
    content: ToolContent | None


Message = Annotated[
    Annotated[SystemMessage, Tag("<system>")]
    | Annotated[DeveloperMessage, Tag("<developer>")]
    | Annotated[UserMessage, Tag("<user>")]
    | Annotated[AssistantMessage, Tag("<assistant>")]
    | Annotated[ToolMessage, Tag("<tool>")],
    by_field("role", "system", "developer", "user", "assistant", "tool"),
]
