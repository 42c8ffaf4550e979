"""Requests, and replies to them that nobody wants to buffer."""

import json
import struct
import zlib
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from tests.painters import BY_PICTURE, OPENAI, painter
from tests.unit.ingress.media_samples import PNG
from tests.unit.routing.catalogs import endpoint, model, provider
from tests.upstream.messages_events import block, delta, sse, start
from tollgate.ingress.formats import CHAT_COMPLETIONS, EMBEDDINGS, IMAGE_GENERATIONS, SPEECH

MODEL: Final = "acme/hungry"
KB, MB = 1024, 1024 * 1024
URLS: Final = 16
EVENTS: Final = "text/event-stream"
JSON: Final = "application/json"
CHAT: Final = {"messages": [{"role": "user", "content": "Hi"}]}
_CONTENT: Final = {"type": "image_url"}


def _delta(**content: Any) -> bytes:
    choice = {"index": 0, "delta": content, "finish_reason": None}
    chunk = {"id": "c1", "object": "chat.completion.chunk", "choices": [choice]}
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


def _log_probs(text: str) -> bytes:
    likely = {"token": "one", "logprob": -0.5, "bytes": [111, 110, 101]}
    entries = [{**likely, "top_logprobs": [likely] * 20}]
    choice = {"index": 0, "delta": {"content": text}, "logprobs": {"content": entries}}
    return b"data: " + json.dumps({"id": "c1", "choices": [choice]}).encode() + b"\n\n"


def _frame_of(length: int) -> bytes:
    """The beginning of an AWS event-stream message of this length."""
    lengths = struct.pack("!II", length, 0)
    return lengths + struct.pack("!I", zlib.crc32(lengths))


def _chat_model(**facts: Any) -> dict[str, Any]:
    return model(endpoint("near", "m-1"), max_output=10**7, context=10**8, **facts)


def _work_model(kind: str, **facts: Any) -> dict[str, Any]:
    return {**model(endpoint("near", "m-1"), **facts), "kind": kind}


class Attack(Struct, frozen=True, kw_only=True):
    """A request, and a reply that begins with `lead` and goes on with `piece` again and again."""

    piece: bytes
    lead: bytes = b""
    tail: bytes = b""
    """The end of a reply that comes so far."""
    head: tuple[str, ...] = ()
    """Further lines of the reply's head."""
    content_type: str = EVENTS
    status: int = 200
    states_length: bool = False
    """True if the reply states its length instead of being chunked."""
    path: str = CHAT_COMPLETIONS.path
    body: Mapping[str, Any] = {}
    model: Mapping[str, Any] = field(default_factory=_chat_model)
    row: Mapping[str, Any] = field(default_factory=provider)
    code: str = "answer_too_large"
    """The error code at the end of the reply if the budget is below a megabyte."""
    is_billed: bool = True
    """True if the caller pays for a part."""


def pictured(count: int, url: str) -> dict[str, Any]:
    parts = [{**_CONTENT, "image_url": {"url": f"{url}/{at}.png"}} for at in range(count)]
    return {"messages": [{"role": "user", "content": parts}]}


_END: Final = (
    b'data: {"id":"c1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
    b"data: [DONE]\n\n"
)
_PICTURED: Final = Attack(
    lead=PNG,
    piece=b"\0" * 64 * KB,
    content_type="image/png",
    model=_chat_model(input=("text", "image")),
    row=provider(dialect={"fetches_urls": ()}),
    code="invalid_request",
    is_billed=False,
)
_VECTORS: Final = {
    "path": EMBEDDINGS.path,
    "body": {"input": ["a"] * 2_000},
    "model": _work_model("embedding", vectors={"dimensions": 65_536}, context=1_000_000),
    "row": provider(dialect={"embeddings": {"inputs_max": 2_048}}),
    "content_type": JSON,
}
ATTACKS: Final[Mapping[str, Attack]] = {
    "short texts": Attack(piece=_delta(content="word") * 200),
    "long texts": Attack(piece=_delta(content="x" * 100 * KB), tail=_END),
    "texts beyond Latin": Attack(piece=_delta(content="語" * 1_000) * 20),
    "a text in four choices": Attack(piece=_delta(content="word") * 200, body={"n": 4}),
    "arguments of a call": Attack(
        lead=_delta(
            tool_calls=[{"index": 0, "id": "c", "type": "function", "function": {"name": "f"}}]
        ),
        piece=_delta(tool_calls=[{"index": 0, "function": {"arguments": "x" * KB}}]) * 20,
        body={"tools": [{"type": "function", "function": {"name": "f"}}]},
        model=_chat_model(supports=("tools",)),
    ),
    "log probabilities": Attack(
        piece=_log_probs("one") * 20, body={"logprobs": True, "top_logprobs": 20}
    ),
    "text for a streamed response": Attack(
        piece=_delta(content="word") * 200, path="/v1/responses", body={"stream": True}, code=""
    ),
    "text for a streamed message": Attack(
        piece=_delta(content="word") * 200,
        path="/v1/messages",
        body={**CHAT, "stream": True, "max_tokens": 10**6},
    ),
    "reports before any text": Attack(
        piece=b'data: {"id":"c1","choices":[],"usage":{"prompt_tokens":1}}\n\n' * 200,
        is_billed=False,
    ),
    "a signature without an end": Attack(
        lead=b"".join(map(sse, (start(), block(0, type="thinking", thinking="")))),
        piece=sse(delta(0, "signature_delta", signature="x" * 100 * KB)),
        row=provider(codec="anthropic"),
        is_billed=False,
    ),
    "an event without an end": Attack(piece=b"x" * 64 * KB, lead=b"data: ", is_billed=False),
    "a message of 1 GB": Attack(
        piece=b"x" * 64 * KB,
        lead=_frame_of(2**30),
        content_type="application/vnd.amazon.eventstream",
        row={"codec": "bedrock", "transport": "bedrock_runtime", "region": "eu-west-1"},
        code="provider_unavailable",
        is_billed=False,
    ),
    "a whole chunked answer": Attack(piece=b" " * 64 * KB, content_type=JSON, is_billed=False),
    "a whole answer with its length": Attack(
        piece=b" " * 64 * KB,
        content_type=JSON,
        states_length=True,
        is_billed=False,
    ),
    "a compressed answer": Attack(
        piece=zlib.compress(b"x" * MB),
        head=("content-encoding: gzip",),
        code="provider_unavailable",
        is_billed=False,
    ),
    "an error without an end": Attack(
        piece=b"x" * 64 * KB,
        status=500,
        content_type=JSON,
        code="provider_unavailable",
        is_billed=False,
    ),
    "vectors": Attack(lead=b'{"data":[', piece=b"0.123456789," * 6_000, **_VECTORS),
    "vectors with their length": Attack(
        lead=b'{"data":[', piece=b"0.123456789," * 6_000, states_length=True, **_VECTORS
    ),
    "pictures": Attack(
        lead=b'{"data":[{"b64_json":"',
        piece=b"A" * 64 * KB,
        content_type=JSON,
        path=IMAGE_GENERATIONS.path,
        body={"prompt": "a cat", "n": 4},
        model=painter(BY_PICTURE),
        row=provider(dialect={"images": OPENAI}),
    ),
    "pictures by URL": _PICTURED,
    "pictures by URL with their length": replace(_PICTURED, states_length=True),
    "speech": Attack(
        piece=b"\x7f" * 64 * KB,
        content_type="audio/mpeg",
        path=SPEECH.path,
        body={"input": "Hello", "voice": "alloy"},
        model=_work_model("speech"),
        code="",
        is_billed=False,
    ),
}
