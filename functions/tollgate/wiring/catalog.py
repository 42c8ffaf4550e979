"""Where the catalog comes from."""

from tollgate.routing.catalog import Catalog
from tollgate.settings import Settings


def bundled_catalog(settings: Settings) -> Catalog:
    """The compiled routing file that lies beside the code."""
    return Catalog.from_json(settings.catalog_file.read_bytes())
