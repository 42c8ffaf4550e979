"""Synthetic events of OpenAI's Responses API, in the shapes that its stream schema gives."""

import json
from typing import Any

from tests.upstream.openai_chunks import sse


def event(kind: str, **fields: Any) -> bytes:
    """One event of a stream."""
    return sse({"type": f"response.{kind}", "sequence_number": 0, **fields}, f"response.{kind}")


def usage(prompt: int = 9, output: int = 3, **details: int) -> dict[str, Any]:
    """Token counts; `cached` is part of the prompt, `reasoning` of the output."""
    return {
        "input_tokens": prompt,
        "input_tokens_details": {"cached_tokens": details.get("cached", 0)},
        "output_tokens": output,
        "output_tokens_details": {"reasoning_tokens": details.get("reasoning", 0)},
        "total_tokens": prompt + output,
    }


def response(*output: dict[str, Any], status: str = "completed", **fields: Any) -> dict[str, Any]:
    """A response as events and whole replies carry it."""
    return {
        "id": "resp_synthetic",
        "object": "response",
        "model": "synthetic-1",
        "status": status,
        "service_tier": "default",
        "output": list(output),
        "usage": usage(),
        "error": None,
        "incomplete_details": None,
        **fields,
    }


def created() -> bytes:
    return event("created", response=response(status="in_progress", usage=None))


def completed(*output: dict[str, Any], **fields: Any) -> bytes:
    return event("completed", response=response(*output, **fields))


def message(text: str) -> dict[str, Any]:
    content = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    return {"type": "message", "id": "msg_1", "role": "assistant", "content": [content]}


def call(arguments: str, id_: str = "call_1", name: str = "weather") -> dict[str, Any]:
    item = {"type": "function_call", "id": f"fc_{id_}", "call_id": id_, "name": name}
    return item | {"arguments": arguments, "status": "completed"}


def reasoning(*summary: str, encrypted: str | None = "gAAA") -> dict[str, Any]:
    texts = [{"type": "summary_text", "text": text} for text in summary]
    return {"type": "reasoning", "id": "rs_1", "summary": texts, "encrypted_content": encrypted}


def added(item: dict[str, Any], index: int = 0) -> bytes:
    return event("output_item.added", output_index=index, item=item)


def done(item: dict[str, Any], index: int = 0) -> bytes:
    return event("output_item.done", output_index=index, item=item)


def text_delta(text: str, index: int = 0, **fields: Any) -> bytes:
    return event("output_text.delta", output_index=index, content_index=0, delta=text, **fields)


def arguments_delta(text: str, index: int = 0) -> bytes:
    return event("function_call_arguments.delta", output_index=index, delta=text)


def summary_delta(text: str, index: int = 0, part: int = 0) -> bytes:
    return event("reasoning_summary_text.delta", output_index=index, summary_index=part, delta=text)


def text_stream(*words: str) -> list[bytes]:
    """A whole answer in text."""
    whole = message("".join(words))
    return [
        created(),
        event("in_progress", response=response(status="in_progress", usage=None)),
        added({"type": "message", "id": "msg_1", "role": "assistant", "content": []}),
        event("content_part.added", output_index=0, content_index=0, part={"type": "output_text"}),
        *(text_delta(word) for word in words),
        event("output_text.done", output_index=0, content_index=0, text="".join(words)),
        event("content_part.done", output_index=0, content_index=0, part={"type": "output_text"}),
        done(whole),
        completed(whole),
    ]


def whole(*output: dict[str, Any], **fields: Any) -> bytes:
    """A reply that was not streamed."""
    return json.dumps(response(*output, **fields)).encode()
