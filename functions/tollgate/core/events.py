"""The events that every decoder emits and every renderer reads.

`StreamGrammar` checks the order of events. A stream begins with `Started`, and ends with exactly
one `Ended` after every part is closed. In between, parts (`PartStart`, any number of `PartDelta`,
`PartEnd`) and `UsageReported` come in any order. Parts may interleave, and several tool calls or
runs of the gateway's tools may be open at once. However, only one text, one reasoning and one
refusal may be open at a time, because some client formats have a single string for each. The
`RunResult` of a tool run is sent as a note on its part. Work other than chat has one or more
`Output` events instead of parts, and `Partial` events as previews. A stream describes one choice;
code that merges several streams pairs each event with its choice.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Literal, assert_never

from msgspec import Struct

from tollgate.core.content import (
    Part,
    Provenance,
    ServerToolRun,
    ToolCall,
)
from tollgate.core.json_value import JsonObject, JsonValue
from tollgate.core.server_tools import RunResult
from tollgate.core.usage import Usage

Finish = Literal["stop", "length", "tool_calls", "content_filter"]


class Started(Struct, frozen=True, kw_only=True, tag="started"):
    """The provider has begun to answer."""

    upstream_id: str | None = None
    served_model: str | None = None
    system_fingerprint: str | None = None
    service_tier: str | None = None


class PartStart(Struct, frozen=True, kw_only=True, tag="part_start"):
    """A part begins, with its text or arguments still empty. `index` counts parts from 0."""

    index: int
    part: Part


class PartDelta(Struct, frozen=True, kw_only=True, tag="part_delta"):
    """More text of a part, or more of a call's arguments."""

    index: int
    text: str


class PartDeltas(Struct, frozen=True, kw_only=True):
    """Consecutive texts of one part from a single read, equivalent to one `PartDelta` per text.

    Most events are deltas. A group costs as much as a single event, yet keeps its texts separate.
    """

    index: int
    texts: list[str]
    """At least two texts."""


class PartEnd(Struct, frozen=True, kw_only=True, tag="part_end"):
    """A part is complete; `provenance`, if set, replaces that of its `PartStart`."""

    index: int
    provenance: Provenance | None = None


class Citation(Struct, frozen=True, kw_only=True, tag="citation"):
    """The source of a span of text in a part."""

    url: str | None = None
    title: str | None = None
    start: int | None = None
    """The first character of the span, counted from 0 within the part."""
    end: int | None = None
    """The first character after the span."""


class LogProbs(Struct, frozen=True, kw_only=True, tag="log_probs"):
    """Log probabilities of tokens, as OpenAI writes an entry of `logprobs.content`."""

    entries: tuple[Mapping[str, JsonValue], ...]


Note = Citation | LogProbs | RunResult


class PartNote(Struct, frozen=True, kw_only=True, tag="part_note"):
    """A citation, log probabilities or a tool result on an open part."""

    index: int
    note: Note


class UsageReported(Struct, frozen=True, kw_only=True, tag="usage_reported"):
    """Cumulative usage; for each class of tokens, the last report counts."""

    usage: Usage
    raw: JsonValue = None
    """The provider's own usage object."""
    service_tier: str | None = None
    """The service tier, if the provider sends it after `Started`; replaces the tier in
    `Started`.
    """


class Output(Struct, frozen=True, kw_only=True, tag="output"):
    """Pieces of the result of work other than chat, in order; each is JSON or audio bytes."""

    pieces: tuple[bytes, ...]


class Partial(Struct, frozen=True, kw_only=True, tag="partial"):
    """A preview of a later `Output`: words of a transcript, or a low-resolution image."""

    piece: bytes
    """JSON text."""


class UnknownFields(Struct, frozen=True, kw_only=True, tag="unknown_fields"):
    """The unknown fields of a provider's frame, or a whole frame of unknown type.

    The event comes before the frame's other events. Only renderers of the same format read it.
    """

    wire_format: str
    """The format's name in the table of providers."""
    place: str
    """The type of the frame; empty in a format whose frames have no type."""
    fields: JsonObject
    """A tree of fields, as in `core.unknown_fields`; the whole frame if the frame is unknown."""
    is_frame: bool = False
    """True if the frame itself is unknown."""


class Ended(Struct, frozen=True, kw_only=True, tag="ended"):
    """The answer is complete; `raw_finish` is the provider's own finish reason."""

    finish: Finish
    raw_finish: str | None = None
    stop_sequence: str | None = None
    """The caller's stop sequence that ended the answer, if the provider reports it."""
    prompt_blocked: bool = False
    """True if the provider refused the prompt, so that none of the text comes from a model."""
    paused: bool = False
    """True if the provider paused its own tools, and continues once its answer is sent back."""


StreamEvent = (
    Started
    | PartStart
    | PartDelta
    | PartNote
    | PartEnd
    | UsageReported
    | Output
    | Partial
    | UnknownFields
    | Ended
)

# The number of a choice, and an event of that choice.
Chosen = tuple[int, StreamEvent]
# Events on their way from the decoders to the sink; their deltas may still be grouped.
Grouped = StreamEvent | PartDeltas
ChosenGroup = tuple[int, Grouped]


def ungroup(events: Iterable[ChosenGroup]) -> Iterator[Chosen]:
    """Yield the events one by one, with groups of deltas split up."""
    for choice, event in events:
        if isinstance(event, PartDeltas):
            for text in event.texts:
                yield choice, PartDelta(index=event.index, text=text)
        else:
            yield choice, event


# Types of parts that may be open several at a time.
_SIDE_BY_SIDE: Final = frozenset({ToolCall, ServerToolRun})


class GrammarError(Exception):
    """Raised for a stream that breaks the grammar, which is a defect in its codec."""


class StreamGrammar:
    """Checks one stream, and raises GrammarError for the first event that breaks the grammar."""

    def __init__(self) -> None:
        self._started = False
        self._ended = False
        self._parts = 0
        self._open: dict[int, Part] = {}

    def accept(self, event: Grouped) -> None:
        """Check one event against the earlier events."""
        # Most events are deltas of an open part. A part is only open between `Started` and `Ended`,
        # so the other checks can be skipped.
        if isinstance(event, (PartDelta, PartDeltas)) and event.index in self._open:
            return
        if self._ended:
            raise GrammarError(f"{type(event).__name__} after the end")
        if isinstance(event, UnknownFields):
            return
        if self._started == isinstance(event, Started):
            raise GrammarError(f"{type(event).__name__} where a stream must start exactly once")
        match event:
            case Started():
                self._started = True
            case PartStart(index=index, part=part):
                if index != self._parts:
                    raise GrammarError(f"part {index} started, expected {self._parts}")
                kind = type(part)
                if kind not in _SIDE_BY_SIDE and kind in map(type, self._open.values()):
                    raise GrammarError(f"part {index} started while one of its kind is open")
                self._parts += 1
                self._open[index] = part
            case PartDelta(index=index) | PartDeltas(index=index):
                raise GrammarError(f"delta of part {index}, which is not open")
            case PartNote(index=index):
                if index not in self._open:
                    raise GrammarError(f"note on part {index}, which is not open")
            case PartEnd(index=index):
                if index not in self._open:
                    raise GrammarError(f"end of part {index}, which is not open")
                del self._open[index]
            case UsageReported() | Output() | Partial():
                pass
            case Ended():
                if self._open:
                    raise GrammarError(f"ended with open parts {sorted(self._open)}")
                self._ended = True
            case _:
                assert_never(event)
