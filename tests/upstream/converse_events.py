"""Synthetic frames of Bedrock ConverseStream, and the framing that carries them.

Framing: https://smithy.io/2.0/aws/amazon-eventstream.html (seen 2026-11-21): lengths, a CRC of
the prelude, string headers (type 7), payload, a CRC of everything before it.
"""

import json
import struct
import zlib
from collections.abc import Iterable, Mapping
from typing import Any

HEADERS = {"content-type": "application/vnd.amazon.eventstream"}


def message(headers: Mapping[str, str], payload: bytes) -> bytes:
    """One message of an event stream."""
    head = b"".join(
        struct.pack("!B", len(name))
        + name.encode()
        + struct.pack("!BH", 7, len(value.encode()))
        + value.encode()
        for name, value in headers.items()
    )
    prelude = struct.pack("!II", 16 + len(head) + len(payload), len(head))
    prelude += struct.pack("!I", zlib.crc32(prelude))
    body = prelude + head + payload
    return body + struct.pack("!I", zlib.crc32(body))


def event(kind: str, payload: object) -> bytes:
    """A normal event."""
    headers = {
        ":event-type": kind,
        ":content-type": "application/json",
        ":message-type": "event",
    }
    return message(headers, json.dumps(payload).encode())


def exception(kind: str, text: str) -> bytes:
    """An exception after the stream had begun."""
    headers = {
        ":exception-type": kind,
        ":content-type": "application/json",
        ":message-type": "exception",
    }
    return message(headers, json.dumps({"message": text}).encode())


def message_start() -> bytes:
    return event("messageStart", {"role": "assistant", "p": "abcdef"})


def text_delta(text: str, block: int = 0) -> bytes:
    return event(
        "contentBlockDelta",
        {"contentBlockIndex": block, "delta": {"text": text}, "p": "abc"},
    )


def reasoning_delta(block: int = 0, **delta: str) -> bytes:
    """`text`, `signature` or `redactedContent` of a reasoning block."""
    return event(
        "contentBlockDelta",
        {"contentBlockIndex": block, "delta": {"reasoningContent": delta}},
    )


def tool_start(block: int, id_: str, name: str) -> bytes:
    return event(
        "contentBlockStart",
        {"contentBlockIndex": block, "start": {"toolUse": {"toolUseId": id_, "name": name}}},
    )


def tool_delta(block: int, text: str) -> bytes:
    return event(
        "contentBlockDelta",
        {"contentBlockIndex": block, "delta": {"toolUse": {"input": text}}},
    )


def block_stop(block: int = 0) -> bytes:
    return event("contentBlockStop", {"contentBlockIndex": block, "p": "ab"})


def message_stop(reason: str = "end_turn") -> bytes:
    return event("messageStop", {"stopReason": reason, "p": "abcd"})


def metadata(input_tokens: int = 9, output_tokens: int = 3, **cache: Any) -> bytes:
    counted = [value for value in cache.values() if isinstance(value, int)]
    usage = {
        "inputTokens": input_tokens,
        "outputTokens": output_tokens,
        "totalTokens": input_tokens + output_tokens + sum(counted),
        **cache,
    }
    return event("metadata", {"usage": usage, "metrics": {"latencyMs": 1}})


def text_stream(words: Iterable[str] = ("Hello", " world")) -> list[bytes]:
    """A whole answer in text."""
    return [
        message_start(),
        *(text_delta(word) for word in words),
        block_stop(),
        message_stop(),
        metadata(),
    ]
