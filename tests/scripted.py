"""A provider that plays its part as written: what it says, how long it is silent, how it breaks."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from tests.upstream.openai_chunks import call_delta, chunk, usage
from tollgate.providers.ports.base import (
    Frame,
    ReadyRequest,
    Timeouts,
    UpstreamRefused,
    WireRequest,
)


@dataclass(frozen=True)
class Silence:
    """Nothing happens for a while."""

    duration_s: float


FOREVER = Silence(1e9)
# Several frames are those of one read.
Step = Frame | tuple[Frame, ...] | Silence | Exception
Answer = Sequence[Step]


class Scripted:
    """A transport that plays one answer a request, the last one again for all that follow.

    A refusal comes instead of a stream, every other failure inside it. `open_count` is how many
    connections are open now.
    """

    def __init__(self, *answers: Answer) -> None:
        self.requests: list[WireRequest] = []
        self.open_count = 0
        self._answers = answers

    async def make_ready(self, request: WireRequest, timeouts: Timeouts) -> ReadyRequest:
        return ReadyRequest(lambda: self.open(request, timeouts), lambda: None)

    @asynccontextmanager
    async def open(
        self, request: WireRequest, timeouts: Timeouts
    ) -> AsyncIterator[AsyncIterator[Sequence[Frame]]]:
        self.requests.append(request)
        answer = self._answers[min(len(self.requests), len(self._answers)) - 1]
        self.open_count += 1
        try:
            if any(isinstance(step, UpstreamRefused) for step in answer):
                async for _ in _played(answer):
                    raise AssertionError("a refusal has no frames")
            yield _played(answer)
        finally:
            self.open_count -= 1


async def _played(answer: Answer) -> AsyncIterator[Sequence[Frame]]:
    for step in answer:
        match step:
            case Silence(duration_s=duration_s):
                await asyncio.sleep(duration_s)
            case Exception():
                raise step
            case tuple():
                yield step
            case _:
                yield (step,)


def frame(payload: object) -> Frame:
    """One chunk of an OpenAI-like stream."""
    return Frame(data=json.dumps(payload).encode())


def says(*words: str) -> list[Step]:
    """The beginning of an answer: its role, then words."""
    role = frame(chunk({"role": "assistant", "content": ""}))
    return [role, *(frame(chunk({"content": word})) for word in words)]


def calls(name: str, arguments: str = "{}") -> list[Step]:
    """The beginning of an answer that calls a tool."""
    begun = call_delta(id_="call-1", name=name, arguments="", type_="function")
    return [
        frame(chunk({"role": "assistant", "content": None, "tool_calls": [begun]})),
        frame(chunk({"tool_calls": [call_delta(arguments=arguments)]})),
    ]


def counts(prompt: int = 10, completion: int = 2) -> Step:
    """What the provider says it has used."""
    return frame(chunk(usage=usage(prompt, completion)))


def ends(reason: str = "stop") -> list[Step]:
    """The rest of an answer: why it finishes, what it used, the end mark."""
    return [frame(chunk({}, finish=reason)), counts(), Frame(data=b"[DONE]")]


def answers(*words: str) -> list[Step]:
    """A whole answer: 10 tokens in, 2 out."""
    return [*says(*words), *ends()]


def refuses(status: int, *, code: str = "", retry_after: str | None = None) -> list[Step]:
    """An error status instead of an answer."""
    headers = {} if retry_after is None else {"retry-after": retry_after}
    body = json.dumps({"error": {"message": "sk-upstream-secret", "code": code}}).encode()
    return [UpstreamRefused(status, headers, body)]
