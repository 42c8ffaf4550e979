"""Renders fields of an answer that streamed and whole replies share, in OpenAI's format."""

from collections.abc import Iterable, Mapping

from pydantic import JsonValue

from tollgate.core.content import Opaque, ToolCall
from tollgate.core.events import Citation, LogProbs


def render_reasoning_detail(index: int, text: str, opaque: Opaque) -> dict[str, JsonValue]:
    """Render an entry of `reasoning_details`."""
    detail: dict[str, JsonValue] = {"type": "reasoning.text", "index": index, "text": text}
    if opaque:
        detail["opaque"] = dict(opaque)
    return detail


def render_call(call: ToolCall, arguments: str) -> dict[str, JsonValue]:
    """Render an entry of `tool_calls`."""
    return {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": arguments},
    }


def render_annotation(citation: Citation, preceding: int) -> dict[str, JsonValue]:
    """Render an entry of `annotations`; `preceding` is the length of the text before its part.

    OpenAI's schema requires every field: a source without an address has an empty `url`, a citation
    without a stretch has the empty stretch at the start.
    """
    start = preceding + (citation.start or 0)
    return {
        "type": "url_citation",
        "url_citation": {
            "url": citation.url or "",
            "title": citation.title or citation.url or "",
            "start_index": start,
            "end_index": start if citation.end is None else preceding + citation.end,
        },
    }


def render_token(entry: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Render an entry of `logprobs`, with the fields that servers leave out and clients read."""
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
    """Render `logprobs` of text or of a refusal."""
    tokens: list[JsonValue] = [render_token(entry) for note in noted for entry in note.entries]
    return {"content": None, "refusal": tokens} if refused else {"content": tokens, "refusal": None}
