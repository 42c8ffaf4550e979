"""The version of the stored items: who may run on a store that another release has written.

Keeps C96.
"""

import pytest

from tests.stores import DynamoStores
from tollgate.core.errors import NewerItems
from tollgate.stores.item_versions import (
    READ,
    WRITTEN,
    check_item_version,
    claim_item_version,
)


async def test_c96_a_release_and_the_one_before_run_on_one_store(dynamo: DynamoStores) -> None:
    client, table = dynamo.client, dynamo.tables.core
    await check_item_version(client, table)
    await claim_item_version(client, table, written=1, read=2)
    await claim_item_version(client, table, written=2, read=2)
    # The release before reads what it does not write yet, and lowers nothing.
    await claim_item_version(client, table, written=1, read=2)
    with pytest.raises(NewerItems, match="items of version 2, and this release reads version 1"):
        await check_item_version(client, table, read=1)


async def test_c96_an_older_release_notes_nothing(dynamo: DynamoStores) -> None:
    client, table = dynamo.client, dynamo.tables.core
    await claim_item_version(client, table, written=3, read=3)
    with pytest.raises(NewerItems, match="install the newer release again"):
        await claim_item_version(client, table, written=1, read=2)
    await check_item_version(client, table, read=3)


def test_a_release_reads_what_it_writes() -> None:
    assert WRITTEN <= READ <= WRITTEN + 1
