"""What Bedrock's ConverseStream sends, as far as it is read.

Shapes: the service model of bedrock-runtime (seen 2026-11-21). Every event may carry `p`, padding
that hides its length.
"""

from pydantic import BaseModel, ConfigDict, Field, JsonValue


class _Shape(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, defer_build=True)


class ToolUseStart(_Shape):
    """A call begins."""

    id: str = Field(alias="toolUseId")
    name: str


class BlockStart(BaseModel):
    """What kind of block begins: a call, or nothing for a text; the rest lands in `model_extra`."""

    model_config = ConfigDict(extra="allow", frozen=True, defer_build=True)

    tool_use: ToolUseStart | None = Field(default=None, alias="toolUse")


class ContentBlockStart(_Shape):
    """A block begins."""

    block: int = Field(alias="contentBlockIndex")
    start: BlockStart


class ToolUseDelta(_Shape):
    """A piece of a call's arguments."""

    input: str


class ReasoningDelta(_Shape):
    """A piece of reasoning, its signature, or reasoning that is hidden (base64)."""

    text: str | None = None
    signature: str | None = None
    redacted_content: str | None = Field(default=None, alias="redactedContent")


class WebLocation(_Shape):
    """A page."""

    url: str | None = None


class CitationLocation(_Shape):
    """Where a citation points: a page, or a place in a document of the prompt, which has none."""

    web: WebLocation | None = None


class CitationDelta(_Shape):
    """What a text is taken from."""

    title: str | None = None
    source: str | None = None
    location: CitationLocation | None = None


class BlockDelta(_Shape):
    """A piece of a block; exactly one field is set."""

    text: str | None = None
    tool_use: ToolUseDelta | None = Field(default=None, alias="toolUse")
    reasoning: ReasoningDelta | None = Field(default=None, alias="reasoningContent")
    citation: CitationDelta | None = None


class ContentBlockDelta(_Shape):
    """A block goes on."""

    block: int = Field(alias="contentBlockIndex")
    delta: BlockDelta


class ContentBlockStop(_Shape):
    """A block ends."""

    block: int = Field(alias="contentBlockIndex")


class MessageStop(_Shape):
    """The answer ends."""

    stop_reason: str = Field(alias="stopReason")


class CacheDetail(_Shape):
    """Tokens written to a cache of one lifetime."""

    ttl: str
    input_tokens: int = Field(alias="inputTokens")


class TokenUsage(_Shape):
    """Token counts; `inputTokens` has no cached tokens in it."""

    input_tokens: int | None = Field(default=None, alias="inputTokens")
    output_tokens: int | None = Field(default=None, alias="outputTokens")
    cache_read: int | None = Field(default=None, alias="cacheReadInputTokens")
    cache_write: int | None = Field(default=None, alias="cacheWriteInputTokens")
    cache_details: list[CacheDetail] | None = Field(default=None, alias="cacheDetails")


class ServiceTier(_Shape):
    """The tier that served: `default`, `flex`, `priority` or `reserved`."""

    type: str | None = None


class Metadata(_Shape):
    """What the answer took; follows the end of the answer."""

    usage: dict[str, JsonValue]
    service_tier: ServiceTier = Field(default=ServiceTier(), alias="serviceTier")


class ErrorBody(_Shape):
    """An error reply or an exception in a stream."""

    message: str | None = None
    capital_message: str | None = Field(default=None, alias="Message")
    type: str | None = Field(default=None, alias="__type")
