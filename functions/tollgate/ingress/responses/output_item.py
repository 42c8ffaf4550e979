"""The protocol of an output item, and the base class of its implementations."""

from collections.abc import Iterator
from typing import Protocol

from pydantic_core import to_json

from tollgate.core.content import Part, Provenance
from tollgate.core.events import Note
from tollgate.core.json_value import JsonValue

Json = dict[str, JsonValue]
# The type of an event, and its content without outer braces.
Event = tuple[str, bytes]


class OutputItem(Protocol):
    """One item of an answer; `open_parts` are the indices of its parts that have not ended.

    An item that `comes_whole` ends with its part, so it is never cut short.
    """

    index: int
    open_parts: set[int]
    comes_whole: bool

    def takes(self, part: Part) -> bool:
        """Return True if the next part belongs to this item."""

    def start(self, index: int, part: Part) -> Iterator[Event]:
        """Begin a part, and yield the events of its beginning."""

    def grow(self, index: int, text: str) -> Iterator[Event]:
        """Add text to a part, and yield the events for the text."""

    def note(self, index: int, note: Note) -> Iterator[Event]:
        """Add a note to a part, and yield the events for the note."""

    def end(self, index: int, provenance: Provenance | None) -> None:
        """End a part."""

    def close(self) -> Iterator[Event]:
        """Yield the events that end the pieces of the item."""

    def render(self, status: str) -> Json:
        """Return the item with its content so far."""


class ItemBase:
    """Fields and events that all items have."""

    comes_whole = False

    def __init__(self, index: int, id_: str) -> None:
        self.index = index
        self.id = id_
        self.open_parts: set[int] = set()

    def takes(self, part: Part) -> bool:
        return False

    def start(self, index: int, part: Part) -> Iterator[Event]:
        self.open_parts.add(index)
        return iter(())

    def note(self, index: int, note: Note) -> Iterator[Event]:
        return iter(())

    def end(self, index: int, provenance: Provenance | None) -> None:
        self.open_parts.remove(index)

    def event(self, type_: str, **content: JsonValue) -> Event:
        placed: Json = {"item_id": self.id, "output_index": self.index, **content}
        return f"response.{type_}", to_json(placed)[1:-1]

    def around(self, between: str, place: int, rest: bytes = b"") -> tuple[bytes, bytes]:
        """Return the constant bytes before and after the text of a delta."""
        head: Json = {"item_id": self.id, "output_index": self.index}
        if between:
            head[between] = place
        return to_json(head)[1:-1] + b',"delta":', rest
