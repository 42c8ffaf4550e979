"""The parts of an answer that is still streaming, and the events that begin and end them."""

import hashlib
from collections.abc import Callable, Hashable, Iterator
from typing import Generic, TypeVar

from msgspec import Struct

from tollgate.core.content import MadeImage, Part, Provenance, Refusal, SentMedia, ToolCall
from tollgate.core.events import (
    Citation,
    Finish,
    LogProbs,
    PartDelta,
    PartDeltas,
    PartEnd,
    PartNote,
    PartStart,
)
from tollgate.core.events import StreamEvent as Event

_NOT_BEGUN = -1


def make_call_id(prefix: str, seed: bytes, number: int) -> str:
    """Return an id for a call to which the server assigned none, from its frame and number."""
    digest = hashlib.blake2b(seed, digest_size=12, salt=number.to_bytes(8, "big"))
    return f"{prefix}_{digest.hexdigest()}"


class OpenPart(Struct, kw_only=True):
    """A part that has not ended; codecs that need more state for a part derive from this class."""

    part: Part
    """The part as it began, without text or arguments."""
    index: int = _NOT_BEGUN
    """The part's index in the answer."""
    length: int = 0
    """The number of characters of text or arguments so far."""
    provenance: Provenance | None = None
    """The provenance, if it is known only at the end of the part."""

    @property
    def has_begun(self) -> bool:
        """True once the part's first event was emitted; a block without text never emits one."""
        return self.index != _NOT_BEGUN

    def add(self, text: str) -> PartDelta:
        """Return the event for more text, or for more of a call's arguments."""
        self.length += len(text)
        return PartDelta(index=self.index, text=text)

    def add_together(self, texts: list[str]) -> PartDelta | PartDeltas:
        """Return the event for texts that arrived in one read."""
        if len(texts) == 1:
            return self.add(texts[0])
        self.length += sum(map(len, texts))
        return PartDeltas(index=self.index, texts=texts)

    def note(self, note: Citation | LogProbs) -> PartNote:
        """Return the event for a citation or log probabilities of the part."""
        return PartNote(index=self.index, note=note)

    def finish(self) -> Iterator[Event]:
        """Yield the events that end the part; a call without arguments gets an empty object."""
        if not self.length and isinstance(self.part, ToolCall):
            yield PartDelta(index=self.index, text="{}")
        yield PartEnd(index=self.index, provenance=self.provenance)


_Key = TypeVar("_Key", bound=Hashable)
_Open = TypeVar("_Open", bound=OpenPart)


class Parts(Generic[_Key, _Open]):
    """The parts of one answer; the provider's keys identify the open parts."""

    def __init__(self) -> None:
        # The number of parts that have begun is the index of the next part.
        self.count = 0
        self.has_calls = False
        self._open: dict[_Key, _Open] = {}
        # The dictionary's own method, which is faster than a wrapper and is called for every event.
        self.get: Callable[[_Key], _Open | None] = self._open.get
        """Return the open part with a key; None if no part with the key is open."""

    def hold(self, key: _Key, opened: _Open) -> Iterator[Event]:
        """Store a part that begins later, if at all.

        Only one text, one reasoning and one refusal may be open at a time, so an open part of the
        same kind is ended.
        """
        kind = type(opened.part)
        if kind is not ToolCall:
            for other in [
                place for place, opened_part in self._open.items() if type(opened_part.part) is kind
            ]:
                yield from self.close(other)
        self._open[key] = opened

    def begin(self, opened: _Open) -> PartStart:
        """Give a stored part the next index, and return its first event."""
        opened.index = self.count
        self.count += 1
        self.has_calls = self.has_calls or isinstance(opened.part, ToolCall)
        return PartStart(index=opened.index, part=opened.part)

    def open(self, key: _Key, opened: _Open) -> Iterator[Event]:
        """Store a part and begin it immediately."""
        yield from self.hold(key, opened)
        yield self.begin(opened)

    def close(self, key: _Key) -> Iterator[Event]:
        """End the part stored under this key, if the part is open."""
        opened = self._open.pop(key, None)
        if opened is not None and opened.has_begun:
            yield from opened.finish()

    def close_all(self) -> Iterator[Event]:
        """End every open part, in the order in which they were opened."""
        for key in list(self._open):
            yield from self.close(key)

    def finish_of(self, stated: Finish) -> Finish:
        """Return the finish reason; if there are calls, `tool_calls` replaces `stop`."""
        return "tool_calls" if stated == "stop" and self.has_calls else stated

    def show(self, source: SentMedia, provenance: Provenance | None = None) -> Iterator[Event]:
        """Add an image, which always arrives complete."""
        index, self.count = self.count, self.count + 1
        yield PartStart(index=index, part=MadeImage(source=source, provenance=provenance))
        yield PartEnd(index=index)

    def refuse(self, words: str) -> Iterator[Event]:
        """Add a refusal that arrived complete."""
        opened = OpenPart(part=Refusal(text=""), index=self.count)
        self.count += 1
        yield PartStart(index=opened.index, part=opened.part)
        yield opened.add(words)
        yield from opened.finish()
