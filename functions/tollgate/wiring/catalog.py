"""Wires the followed catalog: the published one, and until then the bundled one."""

from collections.abc import Callable
from typing import TypeVar

from tollgate.core.clock import Clock
from tollgate.engine.gateway import Journal
from tollgate.engine.routing.catalog_follower import CatalogFollower
from tollgate.routing.planning.catalog import Catalog
from tollgate.settings import Settings
from tollgate.stores.routing.publications import PublicationStore

_Made = TypeVar("_Made")


def wire_catalog_follower(
    settings: Settings,
    publications: PublicationStore,
    make: Callable[[Catalog], _Made],
    *,
    clock: Clock,
    journal: Journal,
) -> CatalogFollower[_Made]:
    """Make the follower of the published catalog, which starts with the one beside the code."""
    # The build checked it by this very code, so a start reads no model that no request names.
    bundled = Catalog.from_build(settings.catalog_file.read_bytes())
    return CatalogFollower(publications, bundled, make, clock=clock, journal=journal)
