"""Wires the tools that the gateway runs for models; imported with the first such request."""

from tollgate.core.clock import Clock
from tollgate.core.documents.reading import DocumentReader
from tollgate.core.ids import IdSource
from tollgate.core.principal import Principal
from tollgate.engine.gateway import ProviderDirectory
from tollgate.engine.work.inner_calls import InnerCalls
from tollgate.engine.work.painter import CatalogPainter
from tollgate.providers.ports.base import Provider
from tollgate.providers.transports.http_pool import HttpPool
from tollgate.routing.planning.catalog import Catalog
from tollgate.routing.planning.planner import Planner
from tollgate.stores.ports.base import SecretStore
from tollgate.tools.configured import ConfiguredTools, ToolServices
from tollgate.tools.io.engine_calls import PooledEngineCalls
from tollgate.tools.ports.base import PageFetcher, ServerTools


class _NoProviders:
    """Implements `engine.gateway.ProviderDirectory` for explanations, which call no provider."""

    def provider(self, slug: str, principal: Principal) -> Provider:
        raise KeyError(slug)


def wire_tools(
    catalog: Catalog,
    planner: Planner,
    providers: ProviderDirectory,
    *,
    pool: HttpPool,
    secrets: SecretStore,
    fetcher: PageFetcher,
    reader: DocumentReader | None,
    clock: Clock,
) -> ServerTools:
    """Return a catalog's tools."""
    services = ToolServices(
        calls=PooledEngineCalls(pool), pages=fetcher, reader=reader, secrets=secrets, clock=clock
    )
    return _configure(catalog, planner, providers, services, clock=clock)


def wire_unrun_tools(catalog: Catalog, clock: Clock) -> ServerTools:
    """Return a catalog's tools for explanations, which show the tools' limits and run no tool."""
    return _configure(catalog, Planner(catalog), _NoProviders(), None, clock=clock)


def _configure(
    catalog: Catalog,
    planner: Planner,
    providers: ProviderDirectory,
    services: ToolServices | None,
    *,
    clock: Clock,
) -> ServerTools:
    calls = InnerCalls(
        planner=planner,
        providers=providers,
        clock=clock,
        ids=IdSource(clock),
        when_s=clock.now_s(),
    )
    painter = CatalogPainter(calls=calls)
    return ConfiguredTools(
        section=catalog.tools.section, routes=catalog.routes, painter=painter, services=services
    )
