"""Wires the catalog follower, which loads each catalog that is published."""

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
    as_candidate: Callable[[_Built], _Built],
    clock: Clock,
    journal: Journal,
) -> CatalogFollower[_Built]:
    """Return the catalog follower, which starts with the catalog in the package."""
    # The build has checked the file, so each model can be decoded with its first request.
    bundled = Catalog.from_build(settings.catalog_file.read_bytes())
    return CatalogFollower(
        publications, bundled, make, as_candidate=as_candidate, clock=clock, journal=journal
    )
