"""Finds the fields of chunks that the gateway does not know."""

from collections.abc import Collection, Iterator
from typing import Final

from pydantic_core import from_json

from tollgate.core.events import UnknownFields
from tollgate.core.json_value import JsonValue
from tollgate.providers.codecs.openai_chat.wire import (
    Choice,
    Chunk,
    Delta,
    FunctionDelta,
    ToolCallDelta,
)

# Fields that the decoder reads, fields that the gateway writes itself, and padding that hides a
# chunk's length: platform.openai.com/docs/api-reference/chat (2026-11-27).
_OF_CHUNK: Final = frozenset(
    {*Chunk.__struct_fields__, "created", "obfuscation", "object", "provider"}
)
_OF_CHOICE: Final = frozenset({*Choice.__struct_fields__, "native_finish_reason"})
_OF_DELTA: Final = frozenset({*Delta.__struct_fields__, "role"})
_OF_CALL: Final = frozenset({*ToolCallDelta.__struct_fields__, "type"})
_OF_FUNCTION: Final = frozenset(FunctionDelta.__struct_fields__)

_Json = dict[str, JsonValue]


class UnknownOfChunks:
    """The unknown fields of one stream; fields that chunks repeat unchanged are passed on once."""

    def __init__(self) -> None:
        self._last: _Json = {}

    def read(self, data: bytes) -> Iterator[UnknownFields]:
        """Yield the unknown fields of a chunk that was decoded already."""
        try:
            chunk = from_json(data)
        except ValueError:
            # The decoder of chunks skips unknown values, and this parser cannot parse all of them.
            return
        if not isinstance(chunk, dict):
            return
        tree = _unknown(chunk, _OF_CHUNK)
        choices = chunk.get("choices")
        choice = _of_choice(choices[0]) if isinstance(choices, list) and choices else {}
        if choice:
            tree["choices"] = [choice]
        if tree and tree != self._last:
            self._last = tree
            yield UnknownFields(wire_format="openai_chat", place="", fields=tree)


def _of_choice(choice: JsonValue) -> _Json:
    if not isinstance(choice, dict):
        return {}
    tree = _unknown(choice, _OF_CHOICE)
    delta = choice.get("delta") or choice.get("message")
    if isinstance(delta, dict):
        inner = _unknown(delta, _OF_DELTA)
        pieces = delta.get("tool_calls")
        calls = [_of_call(piece) for piece in pieces] if isinstance(pieces, list) else []
        if any(calls):
            inner["tool_calls"] = [*calls]
        if inner:
            tree["delta"] = inner
    return tree


def _of_call(piece: JsonValue) -> _Json:
    if not isinstance(piece, dict):
        return {}
    tree = _unknown(piece, _OF_CALL)
    function = piece.get("function")
    inner = _unknown(function, _OF_FUNCTION) if isinstance(function, dict) else {}
    if inner:
        tree["function"] = inner
    index = piece.get("index")
    # The frame contains the call's index, which identifies the call in a whole reply.
    return {"index": index, **tree} if tree and isinstance(index, int) else tree


def _unknown(fields: _Json, known: Collection[str]) -> _Json:
    return {
        name: value for name, value in fields.items() if name not in known and value is not None
    }
