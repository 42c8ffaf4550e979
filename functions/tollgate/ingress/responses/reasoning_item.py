"""Output items for reasoning; OpenAI's reasoning is left unchanged, and other signers' data is
packed.
"""

from collections.abc import Iterator

from pydantic_core import to_json
from typing_extensions import override

from tollgate.core.content import Part, Provenance, Reasoning
from tollgate.core.signers import OPENAI
from tollgate.ingress.responses.output_items import Event, Json, OutputItem
from tollgate.ingress.shared.signatures import Packed, pack


def owns(provenance: Provenance | None) -> bool:
    """Return True if OpenAI signed the reasoning; its item then keeps OpenAI's id."""
    return (
        provenance is not None
        and provenance.signer == OPENAI
        and bool(provenance.id)
        and (provenance.data is not None or provenance.is_summary)
    )


def proof_of_call(call_id: str, provenance: Provenance) -> str:
    """Return the field `encrypted_content` with the signer's data for a call."""
    return pack(Packed(provenance=provenance, call_id=call_id))


class ReasoningItem(OutputItem):
    """A reasoning item: a summary or text for each part, and the signer's data."""

    def __init__(self, index: int, id_: str) -> None:
        super().__init__(index, id_)
        self.sealed: str | None = None
        self._provenance: Provenance | None = None
        self._summaries: dict[int, list[str]] = {}
        self._texts: dict[int, list[str]] = {}
        self._frames: dict[int, tuple[str, tuple[bytes, bytes]]] = {}
        self._is_summary = False
        self._has_data = False

    @override
    def takes(self, part: Part) -> bool:
        if not isinstance(part, Reasoning) or not owns(part.provenance) or self._has_data:
            return False
        own_provenance, new = self._provenance, part.provenance
        return own_provenance is not None and (own_provenance.signer, own_provenance.id) == (
            new and new.signer,
            new and new.id,
        )

    @override
    def start(self, index: int, part: Part) -> Iterator[Event]:
        self.open_parts.add(index)
        provenance = part.provenance if isinstance(part, Reasoning) else None
        self._is_summary = provenance is not None and provenance.is_summary
        self._keep(provenance)
        return iter(())

    @override
    def grow(self, index: int, text: str) -> Iterator[Event]:
        frame = self._frames.get(index)
        if frame is None:
            yield self._begin(index)
            frame = self._frames[index]
        type_, around = frame
        pieces = self._summaries if index in self._summaries else self._texts
        pieces[index].append(text)
        yield type_, to_json(text).join(around)

    @override
    def end(self, index: int, provenance: Provenance | None) -> None:
        self.open_parts.remove(index)
        self._keep(provenance)

    @override
    def close(self) -> Iterator[Event]:
        for position, pieces in enumerate(self._summaries.values()):
            text = "".join(pieces)
            yield self.event("reasoning_summary_text.done", summary_index=position, text=text)
            part = _summary(text)
            yield self.event("reasoning_summary_part.done", summary_index=position, part=part)
        for position, pieces in enumerate(self._texts.values()):
            text = "".join(pieces)
            yield self.event("reasoning_text.done", content_index=position, text=text)
            yield self.event("content_part.done", content_index=position, part=_thought(text))
        if self._provenance is not None:
            self.sealed = self._seal(self._provenance)

    @override
    def render(self, status: str) -> bytes:
        is_new = status == "in_progress"
        item: Json = {
            "type": "reasoning",
            "id": self.id,
            "status": status,
            "summary": [] if is_new else [_summary("".join(t)) for t in self._summaries.values()],
        }
        if self._texts and not is_new:
            item["content"] = [_thought("".join(text)) for text in self._texts.values()]
        if self.sealed is not None and not is_new:
            item["encrypted_content"] = self.sealed
        return to_json(item)

    def _begin(self, index: int) -> Event:
        if self._is_summary:
            position = len(self._summaries)
            self._summaries[index] = []
            around = self.around("summary_index", position)
            self._frames[index] = "response.reasoning_summary_text.delta", around
            return self.event(
                "reasoning_summary_part.added", summary_index=position, part=_summary("")
            )
        position = len(self._texts)
        self._texts[index] = []
        around = self.around("content_index", position)
        self._frames[index] = "response.reasoning_text.delta", around
        return self.event("content_part.added", content_index=position, part=_thought(""))

    def _keep(self, provenance: Provenance | None) -> None:
        if provenance is not None:
            self._provenance = provenance
            self._has_data = provenance.data is not None

    def _seal(self, provenance: Provenance) -> str:
        """Return the encrypted content: OpenAI's unchanged content, or the packed data of another
        signer.
        """
        if provenance.data and provenance == Provenance(
            signer=OPENAI, id=self.id, data=provenance.data
        ):
            return provenance.data
        return pack(Packed(provenance=provenance))


def _summary(text: str) -> Json:
    return {"type": "summary_text", "text": text}


def _thought(text: str) -> Json:
    return {"type": "reasoning_text", "text": text}
