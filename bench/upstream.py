"""Mock upstream: OpenAI-like SSE and Bedrock event streams, rendered once and sent on a schedule.

The requested model selects the answer, so that a gateway in between needs no side channel. Every
piece of content contains MARK once, whatever format a gateway renders.
"""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass

from tests.upstream import converse_events, openai_chunks
from typing_extensions import override

from bench.children import announce

MARK = b"tk~"
STREAM_CHUNKS = 200
SHORT_CHUNKS = 16
_SHORT_BYTES = 1024
_PAUSE_S = 0.005
# This pause is so long that thousands of streams are open before the first one ends.
_SLOW_PAUSE_S = 0.3


@dataclass(frozen=True)
class Script:
    """Pieces of a chunked body, and the pause before each piece except the first."""

    head: bytes
    pieces: Sequence[bytes]
    pause_s: float = 0.0


class Upstream(asyncio.Protocol):
    """One connection, which receives one request at a time."""

    def __init__(self) -> None:
        self._received = bytearray()
        # Length in bytes of the request being received; 0 until its head has arrived.
        self._due = 0
        self._playing: asyncio.Task[None] | None = None

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        if self._playing is not None:
            self._playing.cancel()

    @override
    def data_received(self, data: bytes) -> None:
        self._received += data
        if len(self._received) < self._due:
            return
        received = bytes(self._received)
        head, blank, rest = received.partition(b"\r\n\r\n")
        if not blank:
            return
        _, _, length = head.lower().partition(b"content-length:")
        size = int(length.partition(b"\r\n")[0])
        self._due = len(head) + len(blank) + size
        if len(rest) >= size:
            del self._received[: self._due]
            self._due = 0
            self._answer(_script(head, rest[:size]))

    def _answer(self, script: Script) -> None:
        if script.pause_s:
            self._playing = asyncio.create_task(self._play(script))
        else:
            self._transport.write(script.head + b"".join(script.pieces))

    async def _play(self, script: Script) -> None:
        self._transport.write(script.head)
        loop = asyncio.get_running_loop()
        due = loop.time()
        for piece in script.pieces:
            # Due times do not drift: a late piece shortens the next pause.
            await asyncio.sleep(due - loop.time())
            self._transport.write(piece)
            due += script.pause_s


def _script(head: bytes, body: bytes) -> Script:
    kind = "converse" if b"/converse" in head else "sse"
    if kind == "converse" and b"/converse-stream" not in head:
        return SCRIPTS["whole", "converse"]
    if kind == "sse" and b'"stream":true' not in body.replace(b": ", b":"):
        return SCRIPTS["whole", "sse"]
    naming = head if kind == "converse" else body
    return SCRIPTS[
        next(name for name in ("paced", "slow", "short", "quick") if name.encode() in naming), kind
    ]


def _chunked(content_type: str) -> bytes:
    return (
        f"HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\ntransfer-encoding: chunked\r\n\r\n"
    ).encode()


def _http_chunks(frames: Sequence[bytes]) -> list[bytes]:
    pieces = [b"%x\r\n%b\r\n" % (len(frame), frame) for frame in frames]
    return [*pieces[:-1], pieces[-1] + b"0\r\n\r\n"]


def _sse(words: Sequence[str]) -> Sequence[bytes]:
    used = openai_chunks.usage(42, len(words))
    chunks = [
        openai_chunks.chunk({"role": "assistant", "content": ""}),
        *(openai_chunks.chunk({"content": word}) for word in words),
        openai_chunks.chunk(finish="stop"),
        openai_chunks.chunk(usage=used),
    ]
    *frames, last = [openai_chunks.sse(chunk) for chunk in chunks]
    return _http_chunks([*frames, last + openai_chunks.DONE])


def _whole() -> Script:
    text = "".join(_words(SHORT_CHUNKS, _SHORT_BYTES))
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    whole = openai_chunks.chunk(usage=openai_chunks.usage(42, SHORT_CHUNKS), choices=[choice])
    return _json(openai_chunks.sse(whole).removeprefix(b"data: ").rstrip())


def _whole_converse() -> Script:
    text = "".join(_words(SHORT_CHUNKS, _SHORT_BYTES))
    reply = {
        "output": {"message": {"role": "assistant", "content": [{"text": text}]}},
        "stopReason": "end_turn",
        "usage": {
            "inputTokens": 42,
            "outputTokens": SHORT_CHUNKS,
            "totalTokens": 42 + SHORT_CHUNKS,
        },
        "metrics": {"latencyMs": 1},
    }
    return _json(json.dumps(reply).encode())


def _json(body: bytes) -> Script:
    head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}"
    return Script(head.encode() + b"\r\n\r\n", [body])


def _words(count: int, text_bytes: int) -> list[str]:
    # Words differ, because LiteLLM ends a stream that repeats one.
    return [
        f"{MARK.decode()}{number % 100:02}".ljust(text_bytes // count, "x")
        for number in range(count)
    ]


def _scripts() -> dict[tuple[str, str], Script]:
    event_stream = _chunked(converse_events.HEADERS["content-type"])
    sse = _chunked("text/event-stream")
    scripts = {("whole", "sse"): _whole(), ("whole", "converse"): _whole_converse()}
    for name, chunks, text_bytes, pause_s in (
        ("short", SHORT_CHUNKS, _SHORT_BYTES, 0.0),
        ("quick", STREAM_CHUNKS, _SHORT_BYTES, 0.0),
        ("paced", STREAM_CHUNKS, STREAM_CHUNKS * 24, _PAUSE_S),
        ("slow", STREAM_CHUNKS, STREAM_CHUNKS * 24, _SLOW_PAUSE_S),
    ):
        words = _words(chunks, text_bytes)
        scripts[name, "sse"] = Script(sse, _sse(words), pause_s)
        events = converse_events.text_stream(words)
        scripts[name, "converse"] = Script(event_stream, _http_chunks(events), pause_s)
    return scripts


SCRIPTS = _scripts()


async def main() -> None:
    """Serve until the process is ended."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Upstream, "127.0.0.1", 0, backlog=2048)
    announce(port=server.sockets[0].getsockname()[1])
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
