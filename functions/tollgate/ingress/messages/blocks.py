"""Renders an answer's parts as content blocks, for non-streamed messages and for streams.

Clients of this format allow only one open block in a stream, so events of other parts are queued
until the open block ends.
"""

from collections.abc import Iterator
from typing import assert_never

from msgspec.structs import replace
from pydantic_core import from_json

from tollgate.core.buffer_budget import take
from tollgate.core.content import (
    MadeImage,
    Part,
    Provenance,
    Reasoning,
    Refusal,
    ServerToolRun,
    Text,
    ToolCall,
)
from tollgate.core.events import Citation, PartDelta, PartEnd, PartNote, PartStart
from tollgate.core.json_value import JsonValue
from tollgate.core.response import GenerationResponse, buffered_size
from tollgate.core.signers import ANTHROPIC_BLOCKS, CLAUDE, UNKNOWN_DELTAS
from tollgate.ingress.base import ServedBy
from tollgate.ingress.messages.block_frames import (
    RenderedBlock,
    block_delta,
    block_start,
    block_stop,
    frame,
    whole_block,
)
from tollgate.ingress.messages.run_blocks import OpenRun, render_run_blocks, run_facts
from tollgate.ingress.shared.media import image_markdown
from tollgate.ingress.shared.signatures import Packed, pack


def render_blocks(
    response: GenerationResponse, served: ServedBy, *, hides_thinking: bool
) -> Iterator[RenderedBlock]:
    """Yield the content blocks of a complete answer, without deltas of unknown type."""
    runs = 0
    for index, part in enumerate(response.parts):
        notes = response.notes.get(index, ())
        if isinstance(part, ServerToolRun):
            yield from render_run_blocks(part, notes, run_facts(served, runs))
            runs += 1
            continue
        shown_part = (
            replace(part, text="") if hides_thinking and isinstance(part, Reasoning) else part
        )
        for block in _whole(shown_part, [note for note in notes if isinstance(note, Citation)]):
            block.pop(UNKNOWN_DELTAS, None)
            yield block


def _whole(part: Part, citations: list[Citation]) -> Iterator[RenderedBlock]:
    match part:
        case Text(text=text) | Refusal(text=text):
            block: RenderedBlock = {"type": "text", "text": text}
            if citations:
                block["citations"] = [render_citation(note, text) for note in citations]
            yield block
        case MadeImage():
            yield {"type": "text", "text": image_markdown(part)}
        case Reasoning():
            yield _thought(part)
        case ToolCall():
            yield {
                "type": "tool_use",
                "id": part.id,
                "name": part.name,
                "input": _input(part.arguments),
            }
            if part.provenance is not None:
                yield _proof(part.id, part.provenance)
        case ServerToolRun():
            raise TypeError("runs are rendered by render_run_blocks")
        case _:
            assert_never(part)


def _thought(part: Reasoning) -> RenderedBlock:
    """Return the block for reasoning; a stored block of Anthropic's own tools is left unchanged."""
    provenance = part.provenance
    if provenance is not None and provenance.data:
        if provenance.signer == ANTHROPIC_BLOCKS:
            own_block: RenderedBlock = from_json(provenance.data)
            return own_block
        if provenance == Provenance(signer=CLAUDE, data=provenance.data) and not part.text:
            return {"type": "redacted_thinking", "data": provenance.data}
    return {"type": "thinking", "thinking": part.text, "signature": _signature(part)}


def _signature(reasoning: Reasoning) -> str:
    """Return the signature of a thinking block; empty if the reasoning is unsigned.

    A signature from Claude is unchanged; data from another signer is packed.
    """
    provenance = reasoning.provenance
    if provenance is None:
        return ""
    signature = provenance.signature
    if provenance == Provenance(signer=CLAUDE, signature=signature):
        return signature or ""
    return pack(Packed(provenance=provenance))


def _proof(call_id: str, provenance: Provenance) -> RenderedBlock:
    """Return a thinking block without text; its signature has the signer's data for a call."""
    signature = pack(Packed(provenance=provenance, call_id=call_id))
    return {"type": "thinking", "thinking": "", "signature": signature}


def _input(arguments: str) -> JsonValue:
    """Return the arguments as an object; any other text becomes the field `raw_arguments`."""
    try:
        value: JsonValue = from_json(arguments or "{}")
    except ValueError:
        return {"raw_arguments": arguments}
    return value if isinstance(value, dict) else {"raw_arguments": arguments}


def render_citation(note: Citation, text: str) -> RenderedBlock:
    """Return an entry for `citations`."""
    cited_text = text[note.start or 0 : note.end]
    if note.url is not None:
        return {
            "type": "web_search_result_location",
            "url": note.url,
            # The AI SDK rejects a null title.
            "title": note.title or note.url,
            "cited_text": cited_text,
            "encrypted_index": "",
        }
    return {
        "type": "char_location",
        "cited_text": cited_text,
        "document_index": 0,
        "document_title": note.title,
        "start_char_index": note.start or 0,
        "end_char_index": note.end or 0,
        "file_id": None,
    }


