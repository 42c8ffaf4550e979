"""Answers that are kept, so that asking again with the same key gives the same one."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final, Protocol, Self

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tollgate.core.errors import GatewayError
from tollgate.core.events import PartDelta, StreamEvent
from tollgate.core.generation import GenerationRecord
from tollgate.core.idempotency import Claim
from tollgate.engine.gateway import Gateway
from tollgate.engine.sink import EventSink, ReplyWriter, reply_sink, request_headers
from tollgate.ingress.base import Ingress, ParsedCall, ServedBy
from tollgate.stores.base import Hold

_log = logging.getLogger(__name__)

REPLAY_HEADER: Final = "x-idempotent-replay"


class AnswerStore(Protocol):
    """Keeps answers for a day."""

    async def claim(self, claim: Claim) -> bytes | None:
        """The answer kept for this claim, or None: it is ours to make.

        Raises RequestError: idempotency_conflict while another makes it, idempotency_mismatch if
        the key was used with another body.
        """

    async def keep(self, claim: Claim, answer: bytes) -> None:
        """Keep the answer to a claim that is ours."""

    async def release(self, claim: Claim) -> None:
        """Give a claim up, so that asking again makes a new answer."""


class KeptAnswer(Struct, frozen=True, kw_only=True):
    """A whole answer: who served it, its events, each with its choice, and its record."""

    served: ServedBy
    events: tuple[tuple[int, StreamEvent], ...]
    record: GenerationRecord
    episode_id: str | None

    def to_bytes(self) -> bytes:
        """Encode the answer as JSON; each event and part carries its struct's tag as `type`."""
        return msgspec.json.encode(self)

    @classmethod
    def from_bytes(cls, kept: bytes) -> Self:
        """Decode a kept answer; ValueError if it is corrupt or of another version's form."""
        return msgspec.json.decode(kept, type=cls)


class KeepingSink:
    """Passes a generation on and keeps it once it is whole; what fails is not kept."""

    def __init__(
        self, sink: EventSink, answers: AnswerStore, claim: Claim, episode_id: str | None
    ) -> None:
        self._sink = sink
        self._answers = answers
        self._claim = claim
        self._episode_id = episode_id
        self._served: ServedBy | None = None
        self._events: list[tuple[int, StreamEvent]] = []
        self._decided = False

    @asynccontextmanager
    async def opened(self, hold: Hold) -> AsyncIterator[None]:
        async with self._sink.opened(hold):
            yield

    async def begin(self, served: ServedBy) -> None:
        self._served = served
        await self._sink.begin(served)

    async def send(self, event: StreamEvent, choice: int = 0) -> None:
        self._take(event, choice)
        await self._sink.send(event, choice)

    async def finish(self, record: GenerationRecord) -> None:
        if self._served is None:
            raise RuntimeError("finish() before begin()")
        answer = KeptAnswer(
            served=self._served,
            events=tuple(self._events),
            record=record,
            episode_id=self._episode_id,
        )
        try:
            # Before the last byte: the platform may freeze the process as soon as that has left.
            await self._answers.keep(self._claim, answer.to_bytes())
            self._decided = True
        except GatewayError as failure:
            _log.warning("answer %s could not be kept: %s", record.id, failure)
            await self.release()
        await self._sink.finish(record)

    async def fail(self, error: GatewayError, record: GenerationRecord) -> None:
        await self.release()
        await self._sink.fail(error, record)

    def _take(self, event: StreamEvent, choice: int) -> None:
        """Keep an event; the text of a part grows in one place."""
        match (self._events[-1:], event):
            case ([(at, PartDelta(index=index, text=text))], PartDelta() as more) if (
                at == choice and index == more.index
            ):
                self._events[-1] = (choice, PartDelta(index=index, text=text + more.text))
            case _:
                self._events.append((choice, event))

    async def release(self) -> None:
        """Give the claim up unless the answer is kept; repeating it does nothing."""
        if self._decided:
            return
        self._decided = True
        try:
            await self._answers.release(self._claim)
        except GatewayError as failure:
            _log.warning("claim of %s stays for now: %s", self._claim.request_id, failure)


async def replay(
    kept: KeptAnswer,
    gateway: Gateway,
    reply: ReplyWriter,
    ingress: Ingress,
    *,
    parsed: ParsedCall,
    request_id: str,
) -> None:
    """Send a kept answer through the sinks of a live one, streamed or whole as `parsed` wants it.

    Nothing is held or billed. `request_id` names the repeated request, not the one that was billed.
    """
    headers = {**request_headers(kept.record.id), "x-request-id": request_id, REPLAY_HEADER: "true"}
    if not parsed.stream:
        # The body repeats what the first answer cost; this header states the cost of this reply.
        headers["x-credits-used"] = "0"
    # The caller's own episode is the one that the answer was first given in.
    parsed = replace(parsed, episode_id=kept.episode_id)
    sink = reply_sink(gateway, reply, ingress, parsed, headers=headers)
    await sink.begin(kept.served)
    for choice, event in kept.events:
        await sink.send(event, choice)
    await sink.finish(kept.record)
