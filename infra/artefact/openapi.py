"""What the api says of itself, worked out once instead of in every cold start."""

from pydantic_core import to_json

from tollgate.core.clock import SystemClock
from tollgate.observability.log import LogJournal
from tollgate.routing.catalog import Catalog
from tollgate.settings import Settings
from tollgate.web.api_app import api_app
from tollgate.wiring.administration import wire_administration, wire_services
from tollgate.wiring.limits import web_limits
from tollgate.wiring.stores import wire_stores


def openapi_document(compiled_routing: bytes) -> bytes:
    """The OpenAPI document of the app that is deployed; nothing is connected to for it."""
    settings, clock = Settings(), SystemClock()
    stores = wire_stores(settings, clock)
    services = wire_services(
        stores,
        wire_administration(settings, stores, clock),
        Catalog.from_json(compiled_routing),
        clock=clock,
        journal=LogJournal(),
    )
    return to_json(api_app(services, web_limits(settings)).openapi())
