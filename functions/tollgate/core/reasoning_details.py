"""OpenRouter's `reasoning_details`, the form of signed reasoning in chat completions.

Clients send it, as do servers like OpenRouter, Snowflake and Vercel:
https://openrouter.ai/docs/use-cases/reasoning-tokens (seen 2026-11-21). Every detail is one part.
"""

from collections.abc import Mapping
from typing import Final

from tollgate.core.content import Provenance, Reasoning
from tollgate.core.json_value import JsonValue

Detail = Mapping[str, JsonValue]

_TEXT: Final = "reasoning.text"
_SUMMARY: Final = "reasoning.summary"
_ENCRYPTED: Final = "reasoning.encrypted"
# The fields of a detail that a stream cuts into pieces.
_STREAMED: Final = ("text", "summary", "data")
# Fields in which the pieces of one detail agree.
_SAME: Final = ("type", "index")
_NOTHING_KNOWN: Final = Provenance(signer=None)


def read_detail(detail: Detail, signer: str | None = None) -> Reasoning:
    """Return a detail as reasoning; `signer` signed it if it does not name its format."""
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
    """Return the text of a detail, which a summary has under a name of its own."""
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


def continues(last: Detail, piece: Detail) -> bool:
    """Return whether a piece continues a detail: an id comes once, a signature is the end."""
    ids = {last.get("id"), piece.get("id")} - {None}
    is_over = bool(last.get("data")) or bool(last.get("signature") and text_of(piece))
    return not is_over and len(ids) <= 1 and all(last.get(key) == piece.get(key) for key in _SAME)


def join_piece(last: Detail, piece: Detail) -> dict[str, JsonValue]:
    """Return a detail with the piece that continues it."""
    joined = dict(last)
    for key, value in piece.items():
        known = joined.get(key)
        if key in _STREAMED and isinstance(known, str) and isinstance(value, str):
            joined[key] = known + value
        elif value is not None:
            joined[key] = value
    return joined


def _text(detail: Detail, name: str) -> str | None:
    value = detail.get(name)
    return value or None if isinstance(value, str) else None
