"""Encodes requests that need emulation, and undoes the emulation in their answers.

`shared/emulation.py` makes the emulated requests.
"""

from collections.abc import Iterable, Iterator
from typing import Protocol, assert_never

import pydantic_core
from msgspec.structs import replace

from tollgate.core.content import Text, ToolCall
from tollgate.core.events import (
    Ended,
    Output,
    PartDelta,
    PartEnd,
    Partial,
    PartNote,
    PartStart,
    Started,
    StreamEvent,
    UnknownFields,
    UsageReported,
)
from tollgate.core.json_value import JsonValue
from tollgate.core.request import GenerationRequest
from tollgate.providers.ports.base import Codec, Decoder, Frame, Target, WireRequest
from tollgate.providers.shared.emulation import (
    CHOICE,
    NOT_WRAPPED,
    OUTPUT_TOOL,
    TEXT,
    Wrapping,
    has_text_tools,
    replace_text_tools,
)


def encode_request(codec: Codec, request: GenerationRequest, target: Target) -> WireRequest:
    """Encode one request; functions emulate free-text tools for a server without them."""
    is_native = codec.has_text_tools and target.dialect.text_tools
    if is_native or not has_text_tools(request):
        return codec.encode(request, target)
    plain, replaced = replace_text_tools(request)
    wire = codec.encode(plain, target)
    return replace(wire, wrapping=replace(wire.wrapping, text_tools=replaced))


def make_decoder(codec: Codec, target: Target, wrapping: Wrapping) -> Decoder:
    """Return a new decoder for one choice, which undoes the emulation of the request."""
    decoder = codec.decoder(target)
    return decoder if wrapping == NOT_WRAPPED else _Unwrapped(decoder, wrapping)


class _Unwrapped:
    """A decoder that undoes the emulation of its answer."""

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
    """Translates the events of an emulated answer into the events for the caller."""

    def __init__(self, wrapping: Wrapping) -> None:
        stages: list[_Stage] = []
        if wrapping.tool:
            stages.append(_ToolUnwrapping())
        if wrapping.choice:
            stages.append(_ChoiceUnwrapping())
        if wrapping.text_tools:
            stages.append(_TextToolUnwrapping(wrapping.text_tools))
        self._stages = tuple(stages)

    def feed(self, event: StreamEvent) -> Iterable[StreamEvent]:
        """Return the events for the caller that replace one event of the emulated answer."""
        events: Iterable[StreamEvent] = (event,)
        for stage in self._stages:
            events = [unwrapped for wrapped in events for unwrapped in stage.feed(wrapped)]
        return events


class _Stage(Protocol):
    """A step that undoes one kind of emulation."""

    def feed(self, event: StreamEvent) -> Iterator[StreamEvent]:
        """Yield the events for the caller that replace one event of the emulated answer."""


class _ToolUnwrapping:
    """Replaces the call of OUTPUT_TOOL with a text.

    The caller must get no text before the JSON in the call, so other text is withheld while a call
    may still come. Without a call, the withheld text is emitted at the end.
    """

    def __init__(self) -> None:
        self._parts = 0
        self._calls = False
        self._answer: int | None = None
        # The index that the caller sees for each emitted part, by the part's index in the emulated
        # answer.
        self._places: dict[int, int] = {}
        self._withheld: dict[int, list[str]] = {}

    def feed(self, event: StreamEvent) -> Iterator[StreamEvent]:
        match event:
            case Started() | UsageReported() | Output() | Partial() | UnknownFields():
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
            # Any further calls are dropped, because two JSON texts in a row are not valid JSON.
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
    """Replaces an object with the choice in its only field, once the object is complete."""

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
                # Citations and log probabilities of the object are dropped, because they do not
                # apply to the choice.
                pass
            case PartEnd(index=index) if index in self._texts:
                yield PartDelta(index=index, text=_choice("".join(self._texts[index])))
                yield event
            case _:
                yield event


class _TextToolUnwrapping:
    """Replaces the arguments of a call with the free text in them, once they are complete."""

    def __init__(self, names: frozenset[str]) -> None:
        self._names = names
        self._objects: dict[int, list[str]] = {}

    def feed(self, event: StreamEvent) -> Iterator[StreamEvent]:
        match event:
            case PartStart(index=index, part=ToolCall(name=name) as call) if name in self._names:
                self._objects[index] = []
                yield replace(event, part=replace(call, is_text=True))
            case PartDelta(index=index, text=text) if index in self._objects:
                self._objects[index].append(text)
            case PartEnd(index=index) if index in self._objects:
                yield PartDelta(index=index, text=_input("".join(self._objects[index])))
                yield event
            case _:
                yield event


def _input(arguments: str) -> str:
    """Return the free text in arguments; return arguments of any other shape unchanged."""
    try:
        value: JsonValue = pydantic_core.from_json(arguments)
    except ValueError:
        return arguments
    text = value.get(TEXT) if isinstance(value, dict) else None
    return text if isinstance(text, str) else arguments


def _choice(text: str) -> str:
    """Return the choice in an object; return an answer of any other shape unchanged."""
    try:
        value: JsonValue = pydantic_core.from_json(text)
    except ValueError:
        return text
    if not isinstance(value, dict) or CHOICE not in value:
        return text
    chosen = value[CHOICE]
    return chosen if isinstance(chosen, str) else pydantic_core.to_json(chosen).decode()
