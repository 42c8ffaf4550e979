"""OpenRouter's `reasoning_details`, the format of signed reasoning in chat completions.

It is sent by clients, and by servers such as OpenRouter, Snowflake and Vercel:
https://openrouter.ai/docs/use-cases/reasoning-tokens (seen 2026-11-21). Each entry of the list is a
detail, and becomes one `Reasoning` part.
"""

from collections.abc import Mapping
from typing import Final

from tollgate.core.content import Provenance, Reasoning
from tollgate.core.json_value import JsonValue

Detail = Mapping[str, JsonValue]

_TEXT: Final = "reasoning.text"
_SUMMARY: Final = "reasoning.summary"
_ENCRYPTED: Final = "reasoning.encrypted"
# Fields of a detail that a stream sends in pieces.
_STREAMED: Final = ("text", "summary", "data")
# Fields that have the same value in all pieces of a detail.
_SAME: Final = ("type", "index")
_NOTHING_KNOWN: Final = Provenance(signer=None)


def read_detail(detail: Detail, signer: str | None = None) -> Reasoning:
    """Return a detail as reasoning; `signer` is used if the detail does not name a format."""
    text = text_of(detail)
    provenance = Provenance(
        signer=_text(detail, "format") or signer,
        signature=_text(detail, "signature"),
        data=_text(detail, "data"),
        id=_text(detail, "id"),
        is_summary=detail.get("type") == _SUMMARY,
        model=_text(detail, "model"),
    )
    return Reasoning(text=text, provenance=None if provenance == _NOTHING_KNOWN else provenance)


def text_of(detail: Detail) -> str:
    """Return the text of a detail, which summaries have in a different field."""
    return _text(detail, "text") or _text(detail, "summary") or ""


def write_detail(reasoning: Reasoning, index: int) -> dict[str, JsonValue]:
    """Return reasoning as one detail."""
    provenance, text = reasoning.provenance, reasoning.text
    if provenance is None:
        return {"type": _TEXT, "index": index, "text": text}
    shown: dict[str, JsonValue]
    if provenance.is_summary:
        shown = {"type": _SUMMARY, "index": index, "summary": text}
    elif provenance.data is not None and not text:
        shown = {"type": _ENCRYPTED, "index": index}
    else:
        shown = {"type": _TEXT, "index": index, "text": text}
    return shown | _proof(provenance)


def _proof(provenance: Provenance) -> dict[str, JsonValue]:
    stated: dict[str, JsonValue] = {
        "format": provenance.signer,
        "id": provenance.id,
        "signature": provenance.signature,
        "data": provenance.data,
    }
    return {name: value for name, value in stated.items() if value is not None}


class JoinedDetail:
    """Joins the streamed pieces of one detail; its text is joined once, at the end."""

    def __init__(self) -> None:
        self._fields: dict[str, JsonValue] = {}
        self._texts: dict[str, list[str]] = {}

    @property
    def is_empty(self) -> bool:
        """True before the first piece."""
        return not self._fields and not self._texts

    def is_continued_by(self, piece: Detail) -> bool:
        """Return whether a piece belongs to this detail rather than to the next one.

        A detail has a single id, type and index. A signature or data ends a detail, so any later
        text begins another one.
        """
        ids = {self._fields.get("id"), piece.get("id")} - {None}
        has_data = bool(self._texts.get("data") or self._fields.get("data"))
        is_over = has_data or bool(self._fields.get("signature") and text_of(piece))
        has_same_fields = all(self._fields.get(key) == piece.get(key) for key in _SAME)
        return not is_over and len(ids) <= 1 and has_same_fields

    def add(self, piece: Detail) -> None:
        """Add a piece: text is appended, and other fields replace earlier values."""
        for key, value in piece.items():
            if key in _STREAMED and isinstance(value, str):
                self._fields.pop(key, None)
                if value:
                    self._texts.setdefault(key, []).append(value)
            elif value is not None:
                self._texts.pop(key, None)
                self._fields[key] = value

    def join(self) -> Detail:
        """Return the detail that the pieces so far make up."""
        return {**self._fields, **{key: "".join(texts) for key, texts in self._texts.items()}}


def _text(detail: Detail, name: str) -> str | None:
    value = detail.get(name)
    return value or None if isinstance(value, str) else None
