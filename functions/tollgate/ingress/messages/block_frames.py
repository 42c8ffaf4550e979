"""Rendering of server-sent events for content blocks."""

from collections.abc import Iterator

from pydantic_core import to_json

from tollgate.core.json_value import JsonValue
from tollgate.core.signers import UNKNOWN_DELTAS

RenderedBlock = dict[str, JsonValue]


def frame(type_: str, content: RenderedBlock) -> bytes:
    """Return a server-sent event."""
    return b"event: %b\ndata: %b\n\n" % (type_.encode(), to_json({"type": type_, **content}))


def block_start(index: int, block: RenderedBlock) -> bytes:
    """Return the event that starts a block."""
    return frame("content_block_start", {"index": index, "content_block": block})


def block_delta(index: int, kind: bytes, field: bytes, text: str) -> bytes:
    """Return the event that adds text to a block."""
    return (
        b"event: content_block_delta\n"
        b'data: {"type":"content_block_delta","index":%d,"delta":{"type":"%b","%b":%b}}\n\n'
    ) % (index, kind, field, to_json(text))


def block_stop(index: int) -> bytes:
    """Return the event that ends a block."""
    return b'event: content_block_stop\ndata: {"type":"content_block_stop","index":%d}\n\n' % index


def whole_block(index: int, block: RenderedBlock) -> Iterator[bytes]:
    """Yield the events for a complete block; signature, input and a compaction's content are sent
    as deltas.
    """
    if block.get("type") == "compaction":
        stated = {name: block.get(name) for name in ("content", "encrypted_content")}
        yield block_start(index, {**block, **dict.fromkeys(stated)})
        compacted: RenderedBlock = {"type": "compaction_delta", **stated}
        yield frame("content_block_delta", {"index": index, "delta": compacted})
        yield block_stop(index)
        return
    signature, inputs = block.get("signature"), block.get("input")
    first_block = dict(block)
    deltas = first_block.pop(UNKNOWN_DELTAS, None)
    if signature is not None:
        first_block["signature"] = ""
    if inputs is not None:
        first_block["input"] = {}
    yield block_start(index, first_block)
    if signature:
        yield block_delta(index, b"signature_delta", b"signature", str(signature))
    if inputs:
        input_json = to_json(inputs).decode()
        yield block_delta(index, b"input_json_delta", b"partial_json", input_json)
    for delta in deltas if isinstance(deltas, list) else ():
        yield frame("content_block_delta", {"index": index, "delta": delta})
    yield block_stop(index)
