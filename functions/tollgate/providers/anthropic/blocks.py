"""Content blocks of a streamed message as parts.

What Anthropic's own tools did has no part of its own: such a block is carried whole beside the
reasoning, where it goes back untouched. Any other is an error: nothing is dropped.
"""

import re
from collections.abc import Iterator
from typing import Final, assert_never

import pydantic_core
from msgspec import Struct, field
from pydantic import JsonValue

from tollgate.core.content import Opaque, Part, Reasoning, Text, ToolCall
from tollgate.core.events import (
    Citation,
    PartDelta,
    PartEnd,
    PartNote,
    PartStart,
    StreamEvent,
)
from tollgate.providers.anthropic.wire import (
    BlockDelta,
    CitationLocation,
    CitationsDelta,
    ContentBlock,
    InputJsonDelta,
    OtherBlock,
    RedactedThinkingBlock,
    SignatureDelta,
    TextBlock,
    TextDelta,
    ThinkingBlock,
    ThinkingDelta,
    ToolUseBlock,
)

# What Anthropic's own tools did: the only other blocks there may be, in an answer and in a history.
OWN_TOOLS: Final = re.compile(r"server_tool_use|container_upload|[a-z_]+_tool_result")


class BrokenBlock(Exception):
    """A block is not what the format allows; the text completes "the provider sent"."""


class _Open(Struct):
    """A block that goes on; `part` is None for a text of which nothing has come yet."""

    block: ContentBlock
    part: int | None = None
    length: int = 0
    signature: str = ""
    input_json: list[str] = field(default_factory=list)
    cited: list[CitationLocation] = field(default_factory=list)


class Blocks:
    """The blocks of one message; of texts and of thoughts one is open at a time."""

    def __init__(self) -> None:
        self.count = 0
        self.has_calls = False
        self._open: dict[int, _Open] = {}

    def start(self, index: int, block: ContentBlock) -> Iterator[StreamEvent]:
        """A block begins; what it holds already is told at once."""
        if index in self._open:
            raise BrokenBlock("a block that had begun already")
        yield from self._close_alike(block)
        opened = self._open[index] = _Open(block)
        match block:
            case TextBlock():
                opened.cited += block.citations or ()
                yield from self._said(opened, block.text)
            case ThinkingBlock():
                yield self._part(opened, Reasoning(text=""))
                opened.signature = block.signature or ""
                yield from self._said(opened, block.thinking)
            case OtherBlock(type=kind) if not OWN_TOOLS.fullmatch(kind):
                raise BrokenBlock("a content block of unknown kind")
            case RedactedThinkingBlock() | OtherBlock():
                yield self._part(opened, Reasoning(text=""))
            case ToolUseBlock():
                self.has_calls = True
                yield self._part(opened, ToolCall(id=block.id, name=block.name, arguments=""))
            case _:
                assert_never(block)

    def more(self, index: int, delta: BlockDelta) -> Iterator[StreamEvent]:
        """A block goes on."""
        opened = self._open.get(index)
        if opened is None:
            raise BrokenBlock("a piece of a block that has not begun")
        match opened.block, delta:
            case TextBlock(), TextDelta(text=text):
                yield from self._said(opened, text)
            case TextBlock(), CitationsDelta(citation=citation):
                opened.cited.append(citation)
            case ThinkingBlock(), ThinkingDelta(thinking=text):
                yield from self._said(opened, text)
            case ThinkingBlock(), SignatureDelta(signature=signature):
                opened.signature += signature
            case ToolUseBlock(), InputJsonDelta(partial_json=text):
                yield from self._said(opened, text)
            case OtherBlock(), InputJsonDelta(partial_json=text):
                opened.input_json.append(text)
            case _:
                raise BrokenBlock("a piece of one kind in a block of another")

    def stop(self, index: int) -> Iterator[StreamEvent]:
        """A block ends."""
        opened = self._open.pop(index, None)
        if opened is None or opened.part is None:
            return
        part = opened.part
        block = opened.block
        if isinstance(block, ToolUseBlock) and not opened.length:
            yield PartDelta(index=part, text=pydantic_core.to_json(block.input).decode())
        for location in opened.cited:
            yield PartNote(index=part, note=_citation(location, opened.length))
        yield PartEnd(index=part, opaque=_opaque(opened))

    def end(self) -> Iterator[StreamEvent]:
        """Whatever is still open ends with the message."""
        for index in list(self._open):
            yield from self.stop(index)

    def _close_alike(self, block: ContentBlock) -> Iterator[StreamEvent]:
        kind = _kind(block)
        for index, opened in list(self._open.items()):
            if kind is not ToolCall and _kind(opened.block) is kind:
                yield from self.stop(index)

    def _part(self, opened: _Open, part: Part) -> PartStart:
        opened.part = self.count
        self.count += 1
        return PartStart(index=opened.part, part=part)

    def _said(self, opened: _Open, text: str) -> Iterator[StreamEvent]:
        """More text of a block; a text block without any is no part."""
        if not text:
            return
        if opened.part is None:
            yield self._part(opened, Text(text=""))
        if opened.part is not None:
            opened.length += len(text)
            yield PartDelta(index=opened.part, text=text)


def _kind(block: ContentBlock) -> type[Part]:
    match block:
        case TextBlock():
            return Text
        case ToolUseBlock():
            return ToolCall
        case ThinkingBlock() | RedactedThinkingBlock() | OtherBlock():
            return Reasoning
        case _:
            assert_never(block)


def _opaque(opened: _Open) -> Opaque:
    """What Anthropic wants back verbatim with this block."""
    match opened.block:
        case ThinkingBlock():
            return {"anthropic": {"signature": opened.signature}} if opened.signature else {}
        case RedactedThinkingBlock(data=data):
            return {"anthropic": {"redacted_thinking": data}}
        case OtherBlock() as other:
            whole: dict[str, JsonValue] = other.model_dump()
            if opened.input_json:
                whole["input"] = _input("".join(opened.input_json))
            return {"anthropic": {"block": whole}}
        case TextBlock() | ToolUseBlock():
            return {}
        case block:
            assert_never(block)


def _input(text: str) -> JsonValue:
    try:
        value: JsonValue = pydantic_core.from_json(text or "{}")
    except ValueError as invalid:
        raise BrokenBlock("the input of a tool that is not JSON") from invalid
    return value


def _citation(location: CitationLocation, length: int) -> Citation:
    """What the whole text of a block is taken from: Anthropic opens a block for each."""
    return Citation(
        url=location.url or location.source,
        title=location.title or location.document_title,
        start=0,
        end=length,
    )
