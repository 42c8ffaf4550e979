"""Wires the workers of videos."""

from typing import Final

from tollgate.core.clock import Clock
from tollgate.core.videos import Video
from tollgate.engine.batches.polling import BatchPolling
from tollgate.engine.gateway import Journal
from tollgate.ingress.formats import VIDEOS
from tollgate.settings import Settings
from tollgate.web.chat_app import MeteredEndpoint
from tollgate.web.generation.entrance import Entrance, Gateways
from tollgate.web.videos.working import VideoWorker, VideoWorkerServices
from tollgate.wiring.files import Files
from tollgate.wiring.generation import wire_request_services
from tollgate.wiring.observation import wire_web_limits
from tollgate.wiring.stores import Stores
from tollgate.wiring.videos import wire_video_store, wire_videos

# Open videos that a server looks at in each round; one that waits for its provider costs one read.
_AT_ONCE: Final = 256


def wire_video_worker(
    settings: Settings,
    stores: Stores,
    files: Files | None,
    gateways: Gateways,
    *,
    clock: Clock,
    journal: Journal,
) -> VideoWorker | None:
    """Return a worker; None without a bucket or a folder."""
    videos = wire_videos(stores, None, clock)
    if videos is None or files is None:
        return None
    front = wire_request_services(stores, clock=clock, journal=journal)
    entrance = Entrance(front, gateways, wire_web_limits(settings), responses=None)
    return VideoWorker(
        VideoWorkerServices(
            videos=videos,
            files=files.store,
            keys=stores.keys,
            gateways=gateways,
            endpoint=MeteredEndpoint(VIDEOS, entrance, answers=None, contents=None),
            ids=front.ids,
            clock=clock,
        )
    )


def wire_video_polling(
    settings: Settings,
    stores: Stores,
    files: Files | None,
    gateways: Gateways,
    *,
    clock: Clock,
    journal: Journal,
) -> BatchPolling[Video] | None:
    """Return the poller that makes videos in a server; None if the server works on no jobs."""
    if settings.batch_lines_at_once == 0:
        return None
    worker = wire_video_worker(settings, stores, files, gateways, clock=clock, journal=journal)
    if worker is None:
        return None
    return BatchPolling(worker, wire_video_store(stores, clock), clock, at_once=_AT_ONCE)