class BlockWriter:
    """Renders the parts of a stream as content blocks, one after the other.

    With `hides_thinking`, thinking blocks have a signature but no text (`display: omitted`).
    """

    def __init__(self, served: ServedBy, *, hides_thinking: bool) -> None:
        self._served = served
        self._hides_thinking = hides_thinking
        self._written = 0
        self._runs = 0
        self._queue: list[_Open | OpenRun] = []
        self._by_index: dict[int, _Open | OpenRun] = {}

    def feed(self, event: PartStart | PartDelta | PartNote | PartEnd) -> bytes:
        """Return the frames for an event; empty while the block of another part is open."""
        if isinstance(event, PartStart):
            open_block = self._by_index[event.index] = self._open(event.part)
            self._queue.append(open_block)
        else:
            open_block = self._by_index[event.index]
        hidden = self._hides_thinking and isinstance(open_block.part, Reasoning)
        if not (hidden and isinstance(event, PartDelta)):
            open_block.take(event)
        return b"".join(self._drain())

    def _open(self, part: Part) -> "_Open | OpenRun":
        if not isinstance(part, ServerToolRun):
            return _Open(part)
        ordinal, self._runs = self._runs, self._runs + 1
        return OpenRun(part, run_facts(self._served, ordinal))

    def _drain(self) -> Iterator[bytes]:
        while self._queue:
            first = self._queue[0]
            yield from first.frames(self._written)
            if not first.has_ended:
                return
            self._written += first.blocks
            del self._queue[0]


class _Open:
    """The block for one part, and its unsent events."""

    def __init__(self, part: Part) -> None:
        self.part = part
        self._text = [image_markdown(part)] if isinstance(part, MadeImage) else []
        self._sent = 0
        self._notes: list[Citation] = []
        self._has_begun = False
        self._provenance: Provenance | None = None
        self.has_ended = False
        self.blocks = 1
        if isinstance(part, Reasoning | ToolCall):
            self._provenance = part.provenance

    def take(self, event: PartStart | PartDelta | PartNote | PartEnd) -> None:
        match event:
            case PartStart():
                pass
            case PartDelta(text=text):
                take(buffered_size(event))
                self._text.append(text)
            case PartNote(note=Citation() as note):
                self._notes.append(note)
            case PartNote():
                # Other notes are dropped: the format has no field for log probabilities.
                pass
            case PartEnd(provenance=provenance):
                self.has_ended = True
                self._provenance = provenance or self._provenance
            case _:
                assert_never(event)

    def frames(self, index: int) -> Iterator[bytes]:
        """Yield the unsent frames; `index` is the position of the block in the answer."""
        match self.part:
            case Text() | Refusal() | MadeImage():
                yield from self._start(index, {"type": "text", "text": ""})
                yield from self._deltas(index, b"text_delta", b"text")
                if self.has_ended:
                    yield from self._citations(index)
            case ToolCall(id=id_, name=name):
                yield from self._start(
                    index, {"type": "tool_use", "id": id_, "name": name, "input": {}}
                )
                yield from self._deltas(index, b"input_json_delta", b"partial_json")
            case Reasoning():
                if not self._has_begun and not self._text:
                    if self.has_ended:
                        block = _thought(Reasoning(text="", provenance=self._provenance))
                        yield from whole_block(index, block)
                    return
                block_head: RenderedBlock = {"type": "thinking", "thinking": "", "signature": ""}
                yield from self._start(index, block_head)
                yield from self._deltas(index, b"thinking_delta", b"thinking")
                if self.has_ended:
                    yield from self._signed(index)
            case ServerToolRun():
                raise TypeError("runs are written by OpenRun")
            case _:
                assert_never(self.part)
        if self.has_ended:
            yield block_stop(index)
            yield from self._proof_of_call(index + 1)

    def _start(self, index: int, block: RenderedBlock) -> Iterator[bytes]:
        if not self._has_begun:
            self._has_begun = True
            yield block_start(index, block)

    def _deltas(self, index: int, kind: bytes, field: bytes) -> Iterator[bytes]:
        for text in self._text[self._sent :]:
            if text:
                yield block_delta(index, kind, field, text)
        self._sent = len(self._text)

    def _citations(self, index: int) -> Iterator[bytes]:
        for note in self._notes:
            citation = render_citation(note, "".join(self._text))
            delta: JsonValue = {"type": "citations_delta", "citation": citation}
            yield frame("content_block_delta", {"index": index, "delta": delta})

    def _signed(self, index: int) -> Iterator[bytes]:
        signature = _signature(Reasoning(text="", provenance=self._provenance))
        if signature:
            yield block_delta(index, b"signature_delta", b"signature", signature)

    def _proof_of_call(self, index: int) -> Iterator[bytes]:
        if not isinstance(self.part, ToolCall) or self._provenance is None:
            return
        self.blocks = 2
        yield from whole_block(index, _proof(self.part.id, self._provenance))
