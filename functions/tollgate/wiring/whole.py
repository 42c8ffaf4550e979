"""All routes in one process, for hosts that are not Lambda."""

from starlette.types import ASGIApp

from tollgate.core.clock import Clock
from tollgate.engine.gateway import Journal
from tollgate.routing.catalog import Catalog
from tollgate.settings import Settings
from tollgate.web.api_app import api_app
from tollgate.web.local_app import LocalApp
from tollgate.wiring.administration import wire_administration, wire_services
from tollgate.wiring.generation import Upstream, wire_chat_app, wire_gateway
from tollgate.wiring.limits import web_limits
from tollgate.wiring.stores import Stores


def wire_whole_app(
    settings: Settings,
    stores: Stores,
    upstream: Upstream,
    catalog: Catalog,
    *,
    clock: Clock,
    journal: Journal,
) -> ASGIApp:
    """What both functions serve, joined as API Gateway joins them."""
    limits = web_limits(settings)
    gateway = wire_gateway(stores, upstream, catalog, clock=clock, journal=journal)
    administration = wire_administration(settings, stores, clock)
    services = wire_services(stores, administration, catalog, clock=clock, journal=journal)
    return LocalApp(wire_chat_app(gateway, stores, limits), api_app(services, limits))
