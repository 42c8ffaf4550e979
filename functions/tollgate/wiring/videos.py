"""Wires the stores of videos."""

from tollgate.core.clock import Clock
from tollgate.core.ids import IdSource
from tollgate.settings import Settings
from tollgate.stores.batches.videos import DynamoVideoStore, StoredVideoRequests
from tollgate.stores.ports.batches import BatchQueue, VideoServices
from tollgate.wiring.background import wire_background_queue
from tollgate.wiring.stores import Stores


def wire_video_store(stores: Stores, clock: Clock) -> DynamoVideoStore:
    """Return the store of the state of videos."""
    return DynamoVideoStore(stores.client, stores.tables.core, ids=IdSource(clock), clock=clock)


def wire_videos(stores: Stores, queue: BatchQueue | None, clock: Clock) -> VideoServices | None:
    """Return the stores of videos; None without a bucket or a folder."""
    if stores.objects is None or stores.responses is None:
        return None
    return VideoServices(
        store=wire_video_store(stores, clock),
        requests=StoredVideoRequests(stores.objects, stores.responses),
        queue=queue,
    )


def wire_queued_videos(settings: Settings, stores: Stores, clock: Clock) -> VideoServices | None:
    """Return the stores of videos, with the queue of background responses."""
    return wire_videos(stores, wire_background_queue(settings, clock), clock)
