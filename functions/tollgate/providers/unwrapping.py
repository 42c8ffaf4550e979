"""Translation of the answer to an emulated request into the answer that the caller expects.

The requests are made by `shared/emulation.py`.
"""

from collections.abc import Iterator
from typing import assert_never

import pydantic_core
from msgspec.structs import replace
from pydantic import JsonValue

from tollgate.core.content import Text, ToolCall
from tollgate.core.events import (
    Ended,
    PartDelta,
    PartEnd,
    PartNote,
    PartStart,
    Started,
    StreamEvent,
    UsageReported,
)
from tollgate.providers.base import Codec, Decoder, Frame, Target
from tollgate.providers.shared.emulation import CHOICE, NOT_WRAPPED, OUTPUT_TOOL, Wrapping


def make_decoder(codec: Codec, target: Target, wrapping: Wrapping) -> Decoder:
    """Return a new decoder of one choice, which unwraps its answer if the request was emulated."""
    decoder = codec.decoder(target)
    return decoder if wrapping == NOT_WRAPPED else _Unwrapped(decoder, wrapping)


class _Unwrapped:
    """A decoder that unwraps its answer."""

    def __init__(self, decoder: Decoder, wrapping: Wrapping) -> None:
        self._decoder = decoder
        self._unwrapping = Unwrapping(wrapping)

    def feed(self, frame: Frame) -> Iterator[StreamEvent]:
        for event in self._decoder.feed(frame):
            yield from self._unwrapping.feed(event)

    def end(self) -> Iterator[StreamEvent]:
        for event in self._decoder.end():
            yield from self._unwrapping.feed(event)


class Unwrapping:
    """Translates the events of one stream into those that the caller expects."""

    def __init__(self, wrapping: Wrapping) -> None:
        self._tool = _ToolUnwrapping() if wrapping.tool else None
        self._choice = _ChoiceUnwrapping() if wrapping.choice else None

    def feed(self, event: StreamEvent) -> Iterator[StreamEvent]:
        """Yield the caller-visible events of one event of the emulated answer."""
        for unwrap in (event,) if self._tool is None else self._tool.feed(event):
            yield from (unwrap,) if self._choice is None else self._choice.feed(unwrap)


class _ToolUnwrapping:
    """Turns the call of OUTPUT_TOOL into text.

    Other text is withheld while the call may still come: a model that talks before it answers must
    not put its talk in front of the JSON. If no call came, the text is emitted at the end.
    """

    def __init__(self) -> None:
        self._parts = 0
        self._calls = False
        self._answer: int | None = None
        # The indices of the parts that were emitted; withheld and dropped parts have none.
        self._places: dict[int, int] = {}
        self._withheld: dict[int, list[str]] = {}

    def feed(self, event: StreamEvent) -> Iterator[StreamEvent]:
        match event:
            case Started() | UsageReported():
                yield event
            case PartStart():
                yield from self._start(event)
            case PartDelta(index=index, text=text):
                if index in self._withheld:
                    self._withheld[index].append(text)
                elif index in self._places:
                    yield replace(event, index=self._places[index])
            case PartNote(index=index):
                if index in self._places:
                    yield replace(event, index=self._places[index])
            case PartEnd(index=index):
                if index == self._answer:
                    yield PartEnd(index=self._places[index])
                elif index in self._places:
                    yield replace(event, index=self._places[index])
            case Ended():
                yield from self._emit_withheld()
                alone = self._answer is not None and not self._calls
                called = event.finish == "tool_calls"
                yield replace(event, finish="stop") if called and alone else event
            case _:
                assert_never(event)

    def _start(self, event: PartStart) -> Iterator[StreamEvent]:
        part = event.part
        if isinstance(part, ToolCall) and part.name == OUTPUT_TOOL:
            # Only the first answer counts: two would be no JSON.
            if self._answer is None:
                self._answer = event.index
                self._withheld.clear()
                yield self._placed(replace(event, part=Text(text="")))
        elif isinstance(part, Text):
            if self._answer is None:
                self._withheld[event.index] = []
        else:
            self._calls |= isinstance(part, ToolCall)
            yield self._placed(event)

    def _placed(self, event: PartStart) -> PartStart:
        self._places[event.index] = self._parts
        self._parts += 1
        return replace(event, index=self._places[event.index])

    def _emit_withheld(self) -> Iterator[StreamEvent]:
        for texts in self._withheld.values():
            yield PartStart(index=self._parts, part=Text(text=""))
            yield PartDelta(index=self._parts, text="".join(texts))
            yield PartEnd(index=self._parts)
            self._parts += 1


class _ChoiceUnwrapping:
    """Takes the choice out of the object around it, once that is whole."""

    def __init__(self) -> None:
        self._texts: dict[int, list[str]] = {}

    def feed(self, event: StreamEvent) -> Iterator[StreamEvent]:
        match event:
            case PartStart(index=index, part=Text()):
                self._texts[index] = []
                yield event
            case PartDelta(index=index, text=text) if index in self._texts:
                self._texts[index].append(text)
            case PartNote(index=index) if index in self._texts:
                # A note on the object says nothing of the choice within.
                pass
            case PartEnd(index=index) if index in self._texts:
                yield PartDelta(index=index, text=_choice("".join(self._texts[index])))
                yield event
            case _:
                yield event


def _choice(text: str) -> str:
    """Return the choice in an object; an answer that is no such object is returned as it is."""
    try:
        value: JsonValue = pydantic_core.from_json(text)
    except ValueError:
        return text
    if not isinstance(value, dict) or CHOICE not in value:
        return text
    chosen = value[CHOICE]
    return chosen if isinstance(chosen, str) else pydantic_core.to_json(chosen).decode()
