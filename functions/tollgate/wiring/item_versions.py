"""Wires the version check of the stored items, for servers and scheduled work."""

from tollgate.stores.item_versions import check_item_version, claim_item_version
from tollgate.wiring.stores import Stores


async def check_store(stores: Stores) -> None:
    """Raise NewerItems if a newer release has written the tables."""
    await check_item_version(stores.client, stores.tables.core)


async def claim_store(stores: Stores) -> None:
    """Record that this release writes the tables; raise NewerItems if it would misread them."""
    await claim_item_version(stores.client, stores.tables.core)
