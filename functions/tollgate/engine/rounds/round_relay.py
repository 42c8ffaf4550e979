"""Merges the events of several rounds into one answer, without calls to server tools."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

from msgspec.structs import replace

from tollgate.core.content import ServerToolRun, Text, ToolCall
from tollgate.core.events import (
    ChosenGroup,
    Citation,
    Ended,
    PartDelta,
    PartEnd,
    PartNote,
    PartStart,
    Started,
    StreamEvent,
    UsageReported,
    ungroup,
)
from tollgate.core.request import AssistantContent
from tollgate.core.response import Fold, GenerationResponse
from tollgate.core.server_tools import Source
from tollgate.core.usage import Usage
from tollgate.engine.meter import Meter
from tollgate.engine.replies.sink import EventSink
from tollgate.engine.rounds.citations import find_citations, sources_by_url
from tollgate.engine.usage.coverage import Coverage, deliver


class CoverEnded(Exception):
    """Raised when the held money does not cover more of the answer."""


class OneAnswer:
    """The answer as the caller sees it; part numbers continue from round to round."""

    def __init__(self, sink: EventSink, coverage: Coverage, meter: Meter) -> None:
        self.meter = meter
        self._sink = sink
        self._coverage = coverage
        self._parts = 0
        self._sources: dict[str, Source] = {}
        self.is_started = False
        self.usage = Usage()
        """Usage of the finished rounds."""

    def next_index(self) -> int:
        """Return the index for a new part."""
        self._parts += 1
        return self._parts - 1

    async def send(self, events: Iterable[StreamEvent]) -> None:
        """Send the events of one read; raise CoverEnded if the answer must end after them."""
        chosen = ((0, event) for event in events)
        if not await deliver(chosen, self._sink, self._coverage):
            raise CoverEnded

    def add_sources(self, sources: Iterable[Source]) -> None:
        """Add pages that later text may cite; of several pages with the same URL, the first with a
        title is used.
        """
        titled = {key: source for key, source in self._sources.items() if source.title}
        self._sources = {**self._sources, **sources_by_url(sources), **titled}

    def cite(self, text: str) -> Iterable[Citation]:
        """Return the citations in a complete text."""
        return find_citations(text, self._sources) if self._sources else ()


class RoundRelay:
    """Relays the events of one round; `is_own` says whether the gateway runs the tool
    with a name.
    """

    def __init__(self, answer: OneAnswer, is_own: Callable[[str], bool]) -> None:
        self._answer = answer
        self._is_own = is_own
        self._fold = Fold()
        # Index of each part in the answer; None for a call to a server tool.
        self._indexes: list[int | None] = []
        self._texts: dict[int, list[str]] = {}
        self.is_paused = False
        """True if the provider has paused, and continues when its answer is sent back."""

    def show(self, events: Iterable[ChosenGroup]) -> Iterator[StreamEvent]:
        """Yield the events of one read that the caller gets, after metering each."""
        for _, event in ungroup(events):
            yield from self._show_event(event)

    def _show_event(self, event: StreamEvent) -> Iterator[StreamEvent]:
        self._fold.accept(event)
        meter = self._answer.meter
        match event:
            case Started() if self._answer.is_started:
                meter.observe_unseen(event)
            case Started():
                self._answer.is_started = True
                yield self._metered(event, event)
            case Ended(paused=paused):
                self.is_paused = paused
                # For the caller, the answer does not end before the last round.
                meter.observe_unseen(event)
            case UsageReported(usage=usage):
                total = self._answer.usage.plus(usage)
                yield self._metered(event, replace(event, usage=total))
            case PartStart(index=place, part=part):
                is_own = isinstance(part, ToolCall) and self._is_own(part.name)
                self._indexes.append(None if is_own else self._answer.next_index())
                if isinstance(part, Text):
                    self._texts[place] = []
                yield from self._show_part(event)
            case PartDelta(index=place, text=text):
                if place in self._texts:
                    self._texts[place].append(text)
                yield from self._show_part(event)
            case PartNote():
                yield from self._show_part(event)
            case PartEnd(index=place):
                yield from self._cite(place)
                yield from self._show_part(event)
            case _:
                yield self._metered(event, event)

    @property
    def response(self) -> GenerationResponse:
        """The complete response of the finished round."""
        return self._fold.response()

    @property
    def own_calls(self) -> tuple[ToolCall, ...]:
        """Calls to server tools, in order."""
        return tuple(
            part
            for part, index in zip(self._fold.parts, self._indexes, strict=True)
            if isinstance(part, ToolCall) and index is None
        )

    @property
    def has_callers_calls(self) -> bool:
        """True if the round also has calls to the caller's tools."""
        return any(
            isinstance(part, ToolCall) and index is not None
            for part, index in zip(self._fold.parts, self._indexes, strict=True)
        )

    def repeat(self, own_calls: Sequence[ToolCall]) -> tuple[AssistantContent, ...]:
        """Return the round's content for later prompts; `own_calls` are its calls to
        server tools.
        """
        content: list[AssistantContent] = []
        replaced = iter(own_calls)
        for part, index in zip(self._fold.parts, self._indexes, strict=True):
            if index is None:
                content += islice(replaced, 1)
            elif not isinstance(part, ServerToolRun) and part != Text(text=""):
                content.append(part)
        return tuple(content)

    def _cite(self, place: int) -> Iterator[StreamEvent]:
        text, index = self._texts.pop(place, None), self._indexes[place]
        if text is None or index is None:
            return
        for citation in self._answer.cite("".join(text)):
            yield PartNote(index=index, note=citation)

    def _show_part(
        self, event: PartStart | PartDelta | PartNote | PartEnd
    ) -> Iterator[StreamEvent]:
        index = self._indexes[event.index]
        if index is None:
            self._answer.meter.observe_unseen(event)
        else:
            yield self._metered(event, replace(event, index=index))

    def _metered(self, event: StreamEvent, shown_event: StreamEvent) -> StreamEvent:
        """Record an event in the meter, and return `shown_event`, which the caller gets instead."""
        self._answer.meter.observe(event)
        return shown_event
