"""Assembles parallel tool calls from pieces, some of whose fields servers leave out or repeat.

OpenAI numbers its calls and sends each name once. Other servers send no index (Mistral, Ollama), a
whole call in one delta (xAI, Groq), an empty name with later pieces (Mistral), one index for
several calls, or no id. A piece continues a call if its index or its id is known, or if the piece
has neither id nor name. Any other piece begins a call.
"""

from collections.abc import Hashable, Iterator

from tollgate.core.content import Part, Provenance, ToolCall
from tollgate.core.events import StreamEvent
from tollgate.core.signers import GEMINI
from tollgate.providers.codecs.openai_chat.wire import ToolCallDelta
from tollgate.providers.shared.parts import OpenPart, Parts, make_call_id


class _OpenCall(OpenPart, kw_only=True):
    stated_id: str | None


class OrphanPiece(Exception):
    """Raised for a piece that belongs to no known call and does not name a new call."""


class ToolCalls:
    """The calls of one stream."""

    def __init__(self, parts: Parts[Hashable, OpenPart]) -> None:
        self._parts = parts
        self._calls: list[_OpenCall] = []
        self._by_index: dict[int, _OpenCall] = {}
        self._by_id: dict[str, _OpenCall] = {}

    def feed(self, piece: ToolCallDelta, seed: bytes) -> Iterator[StreamEvent]:
        """Yield the events of one piece; raise OrphanPiece if the piece belongs to no call.

        If the server sends no id for a call, the id is derived from `seed`, the piece's frame.
        """
        call = self._known(piece)
        if call is None:
            call = self._new(piece, seed)
            yield from self._parts.open(len(self._calls), call)
        elif not _is_signed(call.part):
            call.provenance = _provenance(piece) or call.provenance
        if text := piece.function.text:
            yield call.add(text)

    def _known(self, piece: ToolCallDelta) -> _OpenCall | None:
        names_itself = bool(piece.function.name)
        if piece.index is not None:
            call = self._by_index.get(piece.index)
            if call is None or not (names_itself and piece.id):
                return call
            # Some servers give every call the same number, so only the ids tell the calls apart.
            return call if piece.id == call.stated_id else None
        if piece.id:
            call = self._by_id.get(piece.id)
            return call if call or names_itself else self._last()
        return None if names_itself else self._last()

    def _last(self) -> _OpenCall | None:
        return self._calls[-1] if self._calls else None

    def _new(self, piece: ToolCallDelta, seed: bytes) -> _OpenCall:
        name = piece.function.name
        if not name:
            raise OrphanPiece
        id_ = piece.id or make_call_id("call", seed, len(self._calls) + 1)
        call = _OpenCall(
            part=ToolCall(id=id_, name=name, arguments="", provenance=_provenance(piece)),
            stated_id=piece.id,
        )
        self._calls.append(call)
        if piece.index is not None:
            self._by_index[piece.index] = call
        if piece.id:
            self._by_id[piece.id] = call
        return call


def _provenance(piece: ToolCallDelta) -> Provenance | None:
    """Return a call's signature, which must be sent back to Google's OpenAI-compatible API."""
    google = piece.extra_content and piece.extra_content.google
    if not google or not google.thought_signature:
        return None
    return Provenance(signer=GEMINI, signature=google.thought_signature)


def _is_signed(part: Part) -> bool:
    return isinstance(part, ToolCall) and part.provenance is not None
