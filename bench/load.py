"""Requests sent in a closed loop over bare sockets, and a check that each answer is complete."""

import asyncio
import json
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import accumulate

from bench.upstream import MARK


@dataclass(frozen=True, kw_only=True)
class Question:
    """A request that is sent many times."""

    path: str
    body: bytes
    marks: int
    """Number of content pieces, each with one MARK, in a complete answer."""
    key: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Headers apart from the key."""

    @classmethod
    def chat(
        cls,
        model: str,
        marks: int,
        *,
        stream: bool,
        prompt_bytes: int = 200,
        key: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> "Question":
        """Return a chat completion with a prompt of `prompt_bytes` bytes."""
        prompt = ("Please say hello in a friendly way. " * (prompt_bytes // 36 + 1))[:prompt_bytes]
        content: dict[str, object] = {
            "model": model,
            "messages": [
                {"role": "system", "content": "You are a helpful assistant."},
                {"role": "user", "content": prompt},
            ],
        }
        if stream:
            content |= {"stream": True, "stream_options": {"include_usage": True}}
        body = json.dumps(content).encode()
        return cls(
            path="/v1/chat/completions", body=body, marks=marks, key=key, headers=headers or {}
        )

    def to(self, path: str) -> "Question":
        """Return the same request for another path."""
        return replace(self, path=path)

    def request(self, port: int) -> bytes:
        """Return the bytes of one HTTP request."""
        headers = {"authorization": f"Bearer {self.key}", **self.headers}
        head = (
            f"POST {self.path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n"
            f"content-type: application/json\r\ncontent-length: {len(self.body)}\r\n"
        )
        head += "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        return f"{head}\r\n".encode() + self.body


@dataclass
class Answers:
    """Answers to one kind of request; times are in seconds from the request's last byte."""

    first_token_s: list[float] = field(default_factory=list)
    open_s: list[tuple[float, float]] = field(default_factory=list)
    """Times of first content and end of each answer, by the same clock."""

    @property
    def count(self) -> int:
        """The number of answers."""
        return len(self.first_token_s)

    @property
    def median_first_token_s(self) -> float:
        """The median time to the first content."""
        return statistics.median(self.first_token_s)

    @property
    def open_max(self) -> int:
        """The highest number of answers at a time that had begun but not ended."""
        changes = sorted(
            (at_s, change)
            for began_s, ended_s in self.open_s
            for at_s, change in ((began_s, 1), (ended_s, -1))
        )
        return max(accumulate(change for _, change in changes), default=0)


async def ask(
    port: int,
    question: Question,
    *,
    times: int,
    at_once: int = 1,
    opening: int | None = None,
    within_s: float = 120,
) -> Answers:
    """Send the request `times` times, `at_once` at a time, of which `opening` may wait for content.

    Raises RuntimeError for an incomplete answer or an error, and TimeoutError for a late end.
    """
    answers = Answers()
    left = iter(range(times))
    request = question.request(port)
    slots = asyncio.Semaphore(opening or at_once or 1)

    async def caller() -> None:
        if next(left, None) is None:
            return
        # Waiting for a slot comes before connecting, because a server closes silent connections.
        await slots.acquire()
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            while True:
                writer.write(request)
                sent_s = time.perf_counter()
                first_token_s = await _answer(reader, question.marks, slots.release)
                answers.first_token_s.append(first_token_s)
                answers.open_s.append((sent_s + first_token_s, time.perf_counter()))
                if next(left, None) is None:
                    return
                await slots.acquire()
        finally:
            writer.close()

    async with asyncio.timeout(within_s), asyncio.TaskGroup() as callers:
        for _ in range(at_once):
            callers.create_task(caller())
    return answers


async def _answer(
    reader: asyncio.StreamReader, marks: int, on_content: Callable[[], None]
) -> float:
    """Read one answer; call `on_content` at the first mark, and return the seconds until then."""
    start_s = time.perf_counter()
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    _, sized, length = head.partition(b"content-length:")
    left = int(length.partition(b"\r\n")[0]) if sized else None
    body = bytearray()
    first_token_s = None
    while left != len(body) and (left is not None or not body.endswith(b"\r\n0\r\n\r\n")):
        piece = await reader.read(65536)
        if not piece:
            break
        body += piece
        if first_token_s is None and MARK in body:
            first_token_s = time.perf_counter() - start_s
            on_content()
    if first_token_s is None or body.count(MARK) != marks or b" 200 " not in head[:16]:
        raise RuntimeError(f"not the expected answer: {head[:80]!r} {bytes(body[:600])!r}")
    return first_token_s
