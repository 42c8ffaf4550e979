"""Turns the content blocks of a streamed message into parts.

A block from one of Anthropic's own tools, or of an unknown kind, becomes a reasoning part without
text, which stores the whole block for the next request.
"""

from collections.abc import Iterator
from typing import Final, assert_never

import pydantic_core
from msgspec import field
from typing_extensions import override

from tollgate.core.content import (
    Part,
    Provenance,
    Reasoning,
    Text,
    ToolCall,
)
from tollgate.core.events import Citation, PartEnd, StreamEvent, UnknownFields
from tollgate.core.json_value import JsonObject, JsonValue
from tollgate.core.signers import ANTHROPIC_BLOCKS, UNKNOWN_DELTAS
from tollgate.providers.codecs.anthropic.wire import (
    BlockDelta,
    CitationLocation,
    CitationsDelta,
    CompactionDelta,
    ContentBlock,
    InputJsonDelta,
    OtherBlock,
    OtherDelta,
    RedactedThinkingBlock,
    SignatureDelta,
    TextBlock,
    TextDelta,
    ThinkingBlock,
    ThinkingDelta,
    ToolUseBlock,
)
from tollgate.providers.shared.parts import OpenPart, Parts

_WIRE_FORMAT: Final = "anthropic"
_DELTA: Final = "content_block_delta"


class BrokenBlock(Exception):
    """Raised for a block that the format does not allow; its message completes the sentence "The
    provider sent …".
    """


class _Block(OpenPart, kw_only=True):
    """A content block. A text block becomes a part only when its first character arrives."""

    block: ContentBlock
    signer: str | None
    signature: list[str] = field(default_factory=list)
    """A list, because appending each piece to a string would copy all earlier pieces."""
    input_json: list[str] = field(default_factory=list)
    other_deltas: list[JsonValue] = field(default_factory=list)
    cited: list[CitationLocation] = field(default_factory=list)
    compaction: dict[str, JsonValue] = field(default_factory=dict)
    """The fields of a compaction block that deltas have delivered so far, without its content."""
    compaction_content: list[str] = field(default_factory=list)

    @override
    def finish(self) -> Iterator[StreamEvent]:
        """Yield the events that end the part, citations first."""
        if isinstance(self.block, ToolUseBlock) and not self.length:
            # No delta has arrived: the call has no arguments, or the message was not streamed.
            yield self.add(pydantic_core.to_json(self.block.input).decode())
        for location in self.cited:
            yield self.note(_citation(location, self.length))
        yield PartEnd(index=self.index, provenance=_provenance(self))


class Blocks:
    """The blocks of one message, keyed by Anthropic's index of each block."""

    def __init__(self, signer: str | None) -> None:
        self._signer = signer
        self.parts = Parts[int, _Block]()

    def start(self, index: int, block: ContentBlock) -> Iterator[StreamEvent]:
        """Yield the events that begin a block, including its first text."""
        if self.parts.get(index) is not None:
            raise BrokenBlock("a block that had begun already")
        opened = _Block(part=_part(block, self._signer), block=block, signer=self._signer)
        yield from self.parts.hold(index, opened)
        match block:
            case TextBlock():
                opened.cited += block.citations or ()
                yield from self._add(opened, block.text)
            case ThinkingBlock():
                yield self.parts.begin(opened)
                opened.signature.append(block.signature or "")
                yield from self._add(opened, block.thinking)
            case RedactedThinkingBlock() | OtherBlock() | ToolUseBlock():
                yield self.parts.begin(opened)
            case _:
                assert_never(block)

    def more(self, index: int, delta: BlockDelta) -> Iterator[StreamEvent]:
        """Yield the events for one delta."""
        opened = self.parts.get(index)
        if opened is None:
            raise BrokenBlock("a delta of a block that has not begun")
        match opened.block, delta:
            case TextBlock(), TextDelta(text=text):
                yield from self._add(opened, text)
            case TextBlock(), CitationsDelta(citation=citation):
                opened.cited.append(citation)
            case ThinkingBlock(), ThinkingDelta(thinking=text):
                yield from self._add(opened, text)
            case ThinkingBlock(), SignatureDelta(signature=signature):
                opened.signature.append(signature)
            case ToolUseBlock(), InputJsonDelta(partial_json=text):
                yield from self._add(opened, text)
            case OtherBlock(), InputJsonDelta(partial_json=text):
                opened.input_json.append(text)
            case OtherBlock(type="compaction"), CompactionDelta(content=text):
                opened.compaction |= delta.model_dump(
                    exclude={"type", "content"}, exclude_none=True
                )
                if text is not None:
                    opened.compaction_content.append(text)
            case OtherBlock(), _:
                opened.other_deltas.append(delta.model_dump())
            case _, OtherDelta():
                frame: JsonObject = {"type": _DELTA, "index": index, "delta": delta.model_dump()}
                yield UnknownFields(
                    wire_format=_WIRE_FORMAT, place=_DELTA, fields=frame, is_frame=True
                )
            case _:
                raise BrokenBlock("a delta that does not fit the kind of its block")

    def _add(self, opened: _Block, text: str) -> Iterator[StreamEvent]:
        if text:
            if not opened.has_begun:
                yield self.parts.begin(opened)
            yield opened.add(text)


def _part(block: ContentBlock, signer: str | None) -> Part:
    """Return the part for a block; raise BrokenBlock for a block of unknown kind."""
    match block:
        case TextBlock():
            return Text(text="")
        case ToolUseBlock():
            return ToolCall(id=block.id, name=block.name, arguments="")
        case ThinkingBlock():
            return Reasoning(text="", provenance=Provenance(signer=signer))
        case RedactedThinkingBlock(data=data):
            return Reasoning(text="", provenance=Provenance(signer=signer, data=data))
        case OtherBlock():
            return Reasoning(text="", provenance=Provenance(signer=ANTHROPIC_BLOCKS, data=""))
        case _:
            assert_never(block)


def _provenance(opened: _Block) -> Provenance | None:
    """Return the data that must be sent back to Anthropic, or None. The data is complete only at
    the end of the block.
    """
    match opened.block:
        case ThinkingBlock():
            return Provenance(signer=opened.signer, signature="".join(opened.signature) or None)
        case OtherBlock() as other:
            stored: dict[str, JsonValue] = other.model_dump() | opened.compaction
            if opened.compaction_content:
                stored["content"] = "".join(opened.compaction_content)
            if opened.input_json:
                stored["input"] = _input("".join(opened.input_json))
            if opened.other_deltas:
                stored[UNKNOWN_DELTAS] = opened.other_deltas
            return Provenance(signer=ANTHROPIC_BLOCKS, data=pydantic_core.to_json(stored).decode())
        case TextBlock() | ToolUseBlock() | RedactedThinkingBlock():
            return None
        case block:
            assert_never(block)


def _input(text: str) -> JsonValue:
    try:
        value: JsonValue = pydantic_core.from_json(text or "{}")
    except ValueError as invalid:
        raise BrokenBlock("a tool input that is not JSON") from invalid
    return value


def _citation(location: CitationLocation, length: int) -> Citation:
    """Return a citation of the whole block, because Anthropic opens a block for each source."""
    return Citation(
        url=location.url or location.source,
        title=location.title or location.document_title,
        start=0,
        end=length,
    )
