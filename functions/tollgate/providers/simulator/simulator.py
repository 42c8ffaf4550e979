"""A simulated provider, which answers chat and legacy completions by fixed rules.

The name of the upstream model selects the rule for a generation. `echo` repeats the last user text
up to a stop sequence, inside an object if JSON is requested, and calls a tool only if the request
forces a call. `tools` calls the first tools of the request, `slow` echoes with pauses, and `read`
is like `echo`. `SIMULATED_WORK` has the models for other kinds of work. A suffix of the model names
a fault to simulate (`simulator.faults`). The simulator must never replace a real provider.
"""

import hashlib
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from itertools import islice
from typing import Final

import pydantic_core
from pydantic_core import ValidationError

from tollgate.core.clock import Clock
from tollgate.core.json_value import JsonValue
from tollgate.providers.ports.base import (
    Frame,
    ProviderRow,
    ReadyRequest,
    Timeouts,
    Transport,
    WireRequest,
)
from tollgate.providers.simulator.faults import (
    Faults,
    break_off,
    is_fault,
    pieces_before_drop,
    simulated_refusal,
)
from tollgate.providers.simulator.simulated_answer import SimulatedRequest, deltas, usage
from tollgate.providers.simulator.simulated_work import SIMULATED_WORK, SimulatedWork
from tollgate.providers.transports.authorization import ProviderServices

PAUSE_S: Final = 0.2
_SLOW: Final = "slow"
_CHAT_MODELS: Final = frozenset({"echo", "read", _SLOW, "tools"})


class Simulator:
    """Answers requests without a network."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._faults = Faults()

    async def make_ready(self, request: WireRequest, timeouts: Timeouts) -> ReadyRequest:
        return ReadyRequest(lambda: self.open(request, timeouts), lambda: None)

    @asynccontextmanager
    async def open(
        self, request: WireRequest, timeouts: Timeouts
    ) -> AsyncIterator[AsyncIterator[Sequence[Frame]]]:
        work = SIMULATED_WORK.get(request.path)
        name, _, fault = str(request.body.get("model")).partition(":")
        models, streams = (_CHAT_MODELS, True) if work is None else (work.models, work.streams)
        if name not in models or not is_fault(fault, streams=streams):
            raise simulated_refusal(404, "not_found_error")
        body = pydantic_core.to_json(request.body)
        content = b"\n".join((body, *(part.content for part in request.form)))
        digest = hashlib.sha256(content).hexdigest()
        await self._faults.fail_at_once(fault, digest)
        before_drop = pieces_before_drop(fault)
        try:
            if work is None:
                chunks = _chat_chunks(body, digest, before_drop)
            else:
                chunks = _work_chunks(work, request, body, before_drop)
        except ValidationError as invalid:
            raise simulated_refusal(400, "invalid_request_error") from invalid
        yield self._frames(chunks, pause_s=PAUSE_S if name == _SLOW else None)

    async def _frames(
        self, chunks: Iterator[bytes], *, pause_s: float | None
    ) -> AsyncIterator[Sequence[Frame]]:
        for number, chunk in enumerate(chunks):
            if pause_s is not None and number:
                await self._clock.sleep(pause_s)
            yield (Frame(data=chunk),)


def _chat_chunks(body: bytes, digest: str, before_drop: int | None) -> Iterator[bytes]:
    """Return the chunks of a generation; the last chunk of a dropped generation is missing."""
    answer = _Answer(SimulatedRequest.model_validate_json(body), digest)
    return answer.whole() if before_drop is None else islice(answer.unfinished(), before_drop)


def _work_chunks(
    work: SimulatedWork, request: WireRequest, body: bytes, before_drop: int | None
) -> Iterator[bytes]:
    """Return the pieces of an answer; a dropped stream ends early, or fails if it is raw audio."""
    chunks = work.answer(request, body)
    if before_drop is None or request.reply_bytes_max is not None:
        return chunks
    return break_off(chunks, before_drop) if request.is_raw else islice(chunks, before_drop)


class _Answer:
    """The frames of one answer."""

    def __init__(self, request: SimulatedRequest, digest: str) -> None:
        self._request = request
        name = request.model.partition(":")[0]
        self._completes = request.prompt is not None
        self._deltas, self._finish = deltas(
            request, call_id=f"call_{digest[:16]}", calls_unforced=name == "tools"
        )
        self._head: dict[str, JsonValue] = {
            "id": f"sim-{digest[:24]}",
            "object": "text_completion" if self._completes else "chat.completion.chunk",
            "created": 0,
            "model": request.model,
        }

    def unfinished(self) -> Iterator[bytes]:
        """Yield all frames except those for the finish reason, the usage and the end marker."""
        if not self._completes:
            yield self._choice({"role": "assistant", "content": ""})
        for delta in self._deltas:
            yield self._choice(delta)

    def whole(self) -> Iterator[bytes]:
        """Yield all frames."""
        yield from self.unfinished()
        yield self._choice({}, self._finish)
        yield self._chunk(choices=[], usage=usage(self._request, self._deltas))
        yield b"[DONE]"

    def _choice(self, delta: dict[str, JsonValue], finish: str | None = None) -> bytes:
        if self._completes:
            text = delta.get("content", "")
            return self._chunk(choices=[{"index": 0, "text": text, "finish_reason": finish}])
        return self._chunk(choices=[{"index": 0, "delta": delta, "finish_reason": finish}])

    def _chunk(self, **fields: JsonValue) -> bytes:
        return pydantic_core.to_json({**self._head, **fields})


def make_simulator(row: ProviderRow, services: ProviderServices) -> Transport:
    """Return the simulator as the transport of a row."""
    return Simulator(services.clock)
