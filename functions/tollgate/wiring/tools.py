"""Wires the tools that the gateway runs within a request; imported with the first such request."""

from msgspec import Struct

from tollgate.core.clock import Clock
from tollgate.core.documents import DocumentReader
from tollgate.core.ids import IdSource
from tollgate.core.principal import Principal
from tollgate.core.request import GenerationRequest
from tollgate.engine.gateway import ProviderDirectory
from tollgate.engine.painter import CatalogPainter
from tollgate.providers.transports.engine_calls import PooledEngineCalls
from tollgate.providers.transports.http_pool import HttpPool
from tollgate.providers.transports.public_fetcher import PublicFetcher
from tollgate.routing.planning.catalog import Catalog
from tollgate.routing.planning.planner import Planner
from tollgate.stores.base import SecretStore
from tollgate.tools.base import RequestTools
from tollgate.tools.configured import ConfiguredTools, ToolServices


class WiredTools(Struct, frozen=True, kw_only=True):
    """Implements `tools.base.ServerTools` for one catalog."""

    catalog: Catalog
    planner: Planner
    providers: ProviderDirectory
    pool: HttpPool
    secrets: SecretStore
    fetcher: PublicFetcher
    reader: DocumentReader | None
    clock: Clock

    def open(
        self, request: GenerationRequest, *, route: str | None, principal: Principal
    ) -> RequestTools:
        """Return the tools of one request, which leads to models by a route or by none."""
        painter = CatalogPainter(
            planner=self.planner,
            providers=self.providers,
            clock=self.clock,
            ids=IdSource(self.clock),
            when_s=self.clock.now_s(),
        )
        services = ToolServices(
            calls=PooledEngineCalls(self.pool),
            pages=self.fetcher,
            reader=self.reader,
            secrets=self.secrets,
            clock=self.clock,
        )
        configured = ConfiguredTools(
            section=self.catalog.tools.section,
            routes=self.catalog.routes,
            painter=painter,
            services=services,
        )
        return configured.open(request, route=route, principal=principal)
