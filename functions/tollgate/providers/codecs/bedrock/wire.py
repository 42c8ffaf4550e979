"""The messages of Bedrock's ConverseStream; only fields that are read are named.

Shapes: the service model of bedrock-runtime (seen 2026-11-21). Every event may carry `p`, padding
that hides its length.
"""

from typing import Any, Final

from msgspec import Struct, field

# Bedrock wraps the data of a hidden block, whatever bytes it is, in base64 of its own: this reading
# of bytes as text loses none, and Claude's own data, which is ASCII, stays what it is elsewhere.
HIDDEN: Final = "latin-1"


class ToolUseStart(Struct, frozen=True):
    """A call begins."""

    id: str = field(name="toolUseId")
    name: str


class ContentBlockStart(Struct, frozen=True):
    """A block begins; `start` has its one field named after its kind, or none for a text."""

    block: int = field(name="contentBlockIndex")
    start: dict[str, Any]


class ToolUseDelta(Struct, frozen=True):
    """A piece of a call's arguments."""

    input: str


class ReasoningDelta(Struct, frozen=True):
    """A piece of reasoning, its signature, or reasoning that is hidden (base64)."""

    text: str | None = None
    signature: str | None = None
    redacted_content: str | None = field(default=None, name="redactedContent")


class WebLocation(Struct, frozen=True):
    """A page."""

    url: str | None = None


class CitationLocation(Struct, frozen=True):
    """The target of a citation: a page, or a place in a document of the prompt without a URL."""

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
    """A block goes on."""

    block: int = field(name="contentBlockIndex")
    delta: BlockDelta


class ContentBlockStop(Struct, frozen=True):
    """A block ends."""

    block: int = field(name="contentBlockIndex")


class MessageStop(Struct, frozen=True):
    """The answer ends."""

    stop_reason: str = field(name="stopReason")


class ServiceTier(Struct, frozen=True):
    """The tier that served: `default`, `flex`, `priority` or `reserved`."""

    type: str | None = None


class Metadata(Struct, frozen=True):
    """The usage of the answer; it follows the end of the answer."""

    usage: dict[str, Any]
    service_tier: ServiceTier = field(default=ServiceTier(), name="serviceTier")
