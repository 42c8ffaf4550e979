"""A simulated provider: it answers requests of OpenAI's two older formats by fixed rules.

Requests for embeddings get vectors of their words (`embed`), documents are ranked by the words that
they have of the query (`rerank`), pictures are stripes (`image`), speech is a tone (`speech`), and
a recording is transcribed by its bytes (`transcribe`).

The upstream model names the rule: `echo` repeats the last user text up to a stop text, in an object
where JSON is requested, and calls a tool only if that is forced; `tools` calls the first tools
offered, `slow` echoes with pauses. A suffix is a fault to
simulate: `:429`, `:529`, `:timeout`, `:drop-after-N` and `:500-once`, which fails the first try of
every body. It must never stand in for a real provider.
"""

import asyncio
import hashlib
import re
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import islice
from typing import Final

import pydantic_core
from pydantic_core import ValidationError

from tollgate.core.clock import Clock
from tollgate.core.errors import ErrorCode, UpstreamError
from tollgate.core.json_value import JsonValue
from tollgate.providers.ports.base import (
    Frame,
    ProviderRow,
    ReadyRequest,
    Timeouts,
    Transport,
    UpstreamRefused,
    WireRequest,
)
from tollgate.providers.simulator import simulated_pictures
from tollgate.providers.simulator.simulated_answer import SimulatedRequest, deltas, usage
from tollgate.providers.simulator.simulated_results import RESULTS
from tollgate.providers.simulator.simulated_sound import speak
from tollgate.providers.simulator.simulated_transcripts import transcribe
from tollgate.providers.transports.provider_services import ProviderServices

PAUSE_S: Final = 0.2
_PAINTERS: Final = frozenset({"image", "image-tokens"})
_PICTURES_PATH: Final = "/images/generations"
RETRY_AFTER_S: Final = 1
_MODELS: Final = frozenset({"echo", "read", "slow", "tools"})
_REFUSALS: Final = {"429": (429, "rate_limit_error"), "529": (529, "overloaded_error")}
_FAULTS_AT_ONCE: Final = frozenset({*_REFUSALS, "500-once", "timeout"})
_SEEN_MAX: Final = 1024
_DROP: Final = re.compile(r"drop-after-(\d{1,6})")


