"""The OpenAPI document, built with the artefact so that cold starts need not build it."""

from dataclasses import dataclass

from pydantic_core import to_json

from tollgate.core.clock import SystemClock
from tollgate.routing.planning.catalog import Catalog
from tollgate.settings import Settings
from tollgate.web.api_app import api_app
from tollgate.wiring.administration import wire_administration
from tollgate.wiring.observation import wire_observation, wire_web_limits
from tollgate.wiring.services import wire_services
from tollgate.wiring.stores import wire_stores


@dataclass(frozen=True, slots=True)
class _Compiled:
    """A source of catalogs that has only the catalog being built."""

    catalog: Catalog

    async def for_key(self, key_id: str | None) -> Catalog:
        return self.catalog


def write_openapi_document(compiled_routing: bytes) -> bytes:
    """Return the OpenAPI document of the deployed API, without opening a connection."""
    settings, clock = Settings(), SystemClock()
    stores = wire_stores(settings, clock)
    services = wire_services(
        stores,
        wire_administration(settings, stores, clock),
        _Compiled(Catalog.from_json(compiled_routing)),
        files=None,
        batch_queue=None,
        clock=clock,
        journal=wire_observation(settings, clock).journal,
    )
    return to_json(api_app(services, wire_web_limits(settings)).openapi())
