"""One hold for the lines that a provider runs together: kept for a day, settled once by the sum.

Keeps C83 and C64.
"""

from collections.abc import Mapping

import pytest
from msgspec.structs import replace

from tests.contract.test_batches import a_batch, batch_store, place_of
from tests.meddler import meddled
from tests.stores import DynamoStores, Stores, dynamo_stores, funded_key, record_of
from tollgate.aws.aws_json import AwsReply
from tollgate.core.batches import Submission
from tollgate.core.clock import DAY_S
from tollgate.core.errors import AccessError, LedgerError
from tollgate.core.ids import IdSource
from tollgate.stores.batches.records import DynamoLineRecords
from tollgate.stores.ports.administration import NewKey
from tollgate.stores.ports.base import Hold
from tollgate.stores.rules.sweep import HOLD_LIFETIME_S


async def held_by_a_batch(dynamo: DynamoStores) -> Hold:
    """The hold of an open batch's submission, on wallet and key."""
    _, principal = await funded_key(dynamo, 1_000)
    hold = await dynamo.ledger.hold(principal, 400, covered=True)
    submission = Submission(id=hold.id, provider="near", at_s=dynamo.clock.now_s())
    batch = replace(
        a_batch(dynamo), key_id=principal.key_id, status="in_progress", submissions={0: submission}
    )
    await batch_store(dynamo).create(batch)
    return hold


async def test_c83_a_submissions_hold_outlives_the_sweep_until_it_is_settled(
    dynamo: DynamoStores,
) -> None:
    hold = await held_by_a_batch(dynamo)
    dynamo.clock.now += DAY_S
    swept = await dynamo.sweeper.run()
    assert (swept.found, swept.oldest_age_s) == (0, 0)
    assert (await dynamo.credits.balance("acme")).held_nano_usd == 400

    ids, records = IdSource(dynamo.clock), DynamoLineRecords(dynamo.generations)
    for cost_nano_usd in (30, 40):
        await records.decide(record_of(replace(hold, id=ids.new_id()), cost_nano_usd))
    for _ in range(2):
        await dynamo.ledger.settle_sum(hold, 70)
    balance = await dynamo.credits.balance("acme")
    assert (balance.available_nano_usd, balance.held_nano_usd, balance.spent_nano_usd) == (
        930,
        0,
        70,
    )
    key = await dynamo.keys.get("acme", hold.key_id)
    assert key is not None
    assert (key.held_nano_usd, key.spent_nano_usd) == (0, 70)
    assert await dynamo.generations.get("acme", hold.id) is None
    assert not await dynamo.audit.run()


async def test_c83_what_no_open_batch_has_is_swept(dynamo: DynamoStores) -> None:
    hold = await held_by_a_batch(dynamo)
    store = batch_store(dynamo)
    [place] = await store.open_jobs()
    await store.change(place, lambda found: replace(found, status="cancelled", submissions={}))
    dynamo.clock.now += DAY_S
    assert (await dynamo.sweeper.run()).settled == 1
    assert (await dynamo.credits.balance("acme")).held_nano_usd == 0
    record = await dynamo.generations.get("acme", hold.id)
    assert record is not None
    assert record.outcome == "lost"


async def test_c83_a_sum_that_a_side_has_not_confirmed_is_not_settled(
    dynamo: DynamoStores,
) -> None:
    hold = await held_by_a_batch(dynamo)
    meddler, stores = meddled(dynamo)
    meddler.meddle = lambda payload: (
        "drop" if "us = us + :c" in str(payload.get("UpdateExpression")) else "pass"
    )
    with pytest.raises(LedgerError):
        await stores.ledger.settle_sum(hold, 70)
    await dynamo.ledger.settle_sum(hold, 70)
    key = await dynamo.keys.get("acme", hold.key_id)
    assert key is not None
    assert (key.held_nano_usd, key.spent_nano_usd) == (0, 70)


async def test_c83_a_submission_takes_a_place_only_as_long_as_a_request_could(
    stores: Stores,
) -> None:
    new = NewKey(workspace_id="acme", label="test", concurrency=1)
    _, principal = await funded_key(stores, 1_000, new)
    submitted = await stores.ledger.hold(principal, 300, covered=True)
    with pytest.raises(AccessError, match="1 requests at a time"):
        await stores.ledger.hold(principal, 100)
    stores.clock.now += HOLD_LIFETIME_S + 60
    hold = await stores.ledger.hold(principal, 100)
    # The place itself is taken once.
    with pytest.raises(AccessError, match="1 requests at a time"):
        await stores.ledger.hold(principal, 100)
    await stores.ledger.settle_sum(hold, 40)
    await stores.ledger.hold(principal, 100)
    await stores.ledger.settle_sum(submitted, 70)
    with pytest.raises(AccessError, match="1 requests at a time"):
        await stores.ledger.hold(principal, 100)
    assert (await stores.credits.balance("acme")).spent_nano_usd == 110


async def test_c83_a_submission_that_is_settled_meanwhile_gives_no_place_away(
    dynamo: DynamoStores,
) -> None:
    new = NewKey(workspace_id="acme", label="test", concurrency=1)
    _, principal = await funded_key(dynamo, 1_000, new)
    submitted = await dynamo.ledger.hold(principal, 300, covered=True)
    dynamo.clock.now += HOLD_LIFETIME_S + 60
    taken = list[Hold]()

    class Meanwhile:
        """The tables, in which another process settles and holds before the second write."""

        async def call(
            self, operation: str, payload: Mapping[str, object], *, attempts_max: int = 3
        ) -> AwsReply:
            if "attribute_exists(h.#p0)" in str(payload) and not taken:
                taken.append(await dynamo.ledger.hold(principal, 100))
                await dynamo.ledger.settle_sum(submitted, 0)
            return await dynamo.client.call(operation, payload, attempts_max=attempts_max)

    other = dynamo_stores(Meanwhile(), dynamo.tables, dynamo.clock)
    with pytest.raises(AccessError, match="1 requests at a time"):
        await other.ledger.hold(principal, 100)
    key = await dynamo.keys.get("acme", principal.key_id)
    assert key is not None
    assert (key.held_nano_usd, len(taken)) == (100, 1)


async def test_c83_a_covered_hold_takes_all_or_nothing(stores: Stores) -> None:
    _, principal = await funded_key(stores, 1_000)
    with pytest.raises(LedgerError):
        await stores.ledger.hold(principal, 1_001, covered=True)
    assert (await stores.credits.balance("acme")).available_nano_usd == 1_000
    hold = await stores.ledger.hold(principal, 1_000, covered=True)
    assert hold.wallet_nano_usd == 1_000
    await stores.ledger.settle_sum(hold, 400)
    assert (await stores.credits.balance("acme")).available_nano_usd == 600


async def test_c83_a_batch_with_submissions_is_stored_and_found(stores: Stores) -> None:
    store, batch = batch_store(stores), a_batch(stores)
    submission = Submission(id="s", provider="near", at_s=1.5, batch_id="theirs", runs_from=2)
    batch = replace(batch, submissions={3: submission})
    await store.create(batch)
    assert await store.get(place_of(batch)) == batch
