"""How pieces of an answer are spelled in OpenAI's format, streamed or whole."""

from collections.abc import Iterable, Mapping

from pydantic import JsonValue

from tollgate.core.content import Opaque, ToolCall
from tollgate.core.events import Citation, LogProbs


def reasoning_detail(index: int, text: str, opaque: Opaque) -> dict[str, JsonValue]:
    """One of `reasoning_details`."""
    spelled: dict[str, JsonValue] = {"type": "reasoning.text", "index": index, "text": text}
    if opaque:
        spelled["opaque"] = dict(opaque)
    return spelled


def call(called: ToolCall, arguments: str) -> dict[str, JsonValue]:
    """One of `tool_calls`."""
    return {
        "id": called.id,
        "type": "function",
        "function": {"name": called.name, "arguments": arguments},
    }


def annotation(citation: Citation, said_before: int) -> dict[str, JsonValue]:
    """One of `annotations`, for a text that follows so many characters of other texts.

    OpenAI's schema wants every field: a source without an address has an empty one, a citation of
    nothing in particular is of the empty stretch at the start.
    """
    start = said_before + (citation.start or 0)
    return {
        "type": "url_citation",
        "url_citation": {
            "url": citation.url or "",
            "title": citation.title or citation.url or "",
            "start_index": start,
            "end_index": start if citation.end is None else said_before + citation.end,
        },
    }


def token(entry: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """An entry of `logprobs`, with the fields that servers leave out and clients read."""
    alternatives = entry.get("top_logprobs")
    listed: list[JsonValue] = alternatives if isinstance(alternatives, list) else []
    return {
        "token": entry.get("token", ""),
        "logprob": entry.get("logprob"),
        "bytes": entry.get("bytes"),
        "top_logprobs": [
            {"bytes": None, **alternative}
            for alternative in listed
            if isinstance(alternative, dict)
        ],
    }


def render_log_probs(noted: Iterable[LogProbs], *, refused: bool) -> dict[str, JsonValue]:
    """`logprobs` of text, or of a refusal."""
    tokens: list[JsonValue] = [token(entry) for note in noted for entry in note.entries]
    return {"content": None, "refusal": tokens} if refused else {"content": tokens, "refusal": None}
