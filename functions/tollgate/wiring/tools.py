"""Wires the tools that the gateway runs for models; imported with the first request for one."""

from msgspec import Struct

from tollgate.core.clock import Clock
from tollgate.core.documents.reading import DocumentReader
from tollgate.core.ids import IdSource
from tollgate.core.principal import Principal
from tollgate.core.request import GenerationRequest
from tollgate.engine.gateway import ProviderDirectory
from tollgate.engine.work.painter import CatalogPainter
from tollgate.providers.transports.http_pool import HttpPool
from tollgate.routing.planning.catalog import Catalog
from tollgate.routing.planning.planner import Planner
from tollgate.stores.ports.base import SecretStore
from tollgate.tools.configured import ConfiguredTools, ToolServices
from tollgate.tools.io.engine_calls import PooledEngineCalls
from tollgate.tools.io.public_fetcher import PublicFetcher
from tollgate.tools.ports.base import RequestTools


class WiredTools(Struct, frozen=True, kw_only=True):
    """Implements `tools.ports.base.ServerTools` for one catalog."""

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
        """Return the tools of one request; `route` is the name of its route, if it uses one."""
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
