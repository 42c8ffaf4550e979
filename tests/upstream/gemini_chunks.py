"""Synthetic chunks of Gemini's streamGenerateContent."""

import json
from typing import Any

SIGNATURE = "c2lnbmF0dXJl"


def chunk(*parts: dict[str, Any], finish: str | None = None, **fields: Any) -> dict[str, Any]:
    """One chunk; `fields` go to the candidate."""
    candidate: dict[str, Any] = {"index": 0, **fields}
    if parts:
        candidate["content"] = {"parts": list(parts), "role": "model"}
    if finish is not None:
        candidate["finishReason"] = finish
    return {"candidates": [candidate], "modelVersion": "gemini-9", "responseId": "resp-1"}


def usage(prompt: int = 9, candidates: int = 3, **more: int) -> dict[str, Any]:
    """What a chunk counts, with a total by Gemini's own rule."""
    beside = more.get("thoughtsTokenCount", 0) + more.get("toolUsePromptTokenCount", 0)
    return {
        "usageMetadata": {
            "promptTokenCount": prompt,
            "candidatesTokenCount": candidates,
            "totalTokenCount": prompt + candidates + beside,
            **more,
        }
    }


def text(value: str, **fields: Any) -> dict[str, Any]:
    return {"text": value, **fields}


def thought(value: str, **fields: Any) -> dict[str, Any]:
    return {"text": value, "thought": True, **fields}


def call(name: str | None = None, *, signature: str | None = None, **fields: Any) -> dict[str, Any]:
    """A call, or a piece of one."""
    part: dict[str, Any] = {"functionCall": {**({"name": name} if name else {}), **fields}}
    return part | ({"thoughtSignature": signature} if signature else {})


def piece(path: str, *, more: bool = True, **value: Any) -> dict[str, Any]:
    """A piece of the arguments of the call that is open."""
    return call(
        partialArgs=[{"jsonPath": path, **value}], **({"willContinue": True} if more else {})
    )


def sse(body: object) -> bytes:
    """One event, with the line ends that Google writes."""
    return b"data: " + json.dumps(body, ensure_ascii=False).encode() + b"\r\n\r\n"


def text_stream(*texts: str) -> list[dict[str, Any]]:
    """A whole answer of text."""
    chunks = [chunk(text(each)) for each in texts or ("Hello", " world")]
    return [*chunks, chunk(text(""), finish="STOP") | usage()]
