"""`reasoning_details`, put together from the pieces in which they are streamed.

OpenRouter and those that follow it (Snowflake, Vercel) carry signatures there; the details must
come back as they were. https://openrouter.ai/docs/use-cases/reasoning-tokens
"""

from collections.abc import Iterable, Mapping

from pydantic import JsonValue

from tollgate.core.content import Opaque

# The fields of a detail that a stream cuts into pieces.
_STREAMED = ("text", "summary", "data")
# What tells one detail from another.
_SAME = ("type", "index")


class ReasoningDetails:
    """The details of one part of reasoning."""

    def __init__(self) -> None:
        self._items: list[dict[str, JsonValue]] = []

    def add(self, piece: Mapping[str, JsonValue]) -> None:
        """Add a piece, which continues the last detail unless it belongs to another."""
        last = self._items[-1] if self._items else None
        if last is None or _is_other(last, piece):
            self._items.append(dict(piece))
            return
        for key, value in piece.items():
            known = last.get(key)
            if key in _STREAMED and isinstance(known, str) and isinstance(value, str):
                last[key] = known + value
            elif value is not None:
                last[key] = value

    def opaque(self, provider: str) -> Opaque:
        """Return the details under the name of the provider, which wants them back."""
        items: list[JsonValue] = [*self._items]
        return {provider: {"reasoning_details": items}} if items else {}


def thought(pieces: Iterable[Mapping[str, JsonValue]]) -> str:
    """Return the text of the pieces."""
    texts = (piece.get("text") or piece.get("summary") for piece in pieces)
    return "".join(text for text in texts if isinstance(text, str))


def _is_other(last: Mapping[str, JsonValue], piece: Mapping[str, JsonValue]) -> bool:
    """Return whether a piece begins a detail: an id may come once, and a signature is the end."""
    ids = {last.get("id"), piece.get("id")} - {None}
    is_signed = bool(last.get("signature") and piece.get("text"))
    return is_signed or len(ids) > 1 or any(last.get(key) != piece.get(key) for key in _SAME)
