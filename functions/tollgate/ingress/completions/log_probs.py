"""Renders log probabilities in the legacy form: parallel lists instead of one object a token."""

from collections.abc import Iterable

from tollgate.core.events import LogProbs
from tollgate.core.json_value import JsonValue


def render_legacy_log_probs(notes: Iterable[LogProbs], offset: int) -> dict[str, JsonValue]:
    """Render `logprobs` of a text; `offset` is the number of characters before the first token."""
    tokens: list[JsonValue] = []
    values: list[JsonValue] = []
    alternatives: list[JsonValue] = []
    offsets: list[JsonValue] = []
    for note in notes:
        for entry in note.entries:
            token = entry.get("token")
            text = token if isinstance(token, str) else ""
            tokens.append(text)
            values.append(entry.get("logprob"))
            alternatives.append(_by_token(entry.get("top_logprobs")))
            offsets.append(offset)
            offset += len(text)
    return {
        "tokens": tokens,
        "token_logprobs": values,
        "top_logprobs": alternatives,
        "text_offset": offsets,
    }


def _by_token(listed: JsonValue) -> dict[str, JsonValue]:
    entries = listed if isinstance(listed, list) else []
    return {
        str(entry.get("token", "")): entry.get("logprob")
        for entry in entries
        if isinstance(entry, dict)
    }
