"""Anthropic's message, its stream events and its error envelope, as they are published.

The published schema is built from these models; answers themselves are written by
`ingress.messages.render`, and tests hold the two together.
https://platform.claude.com/docs/en/api/messages (2026-11-22)
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, RootModel

from tollgate.ingress.shared.wire.reply_models import (
    Answer,
    LimitObject,
    PartialAccounts,
    TollgateMetadata,
)

StopReason = Literal[
    "end_turn",
    "max_tokens",
    "stop_sequence",
    "tool_use",
    "pause_turn",
    "refusal",
    "model_context_window_exceeded",
]


class SaidText(Answer):
    """A piece of text, with its sources."""

    type: Literal["text"]
    text: str
    citations: list[dict[str, Any]] | None = None


class SaidThinking(Answer):
    """A thought; send it back untouched."""

    type: Literal["thinking"]
    thinking: str
    signature: str = Field(description="Empty where nobody signed the thought.")


class SaidRedactedThinking(Answer):
    """A thought that only its model reads; send it back untouched."""

    type: Literal["redacted_thinking"]
    data: str


class SaidToolUse(Answer):
    """A call of a tool."""

    type: Literal["tool_use"]
    id: str
    name: str
    input: dict[str, Any]


SaidBlock = SaidText | SaidThinking | SaidRedactedThinking | SaidToolUse | dict[str, Any]


class CacheCreation(Answer):
    """Tokens written to the cache, by their lifetime."""

    ephemeral_5m_input_tokens: int
    ephemeral_1h_input_tokens: int


class OutputDetails(Answer):
    """Parts of the output."""

    thinking_tokens: int


class ServerToolUse(Answer):
    """Uses of tools that the provider or the gateway ran, without those that failed."""

    web_search_requests: int
    web_fetch_requests: int


class MessageUsage(Answer):
    """Usage by classes that do not overlap, and the cost."""

    input_tokens: int
    cache_creation_input_tokens: int
    cache_read_input_tokens: int
    cache_creation: CacheCreation
    output_tokens: int
    output_tokens_details: OutputDetails | None = None
    server_tool_use: ServerToolUse | None = None
    service_tier: Literal["standard", "priority", "batch"] | None = None
    cost: float | None = Field(
        default=None, description="US dollars, exact to a billionth; absent where an answer begins."
    )


class MessageReply(PartialAccounts):
    """A whole answer, or the head of a streamed one."""

    id: str
    type: Literal["message"]
    role: Literal["assistant"]
    model: str = Field(description="The slug of the model that served.")
    content: list[SaidBlock]
    stop_reason: StopReason | None
    stop_sequence: str | None
    usage: MessageUsage


class MessageStart(Answer):
    """An answer begins."""

    type: Literal["message_start"]
    message: MessageReply


class ContentBlockStart(Answer):
    """A block begins."""

    type: Literal["content_block_start"]
    index: int
    content_block: SaidBlock


class ContentBlockDelta(Answer):
    """More of a block: text, thinking, a signature, JSON of an input, or a source."""

    type: Literal["content_block_delta"]
    index: int
    delta: dict[str, Any]


class ContentBlockStop(Answer):
    """A block is complete."""

    type: Literal["content_block_stop"]
    index: int


class MessageEnd(Answer):
    """The reason of the end."""

    stop_reason: StopReason | None
    stop_sequence: str | None


class MessageDelta(PartialAccounts):
    """The answer is complete; its usage is final."""

    type: Literal["message_delta"]
    delta: MessageEnd
    usage: MessageUsage


class MessageStop(Answer):
    """The last event."""

    type: Literal["message_stop"]


class Ping(Answer):
    """A sign of life."""

    type: Literal["ping"]


class MessagesErrorDetails(Answer):
    """The cause of an error, for client libraries."""

    error_code: str
    unsupported: list[str]


class MessagesError(Answer):
    """One error."""

    type: str = Field(description="Anthropic's class of errors.")
    message: str
    code: str
    param: str | None
    details: MessagesErrorDetails | None = None
    limit: LimitObject | None = Field(
        default=None, description="The limit of a key, a member or a team, if one refuses."
    )


class MessagesErrorEnvelope(Answer):
    """The body of every error."""

    type: Literal["error"]
    error: MessagesError
    request_id: str
    tollgate_metadata: TollgateMetadata | None = None


class ErrorEvent(PartialAccounts):
    """The event that ends a stream which failed, with the usage so far."""

    type: Literal["error"]
    error: MessagesError
    request_id: str
    usage: MessageUsage


_Event = Annotated[
    MessageStart
    | ContentBlockStart
    | ContentBlockDelta
    | ContentBlockStop
    | MessageDelta
    | MessageStop
    | Ping
    | ErrorEvent,
    Field(discriminator="type"),
]


class MessageStreamEvent(RootModel[_Event]):
    """The data of one event."""


class MessageTokensCount(BaseModel):
    """The tokens of a prompt."""

    input_tokens: Annotated[int, Field(ge=0)]
