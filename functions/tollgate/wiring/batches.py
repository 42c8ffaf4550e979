"""Wires the workers of batches."""

from typing import Final

from tollgate.core.batches import Batch
from tollgate.core.clock import Clock
from tollgate.core.ids import IdSource
from tollgate.engine.batches.polling import BatchPolling
from tollgate.engine.batches.worker import BatchServices, BatchWorker, GatewaySource
from tollgate.ingress.formats import Ingresses
from tollgate.settings import Settings
from tollgate.stores.batches.objects import StoredBatchObjects
from tollgate.stores.batches.records import DynamoLineRecords
from tollgate.wiring.batch_stores import wire_batch_store
from tollgate.wiring.files import Files
from tollgate.wiring.stores import Stores

_BATCHES_AT_ONCE: Final = 16


def wire_batch_worker(
    settings: Settings,
    stores: Stores,
    files: Files,
    gateways: GatewaySource,
    *,
    clock: Clock,
) -> BatchWorker | None:
    """Return a worker; None if this process does not run batches or has no object store."""
    if stores.objects is None or settings.batch_lines_at_once == 0:
        return None
    ids = IdSource(clock)
    services = BatchServices(
        store=wire_batch_store(stores, clock),
        objects=StoredBatchObjects(stores.objects, files.store),
        records=DynamoLineRecords(stores.generations),
        ledger=stores.ledger,
        keys=stores.keys,
        gateways=gateways,
        ingresses=Ingresses(ids),
        ids=ids,
        clock=clock,
    )
    return BatchWorker(services, lines_at_once=settings.batch_lines_at_once)


def wire_polling(
    settings: Settings,
    stores: Stores,
    files: Files | None,
    gateways: GatewaySource,
    *,
    clock: Clock,
) -> BatchPolling[Batch] | None:
    """Return the poller that runs open batches in a server; None if the server runs none."""
    if files is None:
        return None
    worker = wire_batch_worker(settings, stores, files, gateways, clock=clock)
    if worker is None:
        return None
    return BatchPolling(worker, wire_batch_store(stores, clock), clock, at_once=_BATCHES_AT_ONCE)
