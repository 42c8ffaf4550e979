"""The base class of output items, and the items for messages, calls and images."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Final

from pydantic_core import from_json, to_json
from typing_extensions import override

from tollgate.core.content import InlineMedia, MadeImage, Part, Provenance, Refusal, Text, ToolCall
from tollgate.core.events import Citation, LogProbs, Note
from tollgate.core.json_value import JsonValue
from tollgate.ingress.base import NamespacedName

Json = dict[str, JsonValue]
Event = tuple[str, bytes]
"""The type of an event, and its JSON content without outer braces."""

# OpenAI's value for an unknown log probability.
_UNSTATED: Final = -9_999.0
_TEXT_DELTA: Final = "response.output_text.delta"


class OutputItem(ABC):
    """An item of an answer, which yields the events for its parts."""

    comes_whole = False
    """True for an item that ends together with its only part and cannot be truncated."""

    def __init__(self, index: int, id_: str) -> None:
        self.index = index
        self.id = id_
        self.open_parts: set[int] = set()
        """The indices of parts that have not ended."""

    def takes(self, part: Part) -> bool:
        """Return True if `part`, the next part of the answer, belongs to this item."""
        return False

    def start(self, index: int, part: Part) -> Iterator[Event]:
        """Start a part, and yield the events for its start."""
        self.open_parts.add(index)
        return iter(())

    def grow(self, index: int, text: str) -> Iterator[Event]:
        """Add text to a part, and yield the events for the text."""
        return iter(())

    def note(self, index: int, note: Note) -> Iterator[Event]:
        """Add a note to a part, and yield the events for the note."""
        return iter(())

    def end(self, index: int, provenance: Provenance | None) -> None:
        """End a part."""
        self.open_parts.remove(index)

    @abstractmethod
    def close(self) -> Iterator[Event]:
        """Yield the events that end the item's content."""

    @abstractmethod
    def render(self, status: str) -> bytes:
        """Return the item with its content so far, as JSON."""

    def event(self, type_: str, rest: bytes = b"", **content: JsonValue) -> Event:
        """Return an event for this item; `type_` lacks the prefix `response.`.

        `rest` has further fields, encoded, after a comma.
        """
        located: Json = {"item_id": self.id, "output_index": self.index, **content}
        return f"response.{type_}", to_json(located)[1:-1] + rest

    def around(self, between: str, place: int, rest: bytes = b"") -> tuple[bytes, bytes]:
        """Return the constant bytes before and after the text of a delta."""
        head: Json = {"item_id": self.id, "output_index": self.index}
        if between:
            head[between] = place
        return to_json(head)[1:-1] + b',"delta":', rest


class _Piece:
    """The text or refusal in a message; several parts may contribute to one piece."""

    def __init__(self, *, refused: bool) -> None:
        self.refused = refused
        self.texts: list[str] = []
        self.length = 0
        self.annotations: list[JsonValue] = []
        self.log_probs: list[bytes] = []
        """Log probabilities, encoded one by one as they arrive, because encoding those of a long
        answer together would stop the event loop (decision 231)."""
        self.frame: tuple[bytes, bytes] = (b"", b"")

    def render(self) -> bytes:
        text = to_json("".join(self.texts))
        if self.refused:
            return b'{"type":"refusal","refusal":%b}' % text
        return b'{"type":"output_text","text":%b,"annotations":%b,"logprobs":[%b]}' % (
            text,
            to_json(self.annotations),
            b",".join(self.log_probs),
        )


class MessageItem(OutputItem):
    """A message with texts and refusals."""

    def __init__(self, index: int, id_: str) -> None:
        super().__init__(index, id_)
        self._pieces: list[_Piece] = []
        self._places: dict[int, tuple[int, int]] = {}
        """For each part, the index of its piece and the length of that piece before the part began.
        """

    @override
    def takes(self, part: Part) -> bool:
        return isinstance(part, Text | Refusal)

    @override
    def start(self, index: int, part: Part) -> Iterator[Event]:
        self.open_parts.add(index)
        refused = isinstance(part, Refusal)
        if not self._pieces or self._pieces[-1].refused is not refused:
            piece = _Piece(refused=refused)
            position = len(self._pieces)
            yield self._part_event("added", position, piece)
            piece.frame = self.around(
                "content_index", position, b"" if refused else b',"logprobs":[]'
            )
            self._pieces.append(piece)
        position = len(self._pieces) - 1
        self._places[index] = position, self._pieces[position].length

    @override
    def grow(self, index: int, text: str) -> Iterator[Event]:
        piece = self._pieces[self._places[index][0]]
        piece.texts.append(text)
        piece.length += len(text)
        type_ = "response.refusal.delta" if piece.refused else _TEXT_DELTA
        yield type_, to_json(text).join(piece.frame)

    @override
    def note(self, index: int, note: Note) -> Iterator[Event]:
        position, preceding = self._places[index]
        piece = self._pieces[position]
        if piece.refused:
            # OpenAI's format has no fields for notes on a refusal.
            return
        if isinstance(note, Citation):
            annotation = _annotation(note, preceding)
            number = len(piece.annotations)
            piece.annotations.append(annotation)
            yield self.event(
                "output_text.annotation.added",
                content_index=position,
                annotation_index=number,
                annotation=annotation,
            )
            return
        if isinstance(note, LogProbs):
            entries = [to_json(_log_prob(entry)) for entry in note.entries]
            piece.log_probs += entries
            log_probs = b',"logprobs":[%b]' % b",".join(entries)
            yield self.event("output_text.delta", log_probs, content_index=position, delta="")

    @override
    def close(self) -> Iterator[Event]:
        for position, piece in enumerate(self._pieces):
            text = "".join(piece.texts)
            if piece.refused:
                yield self.event("refusal.done", content_index=position, refusal=text)
            else:
                log_probs = b',"logprobs":[%b]' % b",".join(piece.log_probs)
                yield self.event("output_text.done", log_probs, content_index=position, text=text)
            yield self._part_event("done", position, piece)

    @override
    def render(self, status: str) -> bytes:
        head = {"type": "message", "id": self.id, "status": status, "role": "assistant"}
        pieces = () if status == "in_progress" else self._pieces
        content = b",".join([piece.render() for piece in pieces])
        return b'%b,"content":[%b]}' % (to_json(head)[:-1], content)

    def _part_event(self, stage: str, position: int, piece: _Piece) -> Event:
        part = b',"part":' + piece.render()
        return self.event(f"content_part.{stage}", part, content_index=position)


