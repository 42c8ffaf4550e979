"""Keys on DynamoDB: what is cached, what is stored, what is tidied away.

Keeps C60.
"""

import pytest

from tests.meddler import meddled
from tests.stores import (
    DynamoStores,
    disable,
    funded_key,
    record_of,
)
from tollgate.core.errors import AccessError
from tollgate.stores.aws.tables import key_state_key


async def test_a_key_is_read_once_in_five_seconds(dynamo: DynamoStores) -> None:
    secret, principal = await funded_key(dynamo, 1_000)
    meddler, stores = meddled(dynamo)

    for _ in range(3):
        assert await stores.keys.authenticate(secret) == principal
    assert len(meddler.sent) == 1
    await disable(dynamo, principal.key_id)
    stores.clock.now += 4.9
    assert await stores.keys.authenticate(secret) == principal
    stores.clock.now += 0.1
    with pytest.raises(AccessError):
        await stores.keys.authenticate(secret)
    assert len(meddler.sent) == 2


async def test_garbage_is_refused_without_asking_the_store(dynamo: DynamoStores) -> None:
    meddler, stores = meddled(dynamo)

    with pytest.raises(AccessError):
        await stores.keys.authenticate("sk-tg-" + "a" * 39)

    assert meddler.sent == []


async def test_c60_only_the_hash_of_a_secret_is_stored(dynamo: DynamoStores) -> None:
    secret, _ = await funded_key(dynamo, 1_000)

    for table in (dynamo.tables.core, dynamo.tables.ledger):
        everything = await dynamo.client.call("Scan", {"TableName": table})
        assert secret not in str(everything)
        assert secret[6:20] not in str(everything)


async def test_buckets_of_ended_periods_are_removed_on_the_way(dynamo: DynamoStores) -> None:
    _, principal = await funded_key(dynamo, 1_000)
    for _ in range(3):
        hold = await dynamo.ledger.hold(principal, 10)
        await dynamo.ledger.settle(hold, record_of(hold, 1))
        dynamo.clock.now += 40 * 86_400
    await dynamo.ledger.hold(principal, 10)

    reply = await dynamo.client.call(
        "GetItem",
        {"TableName": dynamo.tables.ledger, "Key": key_state_key(principal.key_id)},
    )
    buckets = sorted(name for name in reply["Item"] if name.startswith("b_"))
    # Those of the last hold, and of the one before, which the next one will remove.
    assert len(buckets) == 7
    assert "b_20261121" not in buckets
