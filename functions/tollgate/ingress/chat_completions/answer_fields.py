"""Renders fields that streamed and non-streamed answers share."""

from collections.abc import Mapping, Sequence

from pydantic_core import to_json

from tollgate.core.content import MadeImage, Provenance, Reasoning, ToolCall
from tollgate.core.events import Citation, LogProbs
from tollgate.core.json_value import JsonValue
from tollgate.core.reasoning_details import write_detail
from tollgate.core.signers import BOUND_TO_MODEL, GEMINI


def render_reasoning_detail(
    index: int, reasoning: Reasoning, *, model: str, text_length: int, calls: int, runs: int
) -> dict[str, JsonValue]:
    """Render an entry of `reasoning_details`, with its position in the answer.

    The format has separate lists for reasoning, calls and server tool runs, but signers check the
    position of reasoning. `after` therefore counts the text, calls and runs before the reasoning;
    it is omitted if there are none.
    """
    detail = write_detail(reasoning, index)
    if reasoning.provenance is not None and reasoning.provenance.signer in BOUND_TO_MODEL:
        detail["model"] = model
    if text_length or calls or runs:
        after: dict[str, JsonValue] = {"text": text_length, "calls": calls}
        detail["after"] = after | ({"runs": runs} if runs else {})
    return detail


def render_extra_content(provenance: Provenance | None) -> dict[str, JsonValue]:
    """Render `extra_content`, where Google's OpenAI-compatible API puts Gemini's signatures."""
    if provenance is None or provenance.signer != GEMINI or provenance.signature is None:
        return {}
    return {"extra_content": {"google": {"thought_signature": provenance.signature}}}


def render_image(image: MadeImage, index: int) -> dict[str, JsonValue]:
    """Render an entry for `images`, in OpenRouter's form.

    https://openrouter.ai/docs/features/multimodal/image-generation (2026-11-22)
    """
    return {
        "type": "image_url",
        "image_url": {"url": image.url},
        "index": index,
        **render_extra_content(image.provenance),
    }


def render_call(call: ToolCall, arguments: str) -> dict[str, JsonValue]:
    """Render an entry for `tool_calls`."""
    if call.is_text:
        custom: dict[str, JsonValue] = {"name": call.name, "input": arguments}
        return {"id": call.id, "type": "custom", "custom": custom}
    return {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": arguments},
    }


def render_annotation(citation: Citation, preceding: int) -> dict[str, JsonValue]:
    """Render an entry of `annotations`; `preceding` is the length of the text before this part.

    OpenAI's schema requires every field, so a missing URL becomes an empty string, and a missing
    range becomes an empty range at the start of the part.
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
    """Render an entry of `logprobs`, adding fields that clients require but servers may omit."""
    alternatives = entry.get("top_logprobs")
    entries: list[JsonValue] = alternatives if isinstance(alternatives, list) else []
    return {
        "token": entry.get("token", ""),
        "logprob": entry.get("logprob"),
        "bytes": entry.get("bytes"),
        "top_logprobs": [
            {"bytes": None, **alternative}
            for alternative in entries
            if isinstance(alternative, dict)
        ],
    }


def encode_log_probs(notes: Sequence[LogProbs], refusal_notes: Sequence[LogProbs]) -> bytes:
    """Return `logprobs` for text and for a refusal as JSON; each is null without notes."""
    return b'{"content":%b,"refusal":%b}' % (_encode_tokens(notes), _encode_tokens(refusal_notes))


def _encode_tokens(notes: Sequence[LogProbs]) -> bytes:
    """Return the tokens as JSON, encoded one by one (decision 231)."""
    if not notes:
        return b"null"
    tokens = [to_json(render_token(entry)) for note in notes for entry in note.entries]
    return b"[%b]" % b",".join(tokens)
