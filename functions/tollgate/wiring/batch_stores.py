"""Wires the store of batches, and the queue that wakes their workers."""

from msgspec import MsgspecError, json

from tollgate.core.clock import Clock
from tollgate.core.ids import IdSource
from tollgate.settings import Settings
from tollgate.stores.batches.batches import DynamoBatchStore
from tollgate.stores.batches.queue import SqsBatchQueue
from tollgate.stores.ports.batches import BatchPlace
from tollgate.wiring.aws import aws_json
from tollgate.wiring.stores import Stores


def wire_batch_store(stores: Stores, clock: Clock) -> DynamoBatchStore:
    """Return the store of batches."""
    return DynamoBatchStore(stores.client, stores.tables.core, ids=IdSource(clock), clock=clock)


def wire_batch_queue(settings: Settings, clock: Clock) -> SqsBatchQueue | None:
    """Return the queue that wakes the batch function; None if the settings name none."""
    return wire_queue(settings, settings.batch_queue_url, clock)


def wire_queue(settings: Settings, url: str | None, clock: Clock) -> SqsBatchQueue | None:
    """Return the queue with this URL; None if there is none."""
    if url is None:
        return None
    return SqsBatchQueue(aws_json(settings, "sqs", settings.sqs_endpoint_url, clock), url)


def read_message(body: str) -> BatchPlace:
    """Return the batch that a message names; raise ValueError if the message is corrupt."""
    try:
        return json.decode(body, type=BatchPlace)
    except MsgspecError as corrupt:
        raise ValueError(f"the message names no batch: {corrupt}") from corrupt
