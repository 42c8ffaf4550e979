"""The messages of Bedrock's ConverseStream, with only the fields that the gateway reads.

The shapes are from the service model of bedrock-runtime (seen 2026-11-21). Every event may have
`p`, padding that hides the event's length. The answers of batches are the replies of Converse, in
which members without a value may be null.
"""

from typing import Any, Final

from msgspec import Struct, field

# Bedrock encodes hidden data in base64 once more. Latin-1 maps the decoded bytes to text without
# loss, and Claude's data, which is ASCII, is then the same text as on other hosts.
HIDDEN: Final = "latin-1"


class ToolUseStart(Struct, frozen=True):
    id: str = field(name="toolUseId")
    name: str


class ContentBlockStart(Struct, frozen=True):
    """The start of a block; the kind is the only field of `start`, which is empty for a text."""

    block: int = field(name="contentBlockIndex")
    start: dict[str, Any]


class ToolUseDelta(Struct, frozen=True):
    input: str


class ReasoningDelta(Struct, frozen=True):
    """A piece of reasoning, the signature of reasoning, or hidden reasoning in base64."""

    text: str | None = None
    signature: str | None = None
    redacted_content: str | None = field(default=None, name="redactedContent")


class WebLocation(Struct, frozen=True):
    url: str | None = None


class CitationLocation(Struct, frozen=True):
    """The cited source: a web page, or a passage of a document without a URL."""

    web: WebLocation | None = None


class CitationDelta(Struct, frozen=True):
    """A source that a text cites."""

    title: str | None = None
    source: str | None = None
    location: CitationLocation | None = None


class BlockDelta(Struct, frozen=True):
    """A piece of a block; exactly one field is set."""

    text: str | None = None
    tool_use: ToolUseDelta | None = field(default=None, name="toolUse")
    reasoning: ReasoningDelta | None = field(default=None, name="reasoningContent")
    citation: CitationDelta | None = None


class ContentBlockDelta(Struct, frozen=True):
    block: int = field(name="contentBlockIndex")
    delta: BlockDelta


class ContentBlockStop(Struct, frozen=True):
    block: int = field(name="contentBlockIndex")


class MessageStop(Struct, frozen=True):
    stop_reason: str = field(name="stopReason")


class ServiceTier(Struct, frozen=True):
    """The service tier that served the request: `default`, `flex`, `priority` or `reserved`."""

    type: str | None = None


class Metadata(Struct, frozen=True):
    """The usage of an answer, which arrives after the end of the answer."""

    usage: dict[str, Any]
    service_tier: ServiceTier = field(default=ServiceTier(), name="serviceTier")


class ToolUse(ToolUseStart, frozen=True):
    """A complete tool call."""

    input: Any = None


class ReasoningText(Struct, frozen=True):
    text: str | None = None
    signature: str | None = None


class ReasoningBlock(Struct, frozen=True):
    """A complete block of reasoning; exactly one field is set."""

    text: ReasoningText | None = field(default=None, name="reasoningText")
    redacted_content: str | None = field(default=None, name="redactedContent")


class CitedText(Struct, frozen=True):
    text: str | None = None


class CitedBlock(Struct, frozen=True):
    """A complete text with its sources."""

    content: list[CitedText] = []
    citations: list[CitationDelta] = []


class ContentBlock(Struct, frozen=True):
    """A complete content block; exactly one field is set."""

    text: str | None = None
    tool_use: ToolUse | None = field(default=None, name="toolUse")
    reasoning: ReasoningBlock | None = field(default=None, name="reasoningContent")
    cited: CitedBlock | None = field(default=None, name="citationsContent")


class ReplyMessage(Struct, frozen=True):
    content: list[ContentBlock] = []


class ReplyOutput(Struct, frozen=True):
    message: ReplyMessage


class ConverseReply(MessageStop, frozen=True):
    """The reply of Converse, which does not stream."""

    output: ReplyOutput
    usage: dict[str, Any]
    service_tier: ServiceTier | None = field(default=None, name="serviceTier")
