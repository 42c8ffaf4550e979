"""The key that seals the conversations of a workspace is made once, and never changes.

Keeps C75.
"""

import asyncio

from tests.memory.seal_keys import MemorySealKeys
from tests.stores import DynamoStores, Stores
from tollgate.core.ids import IdSource
from tollgate.stores.ports.base import SealKeys
from tollgate.stores.records.seal_keys import KEY_BYTES, DynamoSealKeys


def seal_keys(stores: Stores) -> SealKeys:
    ids = IdSource(stores.clock)
    if isinstance(stores, DynamoStores):
        return DynamoSealKeys(stores.client, stores.tables.core, ids)
    return MemorySealKeys(ids)


async def test_c75_a_workspace_keeps_its_own_key(stores: Stores) -> None:
    keys = seal_keys(stores)
    key = await keys.get("acme")
    assert len(key) == KEY_BYTES
    assert await keys.get("acme") == key != await keys.get("other")


async def test_c75_processes_that_begin_at_once_agree_on_the_key(dynamo: DynamoStores) -> None:
    keys = await asyncio.gather(*(seal_keys(dynamo).get("acme") for _ in range(6)))
    assert len(set(keys)) == 1
    assert await seal_keys(dynamo).get("acme") == keys[0]
