"""The messages of Anthropic's API, with only the fields that the gateway reads.

The shapes are the types of Anthropic's Python SDK 2.11.0 and recorded streams (2026-11-21).
"""

from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, RootModel, Tag

from tollgate.core.json_value import JsonValue


class _Shape(BaseModel):
    model_config = ConfigDict(extra="allow", frozen=True)


class CitationLocation(_Shape):
    """The source of a text: a web page, a search result, or a document of the prompt."""

    # The gateway writes citations of its own form, in which unknown fields have no place.
    model_config = ConfigDict(extra="ignore", frozen=True)

    url: str | None = None
    source: str | None = None
    title: str | None = None
    document_title: str | None = None


class TextBlock(_Shape):
    """A text block, whose text is still empty at the start of a streamed block."""

    type: Literal["text"]
    text: str = ""
    citations: list[CitationLocation] | None = None


class ThinkingBlock(_Shape):
    """A thought and its signature; both must be sent back to Anthropic."""

    type: Literal["thinking"]
    thinking: str = ""
    signature: str | None = None


class RedactedThinkingBlock(_Shape):
    """Thinking that is hidden from the caller."""

    type: Literal["redacted_thinking"]
    data: str


class ToolUseBlock(_Shape):
    """A tool call, whose input is still empty at the start of a streamed block."""

    type: Literal["tool_use"]
    id: str
    name: str
    input: dict[str, JsonValue] = Field(default={})


class OtherBlock(BaseModel):
    """A block of any other kind: a call or a result of Anthropic's own tools, or unknown."""

    model_config = ConfigDict(extra="allow", frozen=True)

    type: str


_READ: Final = frozenset({"text", "thinking", "redacted_thinking", "tool_use"})


def _kind(block: object) -> str:
    kind = block.get("type") if isinstance(block, dict) else None
    return kind if isinstance(kind, str) and kind in _READ else "other"


ContentBlock = Annotated[
    Annotated[TextBlock, Tag("text")]
    | Annotated[ThinkingBlock, Tag("thinking")]
    | Annotated[RedactedThinkingBlock, Tag("redacted_thinking")]
    | Annotated[ToolUseBlock, Tag("tool_use")]
    | Annotated[OtherBlock, Tag("other")],
    Discriminator(_kind),
]


class TextDelta(_Shape):
    type: Literal["text_delta"]
    text: str


class InputJsonDelta(_Shape):
    type: Literal["input_json_delta"]
    partial_json: str


class ThinkingDelta(_Shape):
    type: Literal["thinking_delta"]
    thinking: str


class SignatureDelta(_Shape):
    type: Literal["signature_delta"]
    signature: str


class CitationsDelta(_Shape):
    type: Literal["citations_delta"]
    citation: CitationLocation


class CompactionDelta(_Shape):
    """The summary of a compaction block, and opaque content to be sent back with the block."""

    type: Literal["compaction_delta"]
    content: str | None = None
    encrypted_content: str | None = None


class OtherDelta(BaseModel):
    """A delta of unknown kind."""

    model_config = ConfigDict(extra="allow", frozen=True)

    type: str


_READ_DELTAS: Final = frozenset(
    {
        "text_delta",
        "input_json_delta",
        "thinking_delta",
        "signature_delta",
        "citations_delta",
        "compaction_delta",
    }
)


def _delta_kind(delta: object) -> str:
    kind = delta.get("type") if isinstance(delta, dict) else None
    return kind if isinstance(kind, str) and kind in _READ_DELTAS else "other"


BlockDelta = Annotated[
    Annotated[TextDelta, Tag("text_delta")]
    | Annotated[InputJsonDelta, Tag("input_json_delta")]
    | Annotated[ThinkingDelta, Tag("thinking_delta")]
    | Annotated[SignatureDelta, Tag("signature_delta")]
    | Annotated[CitationsDelta, Tag("citations_delta")]
    | Annotated[CompactionDelta, Tag("compaction_delta")]
    | Annotated[OtherDelta, Tag("other")],
    Discriminator(_delta_kind),
]


class StopDetails(_Shape):
    """The explanation of a refusal."""

    explanation: str | None = None


class Stop(_Shape):
    """The reason why the answer ends."""

    stop_reason: str | None = None
    stop_sequence: str | None = None
    stop_details: StopDetails | None = None


class Message(Stop):
    """A whole answer, or the first event of a streamed answer."""

    type: Literal["message"]
    role: str | None = None
    id: str | None = None
    model: str | None = None
    content: list[ContentBlock] = Field(default=[])
    usage: dict[str, JsonValue] | None = None


class MessageStart(_Shape):
    type: Literal["message_start"]
    message: Message


class ContentBlockStart(_Shape):
    type: Literal["content_block_start"]
    index: int
    content_block: ContentBlock


class ContentBlockDelta(_Shape):
    type: Literal["content_block_delta"]
    index: int
    delta: BlockDelta


class ContentBlockStop(_Shape):
    type: Literal["content_block_stop"]
    index: int


class MessageDelta(_Shape):
    """The final state of the answer, whose token counts replace earlier counts."""

    type: Literal["message_delta"]
    delta: Stop
    usage: dict[str, JsonValue] | None = None


class MessageStop(_Shape):
    type: Literal["message_stop"]


class Ping(_Shape):
    """A keep-alive. Vertex adds a token count that other events already have.

    https://github.com/vercel/ai/issues/11309 (seen 2026-11-21)
    """

    type: Literal["ping", "vertex_event"]


class ErrorDetail(_Shape):
    """An error; Anthropic sends `type`, and Google sends `status` and `details`."""

    type: str | None = None
    message: str | None = None
    status: str | None = None
    details: JsonValue = None


class ErrorEvent(_Shape):
    type: Literal["error"]
    error: ErrorDetail


Event = Annotated[
    MessageStart
    | ContentBlockStart
    | ContentBlockDelta
    | ContentBlockStop
    | MessageDelta
    | MessageStop
    | Ping
    | ErrorEvent
    | Message,
    Discriminator("type"),
]


EVENT_TYPES: Final = frozenset(
    {
        "content_block_delta",
        "content_block_start",
        "content_block_stop",
        "error",
        "message",
        "message_delta",
        "message_start",
        "message_stop",
        "ping",
        "vertex_event",
    }
)


class StreamedEvent(RootModel[Event]):
    """The content of one frame of a stream."""


class ErrorBody(_Shape):
    """An error reply from Anthropic or Google, or from AWS, which sends only a message."""

    error: ErrorDetail | None = None
    message: str | None = None
    capital_message: str | None = Field(default=None, alias="Message")


class ErrorBodies(RootModel[ErrorBody | list[ErrorBody]]):
    """The body of an error reply; on streaming paths Google sends a list with one error."""
