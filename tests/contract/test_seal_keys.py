"""The key that seals the conversations of a workspace is made once, and never changes.

Keeps C75.
"""

import asyncio

from tests.stores import DynamoStores, Stores, dynamo_stores
from tollgate.stores.records.seal_keys import KEY_BYTES


async def test_c75_a_workspace_keeps_its_own_key(stores: Stores) -> None:
    key = await stores.seal_keys.get("acme")
    assert len(key) == KEY_BYTES
    assert await stores.seal_keys.get("acme") == key != await stores.seal_keys.get("other")


async def test_c75_processes_that_begin_at_once_agree_on_the_key(honest: DynamoStores) -> None:
    processes = [dynamo_stores(honest.client, honest.tables, honest.clock) for _ in range(6)]
    keys = await asyncio.gather(*(each.seal_keys.get("acme") for each in processes))
    assert len(set(keys)) == 1
