"""Renders an answer's items as stream events, and keeps the list of completed items.

Consecutive texts and refusals form one message. The last item stays open until the next item or the
end of the answer, because its status shows whether it was truncated.
https://platform.openai.com/docs/api-reference/responses-streaming (2026-11-22)
"""

from collections.abc import Iterator, Mapping
from typing import Final, assert_never

from msgspec.structs import replace
from pydantic_core import to_json

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
from tollgate.core.events import PartDelta, PartEnd, PartNote, PartStart
from tollgate.core.json_value import JsonObject
from tollgate.core.response import GenerationResponse, buffered_size
from tollgate.core.signers import OPENAI_ITEMS
from tollgate.ingress.base import NamespacedName
from tollgate.ingress.responses.output_items import (
    CallItem,
    CompactionItem,
    Event,
    ImageItem,
    MessageItem,
    OutputItem,
    OwnItem,
    TextCallItem,
)
from tollgate.ingress.responses.reasoning_item import ReasoningItem, owns, proof_of_call
from tollgate.ingress.responses.run_items import run_item

_FRAME: Final = b'event: %b\ndata: {"type":"%b",%b,"sequence_number":%d}\n\n'


def render_event(type_: str, content: bytes, number: int) -> bytes:
    """Return an event with its number; `content` is a JSON object without outer braces."""
    name = type_.encode()
    return _FRAME % (name, name, content, number)


