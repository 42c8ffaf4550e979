"""Wires the store of shadow runs."""

from tollgate.core.clock import Clock
from tollgate.core.ids import IdSource
from tollgate.core.shadows import ShadowRun
from tollgate.settings import Settings
from tollgate.stores.batches.jobs import SHADOWS, DynamoJobStore
from tollgate.stores.ports.batches import BatchQueue, ShadowServices
from tollgate.wiring.background import wire_background_queue
from tollgate.wiring.stores import Stores


def wire_shadow_store(stores: Stores, clock: Clock) -> DynamoJobStore[ShadowRun]:
    """Return the store of the state of shadow runs."""
    ids = IdSource(clock)
    return DynamoJobStore(stores.client, stores.tables.core, SHADOWS, ids=ids, clock=clock)


def wire_shadows(stores: Stores, queue: BatchQueue | None, clock: Clock) -> ShadowServices:
    """Return the store of shadow runs, and the queue that wakes their workers."""
    return ShadowServices(store=wire_shadow_store(stores, clock), queue=queue)


def wire_queued_shadows(settings: Settings, stores: Stores, clock: Clock) -> ShadowServices:
    """Return the store of shadow runs, with the queue of background responses."""
    return wire_shadows(stores, wire_background_queue(settings, clock), clock)
