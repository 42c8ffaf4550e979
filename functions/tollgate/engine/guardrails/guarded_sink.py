"""Delivers an answer in pieces, each only after the guardrails have approved it."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial

from msgspec.structs import replace

from tollgate.core.buffer_budget import Buffered
from tollgate.core.content import Part, Reasoning, Refusal, Text, ToolCall
from tollgate.core.errors import GatewayError
from tollgate.core.events import (
    ChosenGroup,
    Citation,
    Ended,
    Grouped,
    LogProbs,
    PartDelta,
    PartDeltas,
    PartEnd,
    PartNote,
    PartStart,
    Started,
    UnknownFields,
)
from tollgate.core.records.generation import GenerationRecord
from tollgate.engine.guardrails.input_screen import InputScreen
from tollgate.engine.guardrails.judging import AnswerRefused, Blocked, Judging
from tollgate.engine.guardrails.text_filters import TextFilter, feed_all, filters_for
from tollgate.engine.replies.sink import EventSink
from tollgate.ingress.base import ServedBy
from tollgate.stores.ports.base import Hold

_Place = tuple[int, int]


class _HeldText:
    """A text part of an answer; the caller gets only judged text."""

    def __init__(self, filters: list[TextFilter]) -> None:
        self.filters = filters
        self.citations: list[Citation] = []


class _HeldCall:
    """A tool call, whose arguments are judged as a whole because their JSON must stay valid."""

    def __init__(self, *, is_text: bool) -> None:
        self.is_text = is_text
        self.pieces: list[str] = []
        self.buffered = Buffered()


class GuardedSink:
    """A sink in front of another sink, which gets each piece of text only after its verdict.

    Log probabilities and unknown fields are left out, because they would reveal unjudged text.
    """

    def __init__(
        self, sink: EventSink, judging: Judging, screen: InputScreen, *, choices: int
    ) -> None:
        self._sink = sink
        self._judging = judging
        self._screen = screen
        self._held: dict[_Place, _HeldText | _HeldCall] = {}
        # The open parts of each choice that has started and not ended.
        self._open: dict[int, list[int]] = {}
        self._not_started = set(range(choices))

    def open(self, hold: Hold) -> AbstractAsyncContextManager[None]:
        """Open the other sink."""
        return self._sink.open(hold)

    async def begin(self, served: ServedBy) -> None:
        """Pass on the serving attempt once the input has its verdict."""
        await self._screen.settle()
        await self._sink.begin(served)

    async def send(self, events: Sequence[ChosenGroup]) -> None:
        """Pass on the approved events; raise AnswerRefused for refused text."""
        due: list[ChosenGroup] = []
        try:
            for choice, event in events:
                due += [(choice, each) async for each in self._accept(choice, event)]
        except Blocked as blocked:
            await self._sink.send(due)
            raise AnswerRefused from blocked
        if due:
            await self._sink.send(due)

    async def finish(self, record: GenerationRecord) -> None:
        """Finish the other sink."""
        await self._sink.finish(record)

    async def fail(self, error: GatewayError, record: GenerationRecord) -> None:
        """Fail the other sink."""
        await self._sink.fail(error, record)

    async def end_refused(self, note_end: Callable[[Ended, int], None]) -> None:
        """End all unfinished choices, without the withheld text."""
        ended = Ended(finish="content_filter")
        due: list[ChosenGroup] = []
        for choice in sorted(self._not_started):
            due.append((choice, Started()))
            self._open[choice] = []
        for choice, parts in self._open.items():
            due += [(choice, PartEnd(index=index)) for index in parts]
            due.append((choice, ended))
            note_end(ended, choice)
        await self._sink.send(due)

    async def _accept(self, choice: int, event: Grouped) -> AsyncIterator[Grouped]:
        """Yield the events that the caller gets after one event of the answer."""
        match event:
            case Started():
                self._not_started.discard(choice)
                self._open[choice] = []
                yield event
            case PartStart(index=index, part=part):
                self._open[choice].append(index)
                held = self._hold(part)
                if held is not None:
                    self._held[choice, index] = held
                yield event
            case PartDelta(index=index) | PartDeltas(index=index):
                async for each in self._feed((choice, index), event):
                    yield each
            case PartNote(index=index, note=LogProbs() | Citation() as note):
                held = self._held.get((choice, index))
                if not isinstance(held, _HeldText):
                    yield event
                elif isinstance(note, Citation):
                    held.citations.append(note)
            case PartEnd(index=index):
                self._open[choice].remove(index)
                async for each in self._end(choice, event):
                    yield each
            case Ended():
                del self._open[choice]
                yield event
            case UnknownFields() if self._judging.holds_answers:
                pass
            case _:
                yield event

    def _hold(self, part: Part) -> _HeldText | _HeldCall | None:
        """Return the holder of a part's text; None if no guardrail judges or changes the text."""
        match part:
            case Text() | Reasoning() | Refusal():
                filters = filters_for(self._judging, "output")
                return _HeldText(filters) if filters else None
            case ToolCall(is_text=is_text) if filters_for(self._judging, "tool_arguments"):
                return _HeldCall(is_text=is_text)
            case _:
                return None

    async def _feed(self, place: _Place, event: PartDelta | PartDeltas) -> AsyncIterator[Grouped]:
        held = self._held.get(place)
        text = event.text if isinstance(event, PartDelta) else "".join(event.texts)
        match held:
            case None:
                yield event
            case _HeldCall():
                held.buffered.take(len(text))
                held.pieces.append(text)
            case _HeldText():
                if released := await feed_all(held.filters, text):
                    yield PartDelta(index=event.index, text=released)

    async def _end(self, choice: int, event: PartEnd) -> AsyncIterator[Grouped]:
        index = event.index
        held = self._held.pop((choice, index), None)
        match held:
            case _HeldCall():
                arguments = await self._judging.judge_arguments(
                    "".join(held.pieces), is_text=held.is_text
                )
                held.buffered.release()
                if arguments:
                    yield PartDelta(index=index, text=arguments)
            case _HeldText():
                if released := await feed_all(held.filters, "", is_last=True):
                    yield PartDelta(index=index, text=released)
                has_masked = any(each.has_masked for each in held.filters)
                for citation in map(self._judge_citation, held.citations):
                    if has_masked or self._judging.masks:
                        citation = replace(citation, start=None, end=None)
                    yield PartNote(index=index, note=citation)
                if has_masked:
                    # A signature would not fit the masked text.
                    event = replace(event, provenance=None)
            case None:
                pass
        yield event

    def _judge_citation(self, citation: Citation) -> Citation:
        """Return a citation whose title and URL the patterns have judged; raise Blocked."""
        screen = partial(self._judging.screen, "output", of_request=False)
        return replace(
            citation,
            url=citation.url and screen(citation.url),
            title=citation.title and screen(citation.title),
        )
