"""Models of Anthropic's message, stream events and errors, for the published schema.

`ingress.messages.render` writes the answers without these models; tests check that both agree.
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
    """A piece of text with its citations."""

    type: Literal["text"]
    text: str
    citations: list[dict[str, Any]] | None = None


class SaidThinking(Answer):
    """Reasoning of the model; send it back untouched."""

    type: Literal["thinking"]
    thinking: str
    signature: str = Field(description="Empty if the reasoning is unsigned.")


class SaidRedactedThinking(Answer):
    """Encrypted reasoning that only the model can read; send it back untouched."""

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
    """Tokens written to the cache, by lifetime."""

    ephemeral_5m_input_tokens: int
    ephemeral_1h_input_tokens: int


class OutputDetails(Answer):
    """Parts of the output."""

    thinking_tokens: int


class ServerToolUse(Answer):
    """Successful uses of tools that the provider or the gateway ran."""

    web_search_requests: int
    web_fetch_requests: int


class MessageUsage(Answer):
    """Usage in classes that do not overlap, and the cost."""

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
    """A whole answer, or the beginning of a streamed answer."""

    id: str
    type: Literal["message"]
    role: Literal["assistant"]
    model: str = Field(description="The slug of the model that served.")
    content: list[SaidBlock]
    stop_reason: StopReason | None
    stop_sequence: str | None
    usage: MessageUsage


class MessageStart(Answer):
    """The event with which an answer begins."""

    type: Literal["message_start"]
    message: MessageReply


class ContentBlockStart(Answer):
    """The event with which a block begins."""

    type: Literal["content_block_start"]
    index: int
    content_block: SaidBlock


class ContentBlockDelta(Answer):
    """The next piece of a block: text, thinking, a signature, input JSON or a citation."""

    type: Literal["content_block_delta"]
    index: int
    delta: dict[str, Any]


class ContentBlockStop(Answer):
    """The event with which a block ends."""

    type: Literal["content_block_stop"]
    index: int


class MessageEnd(Answer):
    """The reason why the answer ended."""

    stop_reason: StopReason | None
    stop_sequence: str | None


class MessageDelta(PartialAccounts):
    """The event with the stop reason and the final usage of the answer."""

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
    """The cause of an error in a form that client libraries read."""

    error_code: str
    unsupported: list[str]


class MessagesError(Answer):
    """One error."""

    type: str = Field(description="Anthropic's type of errors.")
    message: str
    code: str
    param: str | None
    details: MessagesErrorDetails | None = None
    limit: LimitObject | None = Field(
        default=None, description="The limit of a key, a member or a team that was reached."
    )


class MessagesErrorEnvelope(Answer):
    """The body of every error."""

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
    """The data of one event."""


class MessageTokensCount(BaseModel):
    """The number of tokens of a prompt."""

    input_tokens: Annotated[int, Field(ge=0)]
