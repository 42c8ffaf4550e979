"""Synthetic frames of an OpenAI-like stream, in the shapes that OpenAI's chunk schema gives."""

import json
from collections.abc import Iterable
from typing import Any

DONE = b"data: [DONE]\n\n"
KEEP_ALIVE = b": keep-alive\n\n"


def sse(payload: object, event: str | None = None) -> bytes:
    """One SSE event."""
    name = f"event: {event}\n" if event else ""
    return f"{name}data: {json.dumps(payload)}\n\n".encode()


def chunk(
    delta: dict[str, Any] | None = None,
    *,
    finish: str | None = None,
    usage: dict[str, Any] | None = None,
    **extra: Any,
) -> dict[str, Any]:
    """A chunk with one choice, or with none if there is neither a delta nor a finish."""
    choices = (
        []
        if delta is None and finish is None
        else [{"index": 0, "delta": delta or {}, "finish_reason": finish}]
    )
    body = {
        "id": "chatcmpl-synthetic",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "synthetic-1",
        "choices": choices,
    }
    return body | ({"usage": usage} if usage is not None else {}) | extra


def call_delta(
    index: int | None = 0,
    *,
    id_: str | None = None,
    name: str | None = None,
    arguments: str | None = None,
    type_: str | None = None,
) -> dict[str, Any]:
    """One item of `delta.tool_calls`, without the fields that are None."""
    function = {"name": name, "arguments": arguments}
    item = {"index": index, "id": id_, "type": type_}
    return {key: value for key, value in item.items() if value is not None} | {
        "function": {key: value for key, value in function.items() if value is not None}
    }


def usage(
    prompt: int = 9, completion: int = 3, *, cached: int | None = None, reasoning: int | None = None
) -> dict[str, Any]:
    """A usage object whose total is prompt and completion."""
    details: dict[str, Any] = {}
    if cached is not None:
        details["prompt_tokens_details"] = {"cached_tokens": cached}
    if reasoning is not None:
        details["completion_tokens_details"] = {"reasoning_tokens": reasoning}
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        **details,
    }


def text_stream(words: Iterable[str] = ("Hello", " world"), *, finish: str = "stop") -> list[bytes]:
    """A whole answer: role, words, finish, usage, end mark."""
    return [
        sse(chunk({"role": "assistant", "content": ""})),
        *(sse(chunk({"content": word})) for word in words),
        sse(chunk({}, finish=finish)),
        sse(chunk(usage=usage())),
        DONE,
    ]


def tool_stream() -> list[bytes]:
    """An answer that calls `weather` for Paris."""
    return [
        sse(chunk({"role": "assistant", "content": None})),
        sse(
            chunk(
                {
                    "tool_calls": [
                        call_delta(0, id_="call_1", name="weather", arguments="", type_="function")
                    ]
                }
            )
        ),
        sse(chunk({"tool_calls": [call_delta(0, arguments='{"city":')]})),
        sse(chunk({"tool_calls": [call_delta(0, arguments='"Paris"}')]})),
        sse(chunk({}, finish="tool_calls")),
        sse(chunk(usage=usage())),
        DONE,
    ]
