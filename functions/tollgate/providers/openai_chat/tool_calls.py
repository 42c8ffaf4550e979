"""Pieces of parallel tool calls put together, whatever a server leaves out or repeats.

OpenAI numbers its calls and names each once. Recorded departures: no index at all (Mistral,
Ollama), a whole call in one delta (xAI, Groq), the name repeated as an empty text (Mistral), one
index for several calls, no id. Here a piece continues a call if its index or its id is known, or
if it has neither id nor name; else it begins one.
"""

import hashlib
from collections.abc import Iterator

from msgspec import Struct
from pydantic import JsonValue

from tollgate.core.content import Opaque, ToolCall
from tollgate.core.events import PartDelta, PartEnd, PartStart, StreamEvent
from tollgate.providers.openai_chat.wire import ToolCallDelta


class _OpenCall(Struct):
    part: int
    stated_id: str | None
    has_arguments: bool = False
    extra: dict[str, JsonValue] | None = None


class OrphanPiece(Exception):
    """A piece belongs to no call and does not name a new one."""


class ToolCalls:
    """The calls of one stream."""

    def __init__(self, provider: str) -> None:
        self._provider = provider
        self._calls: list[_OpenCall] = []
        self._by_index: dict[int, _OpenCall] = {}
        self._by_id: dict[str, _OpenCall] = {}

    def __len__(self) -> int:
        return len(self._calls)

    def feed(self, piece: ToolCallDelta, next_part: int, seed: bytes) -> Iterator[StreamEvent]:
        """The events of one piece; a new call becomes part `next_part`.

        `seed` makes the id of a call that came without one: the frame in which it came.
        """
        call = self._known(piece)
        if call is None:
            name = piece.function.name
            if not name:
                raise OrphanPiece
            call = self._opened(piece, next_part)
            id_ = piece.id or _made_id(seed, len(self._calls))
            yield PartStart(index=call.part, part=ToolCall(id=id_, name=name, arguments=""))
        call.extra = piece.extra_content or call.extra
        if text := piece.function.text:
            call.has_arguments = True
            yield PartDelta(index=call.part, text=text)

    def end(self) -> Iterator[StreamEvent]:
        """Close every call; a call without arguments has the empty object for them."""
        for call in self._calls:
            if not call.has_arguments:
                yield PartDelta(index=call.part, text="{}")
            # Google's OpenAI layer signs its calls there and wants the signature back.
            opaque: Opaque = {self._provider: {"extra_content": call.extra}} if call.extra else {}
            yield PartEnd(index=call.part, opaque=opaque)

    def _known(self, piece: ToolCallDelta) -> _OpenCall | None:
        names_itself = bool(piece.function.name)
        if piece.index is not None:
            call = self._by_index.get(piece.index)
            if call is None or not (names_itself and piece.id):
                return call
            # A server that gives every call the same index tells them apart by id.
            return call if piece.id == call.stated_id else None
        if piece.id:
            call = self._by_id.get(piece.id)
            return call if call or names_itself else self._last()
        return None if names_itself else self._last()

    def _last(self) -> _OpenCall | None:
        return self._calls[-1] if self._calls else None

    def _opened(self, piece: ToolCallDelta, next_part: int) -> _OpenCall:
        call = _OpenCall(part=next_part, stated_id=piece.id)
        self._calls.append(call)
        if piece.index is not None:
            self._by_index[piece.index] = call
        if piece.id:
            self._by_id[piece.id] = call
        return call


def _made_id(seed: bytes, number: int) -> str:
    digest = hashlib.blake2b(seed, digest_size=12, salt=number.to_bytes(8, "big"))
    return f"call_{digest.hexdigest()}"
