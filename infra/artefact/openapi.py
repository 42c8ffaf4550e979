"""What the api says of itself, worked out once instead of in every cold start."""

from dataclasses import dataclass

from pydantic_core import to_json

from tollgate.core.clock import SystemClock
from tollgate.routing.planning.catalog import Catalog
from tollgate.settings import Settings
from tollgate.web.api_app import api_app
from tollgate.wiring.administration import wire_administration, wire_services
from tollgate.wiring.limits import web_limits
from tollgate.wiring.observation import wire_observation
from tollgate.wiring.stores import wire_stores


@dataclass(frozen=True, slots=True)
class _Compiled:
    """The catalog that is being built, for whoever asks."""

    catalog: Catalog

    async def for_key(self, key_id: str | None) -> Catalog:
        return self.catalog


def openapi_document(compiled_routing: bytes) -> bytes:
    """The OpenAPI document of the app that is deployed; nothing is connected to for it."""
    settings, clock = Settings(), SystemClock()
    stores = wire_stores(settings, clock)
    services = wire_services(
        stores,
        wire_administration(settings, stores, clock),
        _Compiled(Catalog.from_json(compiled_routing)),
        clock=clock,
        journal=wire_observation(settings, clock).journal,
    )
    return to_json(api_app(services, web_limits(settings)).openapi())
