"""The parts of an answer, by the place in the output that they come from."""

from collections.abc import Iterator

from msgspec import Struct
from pydantic import JsonValue

from tollgate.core.content import Opaque, Part, ToolCall
from tollgate.core.events import Citation, LogProbs, PartDelta, PartEnd, PartNote, PartStart
from tollgate.core.events import StreamEvent as Event
from tollgate.providers.openai_responses.wire import Annotation

# The number of an item and, of a message, that of a piece of its content.
Place = tuple[int, int]


class _Open(Struct):
    index: int
    kind: type[Part]
    has_text: bool = False


class Parts:
    """Knows what is open and what has been told, so that a final item adds only what is new."""

    def __init__(self) -> None:
        self.calls = False
        self._count = 0
        self._told: set[Place] = set()
        self._open: dict[Place, _Open] = {}

    def is_told(self, place: Place) -> bool:
        """Whether a part of this place was ever opened."""
        return place in self._told

    def is_open(self, place: Place) -> bool:
        """Whether a part of this place is open."""
        return place in self._open

    def has_text(self, place: Place) -> bool:
        """Whether the open part of this place has said anything."""
        return self._open[place].has_text

    def open(self, place: Place, part: Part) -> Iterator[Event]:
        """Open a part unless its place has one; of texts only one of a kind is open at a time."""
        if place in self._open:
            return
        kind = type(part)
        if kind is ToolCall:
            self.calls = True
        else:
            for other in [at for at, opened in self._open.items() if opened.kind is kind]:
                yield from self.close(other)
        self._open[place] = _Open(self._count, kind)
        self._told.add(place)
        self._count += 1
        yield PartStart(index=self._open[place].index, part=part)

    def add(self, place: Place, text: str | None) -> Iterator[Event]:
        """More text of an open part, or more of a call's arguments."""
        if text:
            self._open[place].has_text = True
            yield PartDelta(index=self._open[place].index, text=text)

    def note(self, place: Place, logprobs: list[dict[str, JsonValue]] | None) -> Iterator[Event]:
        """Log probabilities of an open text, which come without bytes while it is streamed."""
        if logprobs:
            entries = tuple(map(_entry, logprobs))
            yield PartNote(index=self._open[place].index, note=LogProbs(entries=entries))

    def cite(self, place: Place, annotation: Annotation) -> Iterator[Event]:
        """Where an open text comes from; files of the provider's own are nothing to a caller."""
        if annotation.type == "url_citation" and place in self._open:
            citation = Citation(
                url=annotation.url,
                title=annotation.title,
                start=annotation.start_index,
                end=annotation.end_index,
            )
            yield PartNote(index=self._open[place].index, note=citation)

    def close(self, place: Place, opaque: Opaque | None = None) -> Iterator[Event]:
        """Close a part if it is open; a call without arguments has the empty object for them."""
        opened = self._open.pop(place, None)
        if opened is not None:
            if opened.kind is ToolCall and not opened.has_text:
                yield PartDelta(index=opened.index, text="{}")
            yield PartEnd(index=opened.index, opaque=opaque or {})

    def close_all(self) -> Iterator[Event]:
        """Close what an answer left open that was cut short."""
        for place in list(self._open):
            yield from self.close(place)


def _entry(stated: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """An entry as chat completions have it, in which bytes are never left out."""
    others = stated.get("top_logprobs")
    return {
        "bytes": None,
        **stated,
        "top_logprobs": [
            {"bytes": None, **other}
            for other in (others if isinstance(others, list) else ())
            if isinstance(other, dict)
        ],
    }
