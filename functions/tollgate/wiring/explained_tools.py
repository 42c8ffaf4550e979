"""Wires the gateway's tools for explanations, which show their bounds and run none."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from tollgate.core.clock import Clock
from tollgate.routing.planning.catalog import Catalog
from tollgate.routing.planning.planner import Planner
from tollgate.settings import Settings

if TYPE_CHECKING:
    from tollgate.tools.base import ServerTools


def wire_explained_tools(settings: Settings, clock: Clock) -> "Callable[[Catalog], ServerTools]":
    """Return the maker of a catalog's tools."""

    def make(catalog: Catalog) -> "ServerTools":
        # Imported with the first request for tools that is explained: connections are made with
        # the first run, so that none is.
        from tollgate.providers.registry import CatalogProviders
        from tollgate.providers.transports.media_guard import MediaGuard
        from tollgate.wiring.generation import wire_upstream
        from tollgate.wiring.tools import WiredTools

        upstream = wire_upstream(settings, clock)
        return WiredTools(
            catalog=catalog,
            planner=Planner(catalog),
            providers=CatalogProviders(catalog, upstream.registry),
            pool=upstream.pool,
            secrets=upstream.keys,
            guard=MediaGuard(),
            reader=None,
            clock=clock,
        )

    return make
