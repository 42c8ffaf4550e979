"""Synthetic frames of Anthropic's Messages API, and InvokeModel's wrapping of them."""

import base64
import json
from typing import Any

from tests.upstream import converse_events


def sse(event: dict[str, Any]) -> bytes:
    """An event as an SSE event."""
    return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()


def invoke_chunk(event: dict[str, Any]) -> bytes:
    """An event as Bedrock's InvokeModelWithResponseStream sends it."""
    inside = base64.b64encode(json.dumps(event).encode()).decode()
    return converse_events.event("chunk", {"bytes": inside, "p": "abcdef"})


def start(**usage: Any) -> dict[str, Any]:
    """The head of a message."""
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-1",
        "content": [],
        "stop_reason": None,
        "usage": {"input_tokens": 9, "output_tokens": 1, **usage},
    }
    return {"type": "message_start", "message": message}


def block(index: int, **content: Any) -> dict[str, Any]:
    """A block begins."""
    return {"type": "content_block_start", "index": index, "content_block": content}


def text(index: int = 0) -> dict[str, Any]:
    return block(index, type="text", text="")


def tool(index: int = 0, id_: str = "toolu_1", name: str = "weather") -> dict[str, Any]:
    return block(index, type="tool_use", id=id_, name=name, input={})


def delta(index: int, kind: str, **content: Any) -> dict[str, Any]:
    """A block goes on."""
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **content}}


def words(said: str, index: int = 0) -> dict[str, Any]:
    return delta(index, "text_delta", text=said)


def arguments(written: str, index: int = 0) -> dict[str, Any]:
    return delta(index, "input_json_delta", partial_json=written)


def block_stop(index: int = 0) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


def message_delta(reason: str | None = "end_turn", **usage: Any) -> dict[str, Any]:
    """Why the message is about to end."""
    return {
        "type": "message_delta",
        "delta": {"stop_reason": reason, "stop_sequence": None},
        "usage": {"output_tokens": 3, **usage},
    }


STOP = {"type": "message_stop"}
PING = {"type": "ping"}


def error(kind: str, message: str = "no") -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}}


def answer(*blocks: dict[str, Any], reason: str = "end_turn") -> list[dict[str, Any]]:
    """A whole answer around its blocks."""
    return [start(), *blocks, message_delta(reason), STOP]


def text_answer(*pieces: str) -> list[dict[str, Any]]:
    return answer(text(), *(words(piece) for piece in pieces), block_stop())
