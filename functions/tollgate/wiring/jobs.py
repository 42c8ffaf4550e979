"""Wires the work on jobs in a server: batches, background responses, shadow runs and videos."""

from typing import Any

from msgspec import Struct

from tollgate.core.background import BackgroundResponse
from tollgate.core.batches import Batch
from tollgate.core.clock import Clock
from tollgate.core.shadows import ShadowRun
from tollgate.core.videos import Video
from tollgate.engine.batches.polling import BatchPolling
from tollgate.engine.gateway import Journal
from tollgate.settings import Settings
from tollgate.web.generation.entrance import Gateways
from tollgate.wiring.background_workers import wire_background_polling
from tollgate.wiring.batches import wire_polling
from tollgate.wiring.files import Files
from tollgate.wiring.shadow_workers import wire_shadow_polling
from tollgate.wiring.stores import Stores
from tollgate.wiring.video_workers import wire_video_polling


class JobPollings(Struct, frozen=True, kw_only=True):
    """The pollers of a server, which also serve as queues; None if the server has no such work."""

    batches: BatchPolling[Batch] | None = None
    responses: BatchPolling[BackgroundResponse] | None = None
    shadows: BatchPolling[ShadowRun] | None = None
    videos: BatchPolling[Video] | None = None

    @property
    def each(self) -> tuple[BatchPolling[Any] | None, ...]:
        """The pollers of all kinds of jobs."""
        return self.batches, self.responses, self.shadows, self.videos


def wire_job_pollings(
    settings: Settings,
    stores: Stores,
    files: Files | None,
    gateways: Gateways,
    *,
    clock: Clock,
    journal: Journal,
) -> JobPollings:
    """Return the pollers of all kinds of jobs."""
    return JobPollings(
        batches=wire_polling(settings, stores, files, gateways, clock=clock),
        responses=wire_background_polling(settings, stores, gateways, clock=clock, journal=journal),
        shadows=wire_shadow_polling(settings, stores, gateways, clock=clock, journal=journal),
        videos=wire_video_polling(settings, stores, files, gateways, clock=clock, journal=journal),
    )
