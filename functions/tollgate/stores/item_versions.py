"""The version of the stored items, which tells a release whether it would misread a store.

A release writes items of version WRITTEN, and reads, changes and settles items up to version READ.
Adding an optional attribute or a kind of item changes neither, because releases ignore both. Any
other change takes two releases: the first reads the new form (READ + 1), the next writes the form
(WRITTEN + 1). A release and its predecessor can therefore always share a store.
"""

from typing import Final

from tollgate.aws.attributes import number
from tollgate.aws.aws_json import AwsCaller
from tollgate.aws.failures import refusing_when_unavailable
from tollgate.core.errors import ErrorCode, NewerItems
from tollgate.stores.aws.decoding import read_number
from tollgate.stores.aws.expressions import ITEMS_RAISE
from tollgate.stores.aws.items import ItemVersionItem
from tollgate.stores.aws.tables import ITEM_VERSION_KEY, get_item, try_update

# `tollgate upgrade` reads both numbers in the text of this file.
WRITTEN: Final = 1
READ: Final = 1


async def check_item_version(client: AwsCaller, table: str, read: int = READ) -> None:
    """Raise NewerItems if the core table has items of a version above `read`."""
    with refusing_when_unavailable():
        item = await get_item(client, table, ITEM_VERSION_KEY)
        stored = 0 if item is None else read_number(item, ItemVersionItem.VERSION)
    if stored > read:
        raise NewerItems(
            ErrorCode.SERVICE_UNAVAILABLE,
            f"A newer release has stored items of version {stored}, and this release reads version "
            f"{read} at most: install the newer release again. Nothing was changed.",
        )


async def claim_item_version(
    client: AwsCaller, table: str, *, written: int = WRITTEN, read: int = READ
) -> None:
    """Record in the core table that items of version `written` follow; first raise NewerItems if
    needed.
    """
    await check_item_version(client, table, read)
    raised = ITEMS_RAISE.build(table, ITEM_VERSION_KEY, {":iv": number(written)})
    with refusing_when_unavailable():
        # The condition fails if the recorded version is already as high.
        await try_update(client, raised)
