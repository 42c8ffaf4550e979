"""Models for messages in an OpenAI chat completion request.

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
# User and system messages must not be empty; tool and assistant messages may be.
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
    """The called function, and its arguments."""

    name: Name
    arguments: str = Field(description="JSON text, as the model wrote it.")


class GoogleContent(Wire):
    """Gemini's data for a call."""

    thought_signature: str | None = None


class ExtraContent(Wire):
    """Data that providers attached to a call, by provider."""

    google: GoogleContent | None = None


_EXTRA_CONTENT: Final = Field(
    default=None, description="Data that a provider attached; send it back unchanged."
)


class FunctionToolCall(Wire):
    """A function call."""

    id: Annotated[str, Field(min_length=1)]
    type: Literal["function"] = "function"
    function: FunctionCall
    extra_content: ExtraContent | None = _EXTRA_CONTENT


class CustomCall(Wire):
    """The called tool, and its text input."""

    name: Name
    input: str


class CustomToolCall(Wire):
    """A call of a tool with text input."""

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
    """The position of reasoning: how much text and how many calls and runs precede it."""

    text: Annotated[int, Field(ge=0)] = 0
    calls: Annotated[int, Field(ge=0)] = 0
    runs: Annotated[int, Field(ge=0)] = 0


class ReasoningDetail(Wire):
    """Reasoning from an earlier answer, unchanged.

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
    """The position of a run: how much text precedes it."""

    text: Annotated[int, Field(ge=0)] = 0


class ReturnedRun(Wire):
    """A server tool run from an earlier answer, unchanged."""

    id: Annotated[str, Field(min_length=1, max_length=NAME_LENGTH_MAX)]
    type: Literal["server_tool"] = "server_tool"
    index: int | None = None
    name: ServerToolId
    arguments: str = Field(description="JSON text, as the model wrote it.")
    status: Literal["completed", "failed"] = "completed"
    result: str = Field(default="", description="The result text that the model received.")
    error: str | None = None
    sources: list[Any] | None = Field(default=None, description="Has no effect.")
    after: RunPosition | None = None


class SystemMessage(Wire):
    """System instructions."""

    role: Literal["system"]
    content: SystemContent
    name: Name | None = None


class DeveloperMessage(Wire):
    """System instructions, under OpenAI's newer name."""

    role: Literal["developer"]
    content: SystemContent
    name: Name | None = None


class UserMessage(Wire):
    """A user message: text and media."""

    role: Literal["user"]
    content: UserContent
    name: Name | None = None


class MadeImageUrl(Wire):
    """The data URL of an image."""

    url: Annotated[str, Field(min_length=1)]


class MadeImage(Wire):
    """An image that a model generated."""

    type: Literal["image_url"] = "image_url"
    index: int | None = None
    image_url: MadeImageUrl
    extra_content: ExtraContent | None = _EXTRA_CONTENT


class ReturnedText(Wire):
    """The text of a document's page."""

    type: Literal["text"]
    text: str


class ReturnedPicture(Wire):
    """The image of a document's page."""

    type: Literal["image_url"]
    image_url: MadeImageUrl


ReturnedPart = Annotated[ReturnedText | ReturnedPicture, Field(discriminator="type")]


class ReturnedFile(Wire):
    """A document that was read for an earlier answer."""

    hash: Annotated[str, Field(max_length=NAME_LENGTH_MAX)] = Field(
        description="SHA-256 of the file's bytes, to match it with files in this request."
    )
    name: Annotated[str, Field(max_length=NAME_LENGTH_MAX)] | None = None
    pages: Annotated[int, Field(ge=0, le=1_000_000)] | None = None
    content: Annotated[list[ReturnedPart], Field(max_length=PARTS_MAX)]


class ReturnedAnnotation(Wire):
    """An annotation from an earlier answer; documents in annotations are not read again."""

    type: str = ""
    index: int | None = None
    file: ReturnedFile | None = None
    url_citation: Any | None = Field(default=None, description="Has no effect.")


class AssistantMessage(Wire):
    """An earlier answer from a model."""

    role: Literal["assistant"]
    content: AssistantContent | None = None
    refusal: str | None = None
    name: Name | None = None
    tool_calls: Annotated[list[ToolCall], Field(max_length=CALLS_MAX)] | None = None
    reasoning: str | None = None
    reasoning_content: str | None = Field(default=None, description="Alias of `reasoning`.")
    reasoning_details: Annotated[list[ReasoningDetail], Field(max_length=PARTS_MAX)] | None = Field(
        default=None, description="Takes precedence over `reasoning`, which lacks signatures."
    )
    images: Annotated[list[MadeImage], Field(max_length=IMAGES_MAX)] | None = Field(
        default=None, description="The answer's images, unchanged."
    )
    annotations: Annotated[list[ReturnedAnnotation], Field(max_length=PARTS_MAX)] | None = Field(
        default=None, description="The answer's annotations, unchanged."
    )
    server_tool_calls: Annotated[list[ReturnedRun], Field(max_length=CALLS_MAX)] | None = Field(
        default=None, description="The answer's server tool runs, unchanged."
    )
    function_call: None = Field(default=None, description="Not supported: use `tool_calls`.")
    audio: None = Field(default=None, description="Not supported.")


class ToolMessage(Wire):
    """The result of a tool call."""

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
