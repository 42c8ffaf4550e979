"""Complete answers, assembled from events, so that codecs need no separate code for non-streamed
replies.
"""

from collections.abc import Mapping
from typing import Final, assert_never

from msgspec import Struct
from msgspec.json import encode as encode_json
from msgspec.structs import replace
from pydantic_core import to_json

from tollgate.core.buffer_budget import take
from tollgate.core.content import (
    InlineMedia,
    MadeImage,
    Part,
    Provenance,
    Reasoning,
    Refusal,
    ServerToolRun,
    Text,
    ToolCall,
)
from tollgate.core.events import (
    Ended,
    Finish,
    Grouped,
    Note,
    Output,
    PartDelta,
    PartDeltas,
    PartEnd,
    Partial,
    PartNote,
    PartStart,
    Started,
    UnknownFields,
    UsageReported,
)
from tollgate.core.usage import Usage

# A string of one token needs 64 bytes of memory, and objects need about 20 bytes per byte of JSON.
_PIECE_BYTES: Final = 16
_OBJECT_BYTES: Final = 128
_OBJECTS_PER_BYTE: Final = 4


class GenerationResponse(Struct, frozen=True, kw_only=True):
    """The complete answer of one choice; `notes` are keyed by the index of their part."""

    started: Started
    parts: tuple[Part, ...]
    notes: Mapping[int, tuple[Note, ...]]
    usage: Usage
    finish: Finish
    raw_finish: str | None
    stop_sequence: str | None
    output: tuple[bytes, ...] = ()
    """The pieces of the result of work other than chat."""
    unknown: tuple[UnknownFields, ...] = ()
    """The provider's unknown fields and frames, in order."""


class Fold:
    """Accumulates the events of one stream; `response` requires the stream to be complete.

    The size of each event is taken from the request's buffer budget.
    """

    def __init__(self) -> None:
        self.size = 0
        """Bytes taken from the request's buffer budget."""
        self._started = Started()
        self._parts: list[Part] = []
        self._texts: list[list[str]] = []
        self._notes: dict[int, list[Note]] = {}
        self._usage = Usage()
        self._output: tuple[bytes, ...] = ()
        self._unknown: list[UnknownFields] = []
        self._ended: Ended | None = None

    def accept(self, event: Grouped) -> None:
        """Add the next event; raise BufferFull if the budget is exhausted."""
        size = buffered_size(event)
        take(size)
        self.size += size
        match event:
            # Deltas come first because most events are deltas.
            case PartDelta():
                self._texts[event.index].append(event.text)
            case PartDeltas():
                self._texts[event.index] += event.texts
            case Started():
                self._started = event
            case PartStart(part=part):
                self._parts.append(part)
                self._texts.append([])
            case PartNote(index=index, note=note):
                self._notes.setdefault(index, []).append(note)
            case PartEnd(index=index, provenance=provenance):
                part = self._parts[index]
                if provenance is not None and isinstance(part, Reasoning | ToolCall):
                    self._parts[index] = replace(part, provenance=provenance)
            case UsageReported(usage=usage, service_tier=tier):
                self._usage = self._usage.update(usage)
                if tier is not None:
                    self._started = replace(self._started, service_tier=tier)
            case Output(pieces=pieces):
                self._output += pieces
            case Partial():
                # Previews are dropped, because the final `Output` contains the whole result.
                pass
            case UnknownFields():
                self._unknown.append(event)
            case Ended():
                self._ended = event
            case _:
                assert_never(event)

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts of the answer so far."""
        texts = ("".join(text) for text in self._texts)
        return tuple(map(_with_text, self._parts, texts))

    def response(self) -> GenerationResponse:
        """Return the folded answer; raise ValueError if the stream has not ended."""
        if self._ended is None:
            raise ValueError("the stream has not ended")
        return GenerationResponse(
            started=self._started,
            parts=self.parts,
            notes={index: tuple(notes) for index, notes in self._notes.items()},
            usage=self._usage,
            finish=self._ended.finish,
            raw_finish=self._ended.raw_finish,
            stop_sequence=self._ended.stop_sequence,
            output=self._output,
            unknown=tuple(self._unknown),
        )


def buffered_size(event: Grouped) -> int:
    """Return how many bytes a buffered event takes from the budget."""
    match event:
        case PartDelta(text=text):
            return _text_size(text) + _PIECE_BYTES
        case PartDeltas(texts=texts):
            return _text_size("".join(texts)) + _PIECE_BYTES * len(texts)
        case Output(pieces=pieces):
            return sum(map(len, pieces)) + _PIECE_BYTES * len(pieces)
        case PartStart(part=MadeImage(source=InlineMedia(base64=base64))):
            return len(base64)
        case PartStart(part=Reasoning(provenance=Provenance(data=str(data)))):
            return _OBJECT_BYTES + _OBJECTS_PER_BYTE * len(data)
        case PartStart():
            return _OBJECT_BYTES
        case PartNote(note=note):
            return _OBJECTS_PER_BYTE * len(encode_json(note))
        case UnknownFields(fields=fields):
            return _OBJECTS_PER_BYTE * len(to_json(fields))
        case PartEnd(provenance=Provenance() as provenance):
            return len(encode_json(provenance))
        case _:
            return 0


def _text_size(text: str) -> int:
    """Return how much memory a string needs, at four bytes a character unless it is ASCII."""
    return len(text) if text.isascii() else 4 * len(text)


def _with_text(part: Part, text: str) -> Part:
    match part:
        case Text() | Reasoning() | Refusal():
            return replace(part, text=text)
        case ToolCall():
            return replace(part, arguments=text)
        case MadeImage() | ServerToolRun():
            return part
        case _:
            assert_never(part)
