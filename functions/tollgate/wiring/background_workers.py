"""Wires the workers that answer background responses."""

from typing import Final

from tollgate.core.background import BackgroundResponse
from tollgate.core.clock import Clock
from tollgate.engine.batches.polling import BatchPolling
from tollgate.engine.gateway import Journal
from tollgate.ingress.formats import RESPONSES
from tollgate.settings import Settings
from tollgate.stores.batches.records import DynamoLineRecords
from tollgate.web.background.running import BackgroundWorker, WorkerServices
from tollgate.web.chat_app import MeteredEndpoint
from tollgate.web.generation.entrance import Entrance, Gateways
from tollgate.wiring.background import wire_background, wire_background_store
from tollgate.wiring.generation import wire_request_services
from tollgate.wiring.observation import wire_web_limits
from tollgate.wiring.stores import Stores

# Responses that a server answers at a time; each waits for a provider most of the time.
_AT_ONCE: Final = 64


def wire_background_worker(
    settings: Settings, stores: Stores, gateways: Gateways, *, clock: Clock, journal: Journal
) -> BackgroundWorker | None:
    """Return a worker; None without a bucket or a folder."""
    background = wire_background(stores, None, clock)
    if background is None:
        return None
    front = wire_request_services(stores, clock=clock, journal=journal)
    entrance = Entrance(
        front,
        gateways,
        wire_web_limits(settings),
        responses=stores.responses,
        seals=stores.seal_keys,
    )
    return BackgroundWorker(
        WorkerServices(
            background=background,
            records=DynamoLineRecords(stores.generations),
            ledger=stores.ledger,
            keys=stores.keys,
            gateways=gateways,
            endpoint=MeteredEndpoint(RESPONSES, entrance, answers=None, contents=stores.contents),
            ids=front.ids,
            clock=clock,
        )
    )


def wire_background_polling(
    settings: Settings, stores: Stores, gateways: Gateways, *, clock: Clock, journal: Journal
) -> BatchPolling[BackgroundResponse] | None:
    """Return the poller that answers responses in a server; None if the server answers none."""
    if settings.batch_lines_at_once == 0:
        return None
    worker = wire_background_worker(settings, stores, gateways, clock=clock, journal=journal)
    if worker is None:
        return None
    return BatchPolling(worker, wire_background_store(stores, clock), clock, at_once=_AT_ONCE)
