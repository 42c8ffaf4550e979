"""The sweeper on DynamoDB: a real record wins, everything else is lost at no cost.

Keeps C67.
"""

from tests.meddler import first, holds, meddled
from tests.stores import (
    DynamoStores,
    funded_key,
    record_of,
)
from tollgate.stores.aws.tables import key_state_key, wallet_key
from tollgate.stores.money.sweeper import SweepReport
from tollgate.stores.rules.sweep import HOLD_LIFETIME_S


async def test_c67_a_killed_generation_is_lost_and_costs_nothing(dynamo: DynamoStores) -> None:
    _, principal = await funded_key(dynamo, 1_000)
    hold = await dynamo.ledger.hold(principal, 400)

    dynamo.clock.now += HOLD_LIFETIME_S
    young = await dynamo.ledger.hold(principal, 10)
    assert await dynamo.sweeper.run() == SweepReport(
        found=0, settled=0, oldest_age_s=dynamo.clock.now - int(dynamo.clock.now - HOLD_LIFETIME_S)
    )
    dynamo.clock.now += 1
    report = await dynamo.sweeper.run()

    assert (report.found, report.settled) == (1, 1)
    record = await dynamo.generations.get("acme", hold.id)
    assert record is not None
    assert (record.outcome, record.cost_nano_usd, record.key_id) == (
        "lost",
        0,
        principal.key_id,
    )
    assert record.held_nano_usd == 400
    assert await holds(dynamo, wallet_key("acme", 0)) == {young.id: 10}
    assert await holds(dynamo, key_state_key(principal.key_id)) == {young.id: 10}
    assert (await dynamo.credits.balance("acme")).available_nano_usd == 990


async def test_a_generation_that_ends_after_it_was_swept_is_not_charged(
    dynamo: DynamoStores,
) -> None:
    _, principal = await funded_key(dynamo, 1_000)
    hold = await dynamo.ledger.hold(principal, 400)
    dynamo.clock.now += HOLD_LIFETIME_S + 1
    await dynamo.sweeper.run()

    standing = await dynamo.ledger.settle(hold, record_of(hold, 399))

    assert standing.outcome == "lost"
    balance = await dynamo.credits.balance("acme")
    assert (balance.available_nano_usd, balance.spent_nano_usd) == (1_000, 0)


async def test_a_hold_that_landed_on_one_side_only_is_expired(dynamo: DynamoStores) -> None:
    _, principal = await funded_key(dynamo, 1_000)
    for side, other in (
        (wallet_key("acme", 0), key_state_key(principal.key_id)),
        (key_state_key(principal.key_id), wallet_key("acme", 0)),
    ):
        hold = await dynamo.ledger.hold(principal, 100)
        await dynamo.client.call(
            "UpdateItem",
            {
                "TableName": dynamo.tables.ledger,
                "Key": side,
                "UpdateExpression": "REMOVE h.#h",
                "ExpressionAttributeNames": {"#h": hold.id},
            },
        )
        dynamo.clock.now += HOLD_LIFETIME_S + 2
        report = await dynamo.sweeper.run()

        assert (report.found, report.settled) == (1, 1)
        assert await holds(dynamo, other) == {}


async def test_a_sweeper_that_cannot_settle_says_so_and_comes_back(dynamo: DynamoStores) -> None:
    _, principal = await funded_key(dynamo, 1_000)
    await dynamo.ledger.hold(principal, 400)
    dynamo.clock.now += HOLD_LIFETIME_S + 1
    meddler, stores = meddled(dynamo)
    meddler.meddle = first("drop", lambda payload: "UpdateExpression" in payload)

    first_run = await stores.sweeper.run()
    second_run = await stores.sweeper.run()

    assert (first_run.found, first_run.settled) == (1, 0)
    assert (second_run.found, second_run.settled) == (1, 1)


async def test_an_empty_ledger_has_nothing_to_sweep(dynamo: DynamoStores) -> None:
    assert await dynamo.sweeper.run() == SweepReport(found=0, settled=0, oldest_age_s=0.0)
