"""The events of a background response: stored by its worker, followed by its callers.

A caller resumes a stream after the `sequence_number` of the last event that it has:
https://developers.openai.com/docs/guides/background (2026-11-27)
"""

import logging
from collections.abc import AsyncIterator
from typing import Final

from msgspec import Struct, json

from tollgate.core.background import BackgroundResponse
from tollgate.core.clock import Clock, Deadline
from tollgate.core.errors import GatewayError
from tollgate.ingress.base import KEEP_ALIVE_COMMENT
from tollgate.ingress.responses.output import render_event
from tollgate.ingress.responses.render import QUEUED_EVENTS
from tollgate.stores.ports.batches import BackgroundServices, BatchPlace
from tollgate.web.background.shown import show_state

_log: Final = logging.getLogger(__name__)

# Seconds between two writes of events, and between two looks for them.
_FLUSH_S: Final = 1.0
_LOOK_S: Final = 0.5
_KEEP_ALIVE_S: Final = 10.0
_FRAME_END: Final = b"\n\n"
_DATA: Final = b"\ndata: "


class _Numbered(Struct):
    sequence_number: int


def queued_events(shown: bytes) -> bytes:
    """Return the first events of a response, before its worker begins."""
    content = b'"response":' + shown
    return b"".join(
        render_event(type_, content, number) for number, type_ in enumerate(QUEUED_EVENTS)
    )


def events_name(number: int) -> str:
    """Return the name of a part with events; part 0 has those of the queue."""
    return f"events/{number}"


class EventLog:
    """Stores the events of one answer, those of each second in one part."""

    def __init__(self, services: BackgroundServices, job: BackgroundResponse, clock: Clock) -> None:
        self._parts = services.parts
        self._job = job
        self._clock = clock
        self._waiting: list[bytes] = []
        self._number = 1

    def add(self, frames: bytes) -> None:
        """Add events, which are stored within a second."""
        if frames:
            self._waiting.append(frames)

    async def run(self) -> None:
        """Store events until the task is cancelled."""
        while True:
            await self._clock.sleep(_FLUSH_S)
            await self.flush()

    async def flush(self) -> None:
        """Store the events so far; keep them for the next call if the store is away."""
        if not self._waiting:
            return
        waiting, self._waiting = self._waiting, []
        try:
            await self._parts.put(self._job, events_name(self._number), b"".join(waiting))
            self._number += 1
        except GatewayError as failure:
            self._waiting = waiting + self._waiting
            _log.warning("events of %s could not be stored: %s", self._job.id, failure.message)


async def follow(
    services: BackgroundServices,
    job: BackgroundResponse,
    *,
    after: int,
    deadline: Deadline,
) -> AsyncIterator[bytes]:
    """Yield the events of a response whose number is above `after`, until its last one.

    The last event has the whole response, and is rendered from it. A cancelled response has no last
    event. The stream ends early at the deadline; the caller then resumes it.
    """
    clock, number, last = deadline.clock, 0, -1
    place, sent_s = BatchPlace(job.workspace_id, job.id), clock.monotonic_s()
    while True:
        stored = await services.parts.get(job, events_name(number))
        if stored is not None:
            number += 1
            frames = [frame for frame in stored.split(_FRAME_END) if frame]
            last = _number_of(frames[-1])
            if fresh := [frame + _FRAME_END for frame in frames if _number_of(frame) > after]:
                sent_s = clock.monotonic_s()
                yield b"".join(fresh)
            continue
        if job.is_ended:
            break
        if deadline.remaining_s() <= _LOOK_S:
            return
        found = await services.store.get(place)
        if found is None:
            return
        if not found.is_ended:
            if clock.monotonic_s() - sent_s >= _KEEP_ALIVE_S:
                sent_s = clock.monotonic_s()
                yield KEEP_ALIVE_COMMENT
            await clock.sleep(_LOOK_S)
        # Its worker stores the last events before a response ends, so one more look finds them.
        job = found
    shown = None if job.status == "cancelled" else await show_state(job, services.parts)
    if shown is not None and last + 1 > after:
        yield render_event(f"response.{job.status}", b'"response":' + shown, last + 1)


def _number_of(frame: bytes) -> int:
    _, _, data = frame.partition(_DATA)
    return json.decode(data, type=_Numbered).sequence_number
