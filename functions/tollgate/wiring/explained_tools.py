"""Wires the tools for explanations, which show the bounds of tools and run none."""

from collections.abc import Callable

from tollgate.core.clock import Clock
from tollgate.core.ids import IdSource
from tollgate.providers.ports.base import Provider
from tollgate.routing.planning.catalog import Catalog
from tollgate.routing.planning.planner import Planner
from tollgate.tools.ports.base import ServerTools


class _NoProviders:
    """Implements `engine.gateway.ProviderDirectory` for explanations, which call no provider."""

    def provider(self, slug: str) -> Provider:
        raise KeyError(slug)


def wire_explained_tools(clock: Clock) -> Callable[[Catalog], ServerTools]:
    """Return a function that creates the tools of a catalog."""

    def make(catalog: Catalog) -> ServerTools:
        # Imported with the first explanation of a request with tools.
        from tollgate.engine.work.painter import CatalogPainter
        from tollgate.tools.configured import ConfiguredTools

        painter = CatalogPainter(
            planner=Planner(catalog),
            providers=_NoProviders(),
            clock=clock,
            ids=IdSource(clock),
            when_s=clock.now_s(),
        )
        return ConfiguredTools(
            section=catalog.tools.section, routes=catalog.routes, painter=painter, services=None
        )

    return make
