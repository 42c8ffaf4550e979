"""Models for messages, stream events and errors in Anthropic's format, for the API description.

`ingress.messages.render` writes replies without these models; tests check that replies match.
https://platform.claude.com/docs/en/api/messages (2026-11-22)
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, RootModel

from tollgate.ingress.shared.wire.reply_models import (
    Answer,
    LimitObject,
    PartialAccounts,
    ProviderError,
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
    """Text with its citations."""

    type: Literal["text"]
    text: str
    citations: list[dict[str, Any]] | None = None


class SaidThinking(Answer):
    """Reasoning from the model; send it back unchanged."""

    type: Literal["thinking"]
    thinking: str
    signature: str = Field(description="Empty if the reasoning is unsigned.")


class SaidRedactedThinking(Answer):
    """Encrypted reasoning that only the model's maker can read; send it back unchanged."""

    type: Literal["redacted_thinking"]
    data: str


class SaidToolUse(Answer):
    """A tool call."""

    type: Literal["tool_use"]
    id: str
    name: str
    input: dict[str, Any]


SaidBlock = SaidText | SaidThinking | SaidRedactedThinking | SaidToolUse | dict[str, Any]


class CacheCreation(Answer):
    """Tokens written to the prompt cache, by lifetime."""

    ephemeral_5m_input_tokens: int
    ephemeral_1h_input_tokens: int


class OutputDetails(Answer):
    """Parts of the output tokens."""

    thinking_tokens: int


class ServerToolUse(Answer):
    """Successful runs of tools that the provider or the gateway ran."""

    web_search_requests: int
    web_fetch_requests: int


class MessageUsage(Answer):
    """Token counts that do not overlap, and the cost."""

    input_tokens: int
    cache_creation_input_tokens: int
    cache_read_input_tokens: int
    cache_creation: CacheCreation
    output_tokens: int
    output_tokens_details: OutputDetails | None = None
    server_tool_use: ServerToolUse | None = None
    service_tier: Literal["standard", "priority", "batch"] | None = None
    cost: float | None = Field(
        default=None, description="US dollars, exact to a billionth; absent in `message_start`."
    )


class MessageReply(PartialAccounts):
    """A complete answer, or the start of a streamed answer."""

    id: str
    type: Literal["message"]
    role: Literal["assistant"]
    model: str = Field(description="The slug of the model that answered.")
    content: list[SaidBlock]
    stop_reason: StopReason | None
    stop_sequence: str | None
    usage: MessageUsage


class MessageStart(Answer):
    """The event that starts an answer."""

    type: Literal["message_start"]
    message: MessageReply


class ContentBlockStart(Answer):
    """The event that starts a block."""

    type: Literal["content_block_start"]
    index: int
    content_block: SaidBlock


class ContentBlockDelta(Answer):
    """An addition to a block: text, thinking, a signature, input JSON or a citation."""

    type: Literal["content_block_delta"]
    index: int
    delta: dict[str, Any]


class ContentBlockStop(Answer):
    """The event that ends a block."""

    type: Literal["content_block_stop"]
    index: int


class MessageEnd(Answer):
    """The reason why the answer ended."""

    stop_reason: StopReason | None
    stop_sequence: str | None


class MessageDelta(PartialAccounts):
    """The event with the stop reason and the final usage."""

    type: Literal["message_delta"]
    delta: MessageEnd
    usage: MessageUsage


class MessageStop(Answer):
    """The last event of a stream."""

    type: Literal["message_stop"]


class Ping(Answer):
    """A keep-alive event."""

    type: Literal["ping"]


class MessagesErrorDetails(Answer):
    """The cause of an error, in a form that client libraries read."""

    error_code: str
    unsupported: list[str]


class MessagesError(Answer):
    """An error."""

    type: str = Field(description="Anthropic's error type.")
    message: str
    code: str
    param: str | None
    details: MessagesErrorDetails | None = None
    limit: LimitObject | None = Field(
        default=None, description="The key, member or team limit that was reached."
    )
    provider_error: ProviderError | None = None


class MessagesErrorEnvelope(Answer):
    """The body of every error reply."""

    type: Literal["error"]
    error: MessagesError
    request_id: str
    tollgate_metadata: TollgateMetadata | None = None


class ErrorEvent(PartialAccounts):
    """The last event of a failed stream, with the usage so far."""

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
    """The JSON data of an event."""


class MessageTokensCount(BaseModel):
    """The number of tokens in a prompt."""

    input_tokens: Annotated[int, Field(ge=0)]