class OutputWriter:
    """Renders the items of one answer, and numbers the events."""

    def __init__(
        self,
        generation_id: str,
        namespaces: Mapping[str, NamespacedName],
        *,
        is_stored: bool = False,
        first_number: int = 0,
    ) -> None:
        self._generation_id = generation_id
        self._is_stored = is_stored
        self._namespaces = namespaces
        self._items: list[OutputItem] = []
        self._of_part: dict[int, OutputItem] = {}
        self._calls: dict[int, ToolCall] = {}
        self._ids: set[str] = set()
        self._done: dict[int, bytes] = {}
        self._sequence = first_number

    @property
    def output(self) -> list[bytes]:
        """The items in order as JSON, each with its content so far."""
        return [
            self._done.get(index) or item.render("incomplete")
            for index, item in enumerate(self._items)
        ]

    def frame(self, type_: str, content: bytes) -> bytes:
        """Return an event with the next number; `content` is a JSON object without outer braces."""
        number, self._sequence = self._sequence, self._sequence + 1
        return render_event(type_, content, number)

    def pass_on(self, type_: str, fields: JsonObject) -> bytes:
        """Return a provider's event of unknown type with the next number and the item's index."""
        index = next((item.index for item in self._items if item.id == fields.get("item_id")), None)
        placed = {} if index is None else {"output_index": index}
        number, self._sequence = self._sequence, self._sequence + 1
        content = to_json({**fields, **placed, "sequence_number": number})
        return b"event: %b\ndata: %b\n\n" % (type_.encode(), content)

    def feed(self, event: PartStart | PartDelta | PartNote | PartEnd) -> bytes:
        """Return the frames for an event of a part."""
        return b"".join(self._feed(event))

    def _feed(self, event: PartStart | PartDelta | PartNote | PartEnd) -> Iterator[bytes]:
        match event:
            case PartDelta(index=index, text=text):
                if text:
                    take(buffered_size(event))
                    yield from self._frames(self._of_part[index].grow(index, text))
            case PartStart(index=index, part=part):
                yield from self._start(index, part)
            case PartNote(index=index, note=note):
                yield from self._frames(self._of_part[index].note(index, note))
            case PartEnd(index=index, provenance=provenance):
                take(buffered_size(event))
                if index in self._calls and provenance is not None:
                    self._calls[index] = replace(self._calls[index], provenance=provenance)
                item = self._of_part[index]
                item.end(index, provenance)
                yield from self._close_all_but_last()
                if item.comes_whole and item.index not in self._done:
                    yield from self._close(item, "completed")
            case _:
                assert_never(event)

    def finish(self, *, cut_short: bool) -> bytes:
        """Return the frames that end the open items."""
        frames = [*self._close_all_but_last()]
        if self._items and self._items[-1].index not in self._done:
            frames += self._close(self._items[-1], "incomplete" if cut_short else "completed")
        for call in self._calls.values():
            if call.provenance is not None:
                frames += self._prove(call.id, call.provenance)
        return b"".join(frames)

    def write_whole(self, response: GenerationResponse) -> list[bytes]:
        """Return the items of a complete answer as JSON; the answer is replayed as a stream."""
        for index, part in enumerate(response.parts):
            self.feed(PartStart(index=index, part=_emptied(part)))
            if not isinstance(part, MadeImage | ServerToolRun):
                text = part.arguments if isinstance(part, ToolCall) else part.text
                self.feed(PartDelta(index=index, text=text))
            for note in response.notes.get(index, ()):
                self.feed(PartNote(index=index, note=note))
            self.feed(PartEnd(index=index))
        self.finish(cut_short=response.finish == "length")
        return self.output

    def _start(self, index: int, part: Part) -> Iterator[bytes]:
        item = self._items[-1] if self._items else None
        if item is None or item.index in self._done or not item.takes(part):
            item = self._item(index, part)
            self._items.append(item)
            yield self._added(item)
        self._of_part[index] = item
        yield from self._frames(item.start(index, part))
        yield from self._close_all_but_last()

    def _item(self, index: int, part: Part) -> OutputItem:
        position = len(self._items)
        suffix = f"{self._generation_id}_{position}"
        match part:
            case Text() | Refusal():
                return MessageItem(position, f"msg_{suffix}")
            case Reasoning(provenance=Provenance(signer=signer, data=str(data))) if (
                signer == OPENAI_ITEMS
            ):
                return OwnItem(position, data)
            case Reasoning(provenance=Provenance(is_compaction=True, data=str(sealed))):
                return CompactionItem(position, f"cmp_{suffix}", sealed)
            case Reasoning(provenance=provenance):
                id_ = provenance.id if owns(provenance) and provenance else None
                # The id of a stored item must contain the generation id, which resolves references
                # to the item.
                if self._is_stored or not id_ or id_ in self._ids:
                    id_ = f"rs_{suffix}"
                self._ids.add(id_)
                return ReasoningItem(position, id_)
            case ToolCall():
                self._calls[index] = part
                declared_name = self._namespaces.get(part.name)
                if part.is_text:
                    return TextCallItem(position, f"ctc_{suffix}", part, declared_name)
                return CallItem(position, f"fc_{suffix}", part, declared_name)
            case MadeImage():
                return ImageItem(position, f"ig_{suffix}", part)
            case ServerToolRun():
                return run_item(position, suffix, part)
            case _:
                assert_never(part)

    def _added(self, item: OutputItem) -> bytes:
        return self._item_frame("added", item, item.render("in_progress"))

    def _close_all_but_last(self) -> Iterator[bytes]:
        for item in self._items[:-1]:
            if item.index not in self._done and not item.open_parts:
                yield from self._close(item, "completed")

    def _close(self, item: OutputItem, status: str) -> Iterator[bytes]:
        yield from self._frames(item.close())
        rendered = self._done[item.index] = item.render(status)
        yield self._item_frame("done", item, rendered)

    def _item_frame(self, stage: str, item: OutputItem, rendered: bytes) -> bytes:
        content = b'"output_index":%d,"item":%b' % (item.index, rendered)
        return self.frame(f"response.output_item.{stage}", content)

    def _prove(self, call_id: str, provenance: Provenance) -> Iterator[bytes]:
        """Yield the frames of a reasoning item with the signer's data for a call."""
        position = len(self._items)
        item = ReasoningItem(position, f"rs_{self._generation_id}_{position}")
        item.sealed = proof_of_call(call_id, provenance)
        self._items.append(item)
        yield self._added(item)
        yield from self._close(item, "completed")

    def _frames(self, events: Iterator[Event]) -> Iterator[bytes]:
        for type_, content in events:
            yield self.frame(type_, content)


def _emptied(part: Part) -> Part:
    if isinstance(part, MadeImage | ServerToolRun):
        return part
    if isinstance(part, ToolCall):
        return replace(part, arguments="")
    return replace(part, text="")
