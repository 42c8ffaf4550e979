"""Hands drawn requests to the workers of shadow runs, while the content of the answer is stored."""

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

from tollgate.core.clock import Clock
from tollgate.core.errors import GatewayError
from tollgate.core.events import ChosenGroup
from tollgate.core.records.generation import GenerationRecord
from tollgate.core.shadows import REST_S, SHADOW_PREFIX, ShadowRun
from tollgate.engine.gateway import Call, Gateway
from tollgate.engine.replies.self_contained import is_self_contained
from tollgate.engine.replies.sink import EventSink
from tollgate.ingress.base import ParsedWork, ServedBy
from tollgate.routing.chains import ShadowSection
from tollgate.routing.planning.planning_request import draw_key_hash
from tollgate.routing.planning.shadows import is_drawn
from tollgate.stores.ports.base import Hold
from tollgate.stores.ports.batches import BatchPlace, ShadowServices

_log: Final = logging.getLogger(__name__)

# Time limit for handing a request on, which normally takes less than storing the content.
_SENT_WITHIN_S: Final = 0.5


def can_be_shadowed(parsed: ParsedWork) -> bool:
    """Return True for a request that another model may answer as well, without side effects."""
    return is_self_contained(parsed) and parsed.request.answers == 1


def shadow_sink(
    sink: EventSink,
    gateway: Gateway,
    call: Call,
    services: ShadowServices,
    *,
    route: str,
    shadow: ShadowSection,
) -> EventSink:
    """Return a sink that also hands the request to the shadow, or the same sink if none gets it."""
    drawn_by = draw_key_hash(call.parsed.request.preferences.session_id or call.request_id)
    if not is_drawn(shadow, route, drawn_by) or not can_be_shadowed(call.parsed):
        return sink
    return ShadowSink(sink, services, gateway.clock)


class ShadowSink:
    """A sink that creates a shadow run once the generation has settled.

    The function may freeze after the last byte, so the run is created before that byte. This sink
    is the outermost one, so the run is created while the content is stored.
    """

    def __init__(self, sink: EventSink, services: ShadowServices, clock: Clock) -> None:
        self._sink = sink
        self._services = services
        self._clock = clock

    @asynccontextmanager
    async def open(self, hold: Hold) -> AsyncIterator[None]:
        async with self._sink.open(hold):
            yield
            creating = asyncio.create_task(self._create(hold))
        await creating

    async def begin(self, served: ServedBy) -> None:
        await self._sink.begin(served)

    async def send(self, events: Sequence[ChosenGroup]) -> None:
        await self._sink.send(events)

    async def finish(self, record: GenerationRecord) -> None:
        await self._sink.finish(record)

    async def fail(self, error: GatewayError, record: GenerationRecord) -> None:
        await self._sink.fail(error, record)

    async def _create(self, hold: Hold) -> None:
        """Create the run; only log a failure, because the answer does not depend on it."""
        run = ShadowRun(
            id=SHADOW_PREFIX + hold.id,
            workspace_id=hold.workspace_id,
            key_id=hold.key_id,
            created_s=self._clock.now_s(),
        )
        try:
            async with asyncio.timeout(_SENT_WITHIN_S):
                await asyncio.gather(self._services.store.create(run), self._wake(run))
        except (GatewayError, TimeoutError) as failure:
            _log.warning("generation %s gets no shadow: %s", hold.id, failure)

    async def _wake(self, run: ShadowRun) -> None:
        if self._services.queue is not None:
            place = BatchPlace(run.workspace_id, run.id)
            # The delay is a little longer than the time after which a worker may begin.
            await self._services.queue.send(place, delay_s=REST_S + 2)
