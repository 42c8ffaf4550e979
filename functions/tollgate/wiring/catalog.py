"""Wires the catalog follower: it serves the published catalog, and the bundled one until then."""

from collections.abc import Callable
from typing import TypeVar

from tollgate.core.clock import Clock
from tollgate.engine.gateway import Journal
from tollgate.engine.routing.catalog_follower import CatalogFollower
from tollgate.routing.planning.catalog import Catalog
from tollgate.settings import Settings
from tollgate.stores.routing.publications import PublicationStore

_Built = TypeVar("_Built")


def wire_catalog_follower(
    settings: Settings,
    publications: PublicationStore,
    make: Callable[[Catalog], _Built],
    *,
    clock: Clock,
    journal: Journal,
) -> CatalogFollower[_Built]:
    """Return the follower of the published catalog, which starts with the bundled one."""
    # The build checked the file with the same code, so models are decoded only when requests name
    # them.
    bundled = Catalog.from_build(settings.catalog_file.read_bytes())
    return CatalogFollower(publications, bundled, make, clock=clock, journal=journal)
