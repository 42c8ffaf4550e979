"""Stores answers by `Idempotency-Key`, so that a repeated request gets the same answer."""

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final, Protocol, Self

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tollgate.core.buffer_budget import take
from tollgate.core.content import InlineMedia, MadeImage
from tollgate.core.errors import BufferFull, GatewayError
from tollgate.core.events import (
    Chosen,
    ChosenGroup,
    Output,
    PartDelta,
    Partial,
    PartStart,
    StreamEvent,
    ungroup,
)
from tollgate.core.idempotency import Claim
from tollgate.core.records.generation import GenerationRecord
from tollgate.core.response import buffered_size
from tollgate.engine.gateway import Gateway
from tollgate.engine.replies.reply_sink import reply_sink
from tollgate.engine.replies.sink import EventSink, ReplyWriter, request_headers
from tollgate.ingress.base import Ingress, ParsedWork, ServedBy
from tollgate.stores.ports.base import Hold

_log = logging.getLogger(__name__)

REPLAY_HEADER: Final = "x-idempotent-replay"
# Maximum size in bytes, as base64, of the results, previews and images in a stored answer. The
# store reads no object larger than 64 MiB.
RESULT_BYTES_KEPT_MAX: Final = 40 * 1024 * 1024


class AnswerStore(Protocol):
    """A store of answers, which are deleted after a day."""

    async def claim(self, claim: Claim) -> bytes | None:
        """Return the answer stored for this claim; None if the caller has to generate it.

        Raises RequestError: idempotency_conflict while another request is generating the answer,
        idempotency_mismatch if the key was used with another body.
        """

    async def keep(self, claim: Claim, answer: bytes) -> None:
        """Store the answer of the request that holds the claim."""

    async def release(self, claim: Claim) -> None:
        """Delete a claim, so that a repeated request generates the answer again."""


class KeptAnswer(Struct, frozen=True, kw_only=True):
    """A complete answer, which can be rendered again as a reply, streamed or not."""

    served: ServedBy
    events: tuple[Chosen, ...]
    """Events of the answer, each with the index of its choice."""
    record: GenerationRecord
    episode_id: str | None

    def to_bytes(self) -> bytes:
        """Encode the answer as JSON; the field `type` names the struct of each event and part."""
        return msgspec.json.encode(self)

    @classmethod
    def from_bytes(cls, content: bytes) -> Self:
        """Decode a stored answer; raise ValueError if it is corrupt or of another version."""
        return msgspec.json.decode(content, type=cls)


class KeepingSink:
    """A sink that forwards a generation and stores the answer if the generation succeeds."""

    def __init__(
        self, sink: EventSink, answers: AnswerStore, claim: Claim, episode_id: str | None
    ) -> None:
        self._sink = sink
        self._answers = answers
        self._claim = claim
        self._episode_id = episode_id
        self._served: ServedBy | None = None
        self._events: list[Chosen] = []
        # Texts that continue the last event, which is a delta.
        self._texts: list[str] = []
        self._result_bytes = 0
        self._decided = False

    @asynccontextmanager
    async def open(self, hold: Hold) -> AsyncIterator[None]:
        async with self._sink.open(hold):
            yield

    async def begin(self, served: ServedBy) -> None:
        self._served = served
        await self._sink.begin(served)

    async def send(self, events: Sequence[ChosenGroup]) -> None:
        # The caller's reply takes its bytes first, so an answer that does not fit twice is not
        # stored.
        await self._sink.send(events)
        for choice, event in ungroup(events):
            self._take(event, choice)

    async def finish(self, record: GenerationRecord) -> None:
        if self._served is None:
            raise RuntimeError("finish() before begin()")
        if self._result_bytes > RESULT_BYTES_KEPT_MAX:
            _log.warning("answer %s is too large to be stored", record.id)
            await self.release()
            await self._sink.finish(record)
            return
        self._join_texts()
        answer = KeptAnswer(
            served=self._served,
            events=tuple(self._events),
            record=record,
            episode_id=self._episode_id,
        )
        try:
            # The answer is stored before the last byte is sent, because the platform may freeze the
            # process right after it.
            await self._answers.keep(self._claim, answer.to_bytes())
            self._decided = True
        except GatewayError as failure:
            _log.warning("answer %s could not be stored: %s", record.id, failure)
            await self.release()
        await self._sink.finish(record)

    async def fail(self, error: GatewayError, record: GenerationRecord) -> None:
        await self.release()
        await self._sink.fail(error, record)

    def _take(self, event: StreamEvent, choice: int) -> None:
        """Add an event, merging consecutive deltas; discard all events if the answer is
        too large.
        """
        self._result_bytes += _result_bytes(event)
        try:
            take(len(event.piece) if isinstance(event, Partial) else buffered_size(event))
        except BufferFull:
            self._result_bytes = RESULT_BYTES_KEPT_MAX + 1
        if self._result_bytes > RESULT_BYTES_KEPT_MAX:
            self._events.clear()
            self._texts.clear()
            return
        match (self._events[-1:], event):
            case ([(at, PartDelta(index=index))], PartDelta() as more) if (
                at == choice and index == more.index
            ):
                self._texts.append(more.text)
            case _:
                self._join_texts()
                self._events.append((choice, event))

    def _join_texts(self) -> None:
        """Append the collected texts to the last event."""
        match self._events[-1:]:
            case [(choice, PartDelta(index=index, text=text))] if self._texts:
                self._events[-1] = (
                    choice,
                    PartDelta(index=index, text=text + "".join(self._texts)),
                )
        self._texts.clear()

    async def release(self) -> None:
        """Delete the claim unless the answer was stored; a second call does nothing."""
        if self._decided:
            return
        self._decided = True
        try:
            await self._answers.release(self._claim)
        except GatewayError as failure:
            _log.warning(
                "claim of request %s could not be deleted: %s", self._claim.request_id, failure
            )


def _result_bytes(event: StreamEvent) -> int:
    """Return the size in bytes of an event's content other than text."""
    match event:
        case Output(pieces=pieces):
            return sum(map(len, pieces))
        case Partial(piece=piece):
            return len(piece)
        case PartStart(part=MadeImage(source=InlineMedia(base64=base64))):
            return len(base64)
        case _:
            return 0


async def replay(
    answer: KeptAnswer,
    gateway: Gateway,
    reply: ReplyWriter,
    ingress: Ingress,
    *,
    parsed: ParsedWork,
    request_id: str,
) -> None:
    """Send a stored answer through the same sinks as a new one.

    Nothing is held or billed. `parsed` says whether to stream. `request_id` is the id of the
    repeated request, not of the billed one.
    """
    headers = {
        **request_headers(answer.record.id),
        "x-request-id": request_id,
        REPLAY_HEADER: "true",
    }
    if not parsed.stream:
        # The body has the cost of the first reply; this header has the cost of the repeated one.
        headers["x-credits-used"] = "0"
    # The body contains the routing episode of the first reply.
    parsed = replace(parsed, episode_id=answer.episode_id)
    sink = reply_sink(gateway, reply, ingress, parsed, headers=headers)
    await sink.begin(answer.served)
    # Events are sent one at a time, because an answer may contain images of many megabytes, which
    # must not all be rendered together.
    for chosen in answer.events:
        await sink.send((chosen,))
    await sink.finish(answer.record)
