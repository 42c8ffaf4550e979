"""Wires the stores of background responses."""

from tollgate.core.background import BackgroundResponse
from tollgate.core.clock import Clock
from tollgate.core.ids import IdSource
from tollgate.settings import Settings
from tollgate.stores.batches.background import BACKGROUND, StoredBackgroundParts
from tollgate.stores.batches.jobs import DynamoJobStore
from tollgate.stores.batches.queue import SqsBatchQueue
from tollgate.stores.ports.batches import BackgroundServices, BatchQueue
from tollgate.wiring.batch_stores import wire_queue
from tollgate.wiring.stores import Stores


def wire_background_store(stores: Stores, clock: Clock) -> DynamoJobStore[BackgroundResponse]:
    """Return the store of the state of background responses."""
    ids = IdSource(clock)
    return DynamoJobStore(stores.client, stores.tables.core, BACKGROUND, ids=ids, clock=clock)


def wire_background(
    stores: Stores, queue: BatchQueue | None, clock: Clock
) -> BackgroundServices | None:
    """Return the stores of background responses; None without a bucket or a folder."""
    if stores.objects is None or stores.responses is None:
        return None
    return BackgroundServices(
        store=wire_background_store(stores, clock),
        parts=StoredBackgroundParts(stores.objects, stores.responses),
        queue=queue,
    )


def wire_queued_background(
    settings: Settings, stores: Stores, clock: Clock
) -> BackgroundServices | None:
    """Return the stores of background responses, with the queue that wakes their workers."""
    return wire_background(stores, wire_background_queue(settings, clock), clock)


def wire_background_queue(settings: Settings, clock: Clock) -> SqsBatchQueue | None:
    """Return the queue that wakes workers; None if the settings name none."""
    return wire_queue(settings, settings.background_queue_url, clock)