class Simulator:
    """Answers requests without a network."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failed_once: OrderedDict[str, None] = OrderedDict()

    async def make_ready(self, request: WireRequest, timeouts: Timeouts) -> ReadyRequest:
        return ReadyRequest(lambda: self.open(request, timeouts), lambda: None)

    @asynccontextmanager
    async def open(
        self, request: WireRequest, timeouts: Timeouts
    ) -> AsyncIterator[AsyncIterator[Sequence[Frame]]]:
        body = pydantic_core.to_json(request.body)
        if request.path == _PICTURES_PATH:
            yield await self._pictures(body, streamed=request.reply_bytes_max is None)
            return
        if request.form:
            yield await self._transcript(request)
            return
        if request.reply_bytes_max is not None:
            name, _, fault = str(request.body["model"]).partition(":")
            result = RESULTS.get((request.path, name))
            if result is None or fault not in ("", *_FAULTS_AT_ONCE):
                raise _refusal(404, "not_found_error")
            await self._fail_at_once(fault, hashlib.sha256(body).hexdigest())
            yield self._frames(iter((result(body),)), pause_s=None)
            return
        if request.is_raw:
            yield await self._sound(str(request.body["model"]), body)
            return
        try:
            parsed = SimulatedRequest.model_validate_json(body)
        except ValidationError as invalid:
            raise _refusal(400, "invalid_request_error") from invalid
        name, _, fault = parsed.model.partition(":")
        if name not in _MODELS or not (fault == "" or self._is_fault(fault)):
            raise _refusal(404, "not_found_error")
        digest = hashlib.sha256(body).hexdigest()
        await self._fail_at_once(fault, digest)
        dropped = _DROP.fullmatch(fault)
        answer = _Answer(parsed, digest)
        chunks = islice(answer.unfinished(), int(dropped[1])) if dropped else answer.whole()
        yield self._frames(chunks, pause_s=PAUSE_S if name == "slow" else None)

    async def _pictures(self, body: bytes, *, streamed: bool) -> AsyncIterator[Sequence[Frame]]:
        """Return the frames of pictures; a fault cuts the stream among them."""
        try:
            request = simulated_pictures.PictureRequest.model_validate_json(body)
        except ValidationError as invalid:
            raise _refusal(400, "invalid_request_error") from invalid
        name, _, fault = request.model.partition(":")
        if name not in _PAINTERS or not (fault == "" or self._is_fault(fault)):
            raise _refusal(404, "not_found_error")
        await self._fail_at_once(fault, hashlib.sha256(body).hexdigest())
        if request.is_harmful:
            raise _refusal(400, "content_policy_violation")
        if not streamed:
            whole = simulated_pictures.draw_pictures(request)
            return self._frames(iter((whole,)), pause_s=None)
        events = simulated_pictures.stream_pictures(request)
        dropped = _DROP.fullmatch(fault)
        return self._frames(islice(events, int(dropped[1])) if dropped else events, pause_s=None)

    async def _sound(self, model: str, body: bytes) -> AsyncIterator[Sequence[Frame]]:
        """Return the chunks of a sound; a fault cuts the connection among them."""
        name, _, fault = model.partition(":")
        if name != "speech" or not (fault == "" or self._is_fault(fault)):
            raise _refusal(404, "not_found_error")
        try:
            chunks = speak(body)
        except ValidationError as invalid:
            raise _refusal(400, "invalid_request_error") from invalid
        await self._fail_at_once(fault, hashlib.sha256(body).hexdigest())
        dropped = _DROP.fullmatch(fault)
        return self._frames(_cut(chunks, int(dropped[1])) if dropped else chunks, pause_s=None)

    async def _transcript(self, request: WireRequest) -> AsyncIterator[Sequence[Frame]]:
        """Return the frames of a transcript; a fault cuts the stream among them."""
        name, _, fault = str(request.body["model"]).partition(":")
        if name != "transcribe" or not (fault == "" or self._is_fault(fault)):
            raise _refusal(404, "not_found_error")
        digest = hashlib.sha256(b"\n".join(part.content for part in request.form)).hexdigest()
        await self._fail_at_once(fault, digest)
        transcript = transcribe(request)
        if request.reply_bytes_max is not None:
            return self._frames(iter((transcript.whole(),)), pause_s=None)
        dropped = re.fullmatch(r"drop-after-(\d{1,6})", fault)
        events = transcript.events()
        return self._frames(islice(events, int(dropped[1])) if dropped else events, pause_s=None)

    def _is_fault(self, fault: str) -> bool:
        return fault in _FAULTS_AT_ONCE or bool(_DROP.fullmatch(fault))

    async def _fail_at_once(self, fault: str, digest: str) -> None:
        if fault in _REFUSALS:
            raise _refusal(*_REFUSALS[fault])
        if fault == "timeout":
            await asyncio.get_running_loop().create_future()
        if fault == "500-once":
            if digest not in self._failed_once:
                self._failed_once[digest] = None
                if len(self._failed_once) > _SEEN_MAX:
                    self._failed_once.popitem(last=False)
                raise _refusal(500, "server_error")
            del self._failed_once[digest]

    async def _frames(
        self, chunks: Iterator[bytes], *, pause_s: float | None
    ) -> AsyncIterator[Sequence[Frame]]:
        for number, chunk in enumerate(chunks):
            if pause_s is not None and number:
                await self._clock.sleep(pause_s)
            yield (Frame(data=chunk),)


def _cut(chunks: Iterator[bytes], number: int) -> Iterator[bytes]:
    """Yield so many chunks, then break as a connection does."""
    yield from islice(chunks, number)
    raise UpstreamError(
        ErrorCode.PROVIDER_UNAVAILABLE, "The simulator breaks off, as its model's name says."
    )


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
        """Yield the frames before the one that finishes."""
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


def _refusal(status: int, kind: str) -> UpstreamRefused:
    headers: Mapping[str, str] = {"retry-after": str(RETRY_AFTER_S)} if status in (429, 529) else {}
    error = {"message": "The simulator fails as requested.", "type": kind, "code": None}
    return UpstreamRefused(status, headers, pydantic_core.to_json({"error": error}))


def make_simulator(row: ProviderRow, services: ProviderServices) -> Transport:
    """Return the transport of a row, which answers by the clock alone."""
    return Simulator(services.clock)
