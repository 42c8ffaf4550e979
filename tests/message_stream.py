"""Reads a stream of Messages events as a careful client does."""

import json
from decimal import Decimal
from typing import Any

Json = dict[str, Any]

_GROWS = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
}


def events(stream: bytes) -> list[Json]:
    """The data of every event; each is named by its type, and nothing else is sent."""
    pieces = stream.split(b"\n\n")
    assert pieces.pop() == b""
    read = []
    for piece in pieces:
        name, data = piece.split(b"\n")
        event = json.loads(data.removeprefix(b"data: "), parse_float=Decimal)
        assert name == b"event: " + event["type"].encode()
        read.append(event)
    return read


def accumulated(stream: bytes) -> Json:
    """The whole message that a stream amounts to: one block is open at a time."""
    first, *rest = events(stream)
    assert first.pop("type") == "message_start"
    message: Json = first["message"]
    open_block: Json | None = None
    inputs: list[str] = []
    for event in rest:
        match event.pop("type"):
            case "content_block_start":
                assert open_block is None
                assert event["index"] == len(message["content"])
                open_block = event["content_block"]
                message["content"].append(open_block)
                inputs = []
            case "content_block_delta":
                assert open_block is not None
                assert event["index"] == len(message["content"]) - 1
                _grow(open_block, event["delta"], inputs)
            case "content_block_stop":
                assert open_block is not None
                assert event["index"] == len(message["content"]) - 1
                if open_block["type"] in ("tool_use", "server_tool_use"):
                    open_block["input"] = _input("".join(inputs))
                open_block = None
            case "message_delta":
                assert open_block is None
                message |= event.pop("delta") | event
            case "message_stop":
                assert event == {}
                assert rest[-1] is event
            case "ping":
                pass
            case unknown:
                raise AssertionError(unknown)
    return message


def _grow(block: Json, delta: Json, inputs: list[str]) -> None:
    kind = delta["type"]
    if kind == "input_json_delta":
        inputs.append(delta["partial_json"])
    elif kind == "citations_delta":
        block.setdefault("citations", []).append(delta["citation"])
    else:
        block[_GROWS[kind]] += delta[_GROWS[kind]]


def _input(text: str) -> Json:
    try:
        value = json.loads(text or "{}", parse_float=Decimal)
    except ValueError:
        return {"raw_arguments": text}
    return value if isinstance(value, dict) else {"raw_arguments": text}
