"""The messages of Bedrock's ConverseStream; structs have only the fields that are read.

The shapes are from the service model of bedrock-runtime (seen 2026-11-21). Every event may have
`p`, padding that hides its length.
"""

from typing import Any, Final

from msgspec import Struct, field

# Bedrock adds a base64 layer of its own to the data of a hidden block. Latin-1 maps any bytes to
# text without loss, and leaves Claude's data, which is ASCII, the same as on other hosts.
HIDDEN: Final = "latin-1"


class ToolUseStart(Struct, frozen=True):
    id: str = field(name="toolUseId")
    name: str


class ContentBlockStart(Struct, frozen=True):
    """The start of a block; `start` has one field named after the block's kind, none for a text."""

    block: int = field(name="contentBlockIndex")
    start: dict[str, Any]


class ToolUseDelta(Struct, frozen=True):
    input: str


class ReasoningDelta(Struct, frozen=True):
    """A piece of reasoning, its signature, or hidden reasoning in base64."""

    text: str | None = None
    signature: str | None = None
    redacted_content: str | None = field(default=None, name="redactedContent")


class WebLocation(Struct, frozen=True):
    url: str | None = None


class CitationLocation(Struct, frozen=True):
    """The target of a citation: a web page, or a place in a document, which has no URL."""

    web: WebLocation | None = None


class CitationDelta(Struct, frozen=True):
    """The source of a text."""

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
    """The usage of the answer, sent after the end of the answer."""

    usage: dict[str, Any]
    service_tier: ServiceTier = field(default=ServiceTier(), name="serviceTier")
