"""Wires the workers of shadow runs."""

from typing import Final

from tollgate.core.clock import Clock
from tollgate.core.shadows import ShadowRun
from tollgate.engine.batches.polling import BatchPolling
from tollgate.engine.gateway import Journal
from tollgate.ingress.formats import FORMATS
from tollgate.settings import Settings
from tollgate.stores.batches.records import DynamoLineRecords
from tollgate.web.chat_app import MeteredEndpoint
from tollgate.web.generation.entrance import Entrance, Gateways
from tollgate.web.shadows.running import ShadowWorker, ShadowWorkerServices
from tollgate.wiring.generation import wire_request_services
from tollgate.wiring.observation import wire_web_limits
from tollgate.wiring.shadows import wire_shadow_store
from tollgate.wiring.stores import Stores

# Runs that a server carries out at a time: few, because requests of callers come first.
_AT_ONCE: Final = 8


def wire_shadow_worker(
    settings: Settings, stores: Stores, gateways: Gateways, *, clock: Clock, journal: Journal
) -> ShadowWorker | None:
    """Return a worker; None without a bucket or a folder, where contents are stored."""
    if stores.contents is None:
        return None
    front = wire_request_services(stores, clock=clock, journal=journal)
    # Shadows neither store responses nor read them.
    entrance = Entrance(front, gateways, wire_web_limits(settings), responses=None)
    return ShadowWorker(
        ShadowWorkerServices(
            store=wire_shadow_store(stores, clock),
            records=DynamoLineRecords(stores.generations),
            contents=stores.contents,
            keys=stores.keys,
            gateways=gateways,
            endpoints={
                each.name: MeteredEndpoint(each, entrance, answers=None, contents=None)
                for each in FORMATS
            },
            ids=front.ids,
            clock=clock,
        )
    )


def wire_shadow_polling(
    settings: Settings, stores: Stores, gateways: Gateways, *, clock: Clock, journal: Journal
) -> BatchPolling[ShadowRun] | None:
    """Return the poller that runs shadow runs in a server; None if the server works on no jobs."""
    if settings.batch_lines_at_once == 0:
        return None
    worker = wire_shadow_worker(settings, stores, gateways, clock=clock, journal=journal)
    if worker is None:
        return None
    return BatchPolling(worker, wire_shadow_store(stores, clock), clock, at_once=_AT_ONCE)
