"""Synthetic frames of a server that completes prompts, in the shapes of OpenAI's legacy format."""

from typing import Any


def chunk(
    text: str | None = None,
    *,
    finish: str | None = None,
    usage: dict[str, Any] | None = None,
    logprobs: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """A chunk with one choice, or with none if there is neither a text nor a finish."""
    choice = {"index": 0, "text": text or "", "logprobs": logprobs, "finish_reason": finish}
    return {
        "id": "cmpl-synthetic",
        "object": "text_completion",
        "created": 1,
        "model": "synthetic-1",
        "choices": [] if text is None and finish is None else [choice],
        "usage": usage,
    }