class CallItem(OutputItem):
    """A function call."""

    type = "function_call"
    field = "arguments"
    kind = "function_call_arguments"

    def __init__(
        self, index: int, id_: str, call: ToolCall, declared_name: NamespacedName | None
    ) -> None:
        super().__init__(index, id_)
        self._call = call
        self._spelled = declared_name
        self._texts: list[str] = []
        self._around = self.around("", 0)

    @property
    def _name(self) -> str:
        return self._spelled.name if self._spelled else self._call.name

    @override
    def grow(self, index: int, text: str) -> Iterator[Event]:
        self._texts.append(text)
        yield f"response.{self.kind}.delta", to_json(text).join(self._around)

    @override
    def close(self) -> Iterator[Event]:
        yield from self._complete()
        fields: Json = self._named() | {self.field: "".join(self._texts)}
        yield self.event(f"{self.kind}.done", b"", **fields)

    def _named(self) -> Json:
        return {"name": self._name}

    def _complete(self) -> Iterator[Event]:
        # Arguments must be valid JSON, so missing arguments become an empty object.
        if not "".join(self._texts).strip():
            yield from self.grow(0, "{}")

    @override
    def render(self, status: str) -> bytes:
        is_new = status == "in_progress"
        item: Json = {
            "type": self.type,
            "id": self.id,
            "status": status,
            "call_id": self._call.id,
            "name": self._name,
            self.field: "" if is_new else "".join(self._texts),
        }
        if self._spelled is not None:
            item["namespace"] = self._spelled.namespace
        return to_json(item)


class TextCallItem(CallItem):
    """A call of a tool with text input."""

    type = "custom_tool_call"
    field = "input"
    kind = "custom_tool_call_input"

    @override
    def _named(self) -> Json:
        return {}

    @override
    def _complete(self) -> Iterator[Event]:
        return iter(())


class ImageItem(OutputItem):
    """An image that the model generated, in the form of OpenAI's own tool."""

    comes_whole = True

    def __init__(self, index: int, id_: str, image: MadeImage) -> None:
        super().__init__(index, id_)
        self._image = image

    @override
    def close(self) -> Iterator[Event]:
        yield self.event("image_generation_call.completed")

    @override
    def render(self, status: str) -> bytes:
        source = self._image.source
        content = source.base64 if isinstance(source, InlineMedia) else source.url
        is_new = status == "in_progress"
        item: Json = {
            "type": "image_generation_call",
            "id": self.id,
            # An image is always complete, even in a truncated answer.
            "status": status if is_new else "completed",
            "result": None if is_new else content,
        }
        return to_json(item)


class OwnItem(OutputItem):
    """An item of a type that only its provider knows, as the provider sent it."""

    comes_whole = True

    def __init__(self, index: int, data: str) -> None:
        self._item: Json = from_json(data)
        super().__init__(index, str(self._item.get("id", "")))

    @override
    def end(self, index: int, provenance: Provenance | None) -> None:
        super().end(index, provenance)
        if provenance is not None and provenance.data:
            self._item = from_json(provenance.data)

    @override
    def close(self) -> Iterator[Event]:
        return iter(())

    @override
    def render(self, status: str) -> bytes:
        return to_json(self._item)


class CompactionItem(OutputItem):
    """An item that replaces the conversation before it."""

    comes_whole = True

    def __init__(self, index: int, id_: str, sealed: str) -> None:
        super().__init__(index, id_)
        self._sealed = sealed

    @override
    def close(self) -> Iterator[Event]:
        return iter(())

    @override
    def render(self, status: str) -> bytes:
        content = "" if status == "in_progress" else self._sealed
        return to_json({"type": "compaction", "id": self.id, "encrypted_content": content})


def _annotation(citation: Citation, preceding: int) -> Json:
    """Return an annotation with all the fields that OpenAI's schema requires."""
    start = preceding + (citation.start or 0)
    return {
        "type": "url_citation",
        "url": citation.url or "",
        "title": citation.title or citation.url or "",
        "start_index": start,
        "end_index": start if citation.end is None else preceding + citation.end,
    }


def _log_prob(entry: Mapping[str, JsonValue]) -> Json:
    top_logprobs = entry.get("top_logprobs")
    alternatives = top_logprobs if isinstance(top_logprobs, list) else []
    return {
        **_token(entry),
        "top_logprobs": [_token(token) for token in alternatives if isinstance(token, dict)],
    }


def _token(entry: Mapping[str, JsonValue]) -> Json:
    token = str(entry.get("token", ""))
    token_bytes, probability = entry.get("bytes"), entry.get("logprob")
    return {
        "token": token,
        "logprob": _UNSTATED if probability is None else probability,
        "bytes": [*token.encode()] if token_bytes is None else token_bytes,
    }
