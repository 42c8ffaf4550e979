"""Cases of the ledger on DynamoDB alone: lost replies, unknown outcomes, shards."""

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pytest
from msgspec.structs import replace

from tests.meddler import first, holds, is_hold, meddled
from tests.stores import (
    TESTER,
    DynamoStores,
    disable,
    dynamo_stores,
    funded_key,
    record_of,
)
from tollgate.aws.attributes import Item
from tollgate.aws.aws_json import ATTEMPTS_MAX, AwsReply
from tollgate.aws.failures import ConditionFailed
from tollgate.core.errors import AccessError, ErrorCode, LedgerError
from tollgate.core.ids import IdSource, created_s
from tollgate.stores.aws.decoding import read_number
from tollgate.stores.aws.tables import get_item, key_state_key, wallet_key
from tollgate.stores.ports.credit import CreditEntry
from tollgate.stores.rules.account import UNLIMITED, shard_order
from tollgate.stores.rules.periods import minute_bucket
from tollgate.stores.rules.sweep import HOLD_LIFETIME_S


@dataclass
class Twice:
    """A network that delivers a hold on one shard twice, and a grant in between."""

    stores: DynamoStores
    shard: int
    done: bool = False

    async def call(
        self, operation: str, payload: Mapping[str, object], *, attempts_max: int = ATTEMPTS_MAX
    ) -> AwsReply:
        client = self.stores.client
        if self.done or not is_hold(wallet_key("acme", self.shard))(payload):
            return await client.call(operation, payload, attempts_max=attempts_max)
        self.done = True
        with pytest.raises(ConditionFailed) as refused:
            await client.call(operation, payload)
        await self.stores.wallets.move(
            "acme", 200, source=1 - self.shard, target=self.shard, token="between"
        )
        await client.call(operation, payload)
        raise refused.value


async def wallet(stores: DynamoStores, shard: int) -> Item:
    item = await get_item(stores.client, stores.tables.ledger, wallet_key("acme", shard))
    assert item is not None
    return item


def ids_of(stores: DynamoStores) -> Iterator[str]:
    ids = IdSource(stores.clock)
    while True:
        yield ids.new_id()


@pytest.mark.parametrize("side", ["wallet", "key"])
@pytest.mark.parametrize("what", ["lose", "drop", "refuse"])
async def test_a_hold_without_an_answer_is_released_and_tried_under_another_id(
    dynamo: DynamoStores, side: str, what: str
) -> None:
    _, principal = await funded_key(dynamo, 1_000)
    key = wallet_key("acme", 0) if side == "wallet" else key_state_key(principal.key_id)
    meddler, stores = meddled(dynamo)
    meddler.meddle = first(what, is_hold(key))

    hold = await stores.ledger.hold(principal, 1_000)

    assert await holds(dynamo, wallet_key("acme", 0)) == {hold.id: 1_000}
    assert await holds(dynamo, key_state_key(principal.key_id)) == {hold.id: 1_000}
    ids = [
        payload["ExpressionAttributeNames"]["#h"]  # type: ignore[index]
        for _, payload in meddler.sent
        if is_hold(key)(payload)
    ]
    # A definite refusal may send another form of the same id; silence never does.
    assert ids[0] not in ids[1:]
    assert len(set(ids)) == 2


async def test_after_three_ids_without_an_answer_the_ledger_refuses(dynamo: DynamoStores) -> None:
    _, principal = await funded_key(dynamo, 1_000)
    meddler, stores = meddled(dynamo)
    wallet_hold = is_hold(wallet_key("acme", 0))
    meddler.meddle = lambda payload: "lose" if wallet_hold(payload) else "pass"

    with pytest.raises(LedgerError) as raised:
        await stores.ledger.hold(principal, 10)

    assert raised.value.code is ErrorCode.SERVICE_UNAVAILABLE
    assert raised.value.retry_after_s == 1.0
    assert sum(wallet_hold(payload) for _, payload in meddler.sent) == 3
    assert await holds(dynamo, wallet_key("acme", 0)) == {}
    assert await holds(dynamo, key_state_key(principal.key_id)) == {}


async def test_a_refusal_beside_a_silent_side_is_told_and_the_silent_side_released(
    dynamo: DynamoStores,
) -> None:
    _, principal = await funded_key(dynamo, 1_000)
    await disable(dynamo, principal.key_id)
    meddler, stores = meddled(dynamo)
    meddler.meddle = first("lose", is_hold(wallet_key("acme", 0)))

    with pytest.raises(AccessError) as raised:
        await stores.ledger.hold(principal, 10)

    assert raised.value.code is ErrorCode.INVALID_API_KEY
    assert await holds(dynamo, wallet_key("acme", 0)) == {}


async def test_a_request_that_took_minutes_to_arrive_holds_in_the_minute_it_began(
    dynamo: DynamoStores,
) -> None:
    """Its bucket is one that the next hold would remove, and no path may be in an update twice."""
    _, principal = await funded_key(dynamo, 1_000)
    slow_id = IdSource(dynamo.clock).new_id()
    await dynamo.ledger.hold(principal, 1, tokens=10)
    dynamo.clock.now += 180
    await dynamo.ledger.hold(principal, 1, tokens=10)

    hold = await dynamo.ledger.hold(principal, 1, slow_id, tokens=10)

    assert hold.id == slow_id
    state = await get_item(dynamo.client, dynamo.tables.ledger, key_state_key(principal.key_id))
    assert state is not None
    assert int(state[minute_bucket(created_s(slow_id))]["N"]) == UNLIMITED - 20


async def test_a_hold_that_is_delivered_twice_lands_once(dynamo: DynamoStores) -> None:
    _, principal = await funded_key(dynamo, 1_000)
    meddler, stores = meddled(dynamo)

    # The second one is sent in the form for a busy rate bucket, which would fit again.
    ids = [(await stores.ledger.hold(principal, 10)).id for _ in range(2)]

    for operation, payload in meddler.sent:
        with pytest.raises(ConditionFailed):
            await dynamo.client.call(operation, payload)
    assert (await dynamo.credits.balance("acme")).available_nano_usd == 980
    key = await dynamo.keys.get("acme", principal.key_id)
    assert key is not None
    assert key.held_nano_usd == 20
    assert await holds(dynamo, key_state_key(principal.key_id)) == dict.fromkeys(ids, 10)


async def test_a_caller_that_leaves_during_the_hold_leaves_nothing_behind(
    dynamo: DynamoStores,
) -> None:
    _, principal = await funded_key(dynamo, 1_000)
    holding = asyncio.create_task(dynamo.ledger.hold(principal, 10))
    await asyncio.sleep(0)
    await asyncio.sleep(0)

    holding.cancel()
    with pytest.raises(asyncio.CancelledError):
        await holding

    assert await holds(dynamo, wallet_key("acme", 0)) == {}
    assert await holds(dynamo, key_state_key(principal.key_id)) == {}


async def test_a_hold_of_another_amount_is_settled_with_that_amount(dynamo: DynamoStores) -> None:
    _, principal = await funded_key(dynamo, 1_000)
    hold = await dynamo.ledger.hold(principal, 400)
    believed = replace(hold, wallet_nano_usd=250, key_nano_usd=250)

    await dynamo.ledger.settle(believed, record_of(believed, 100))

    balance = await dynamo.credits.balance("acme")
    assert (balance.available_nano_usd, balance.held_nano_usd, balance.spent_nano_usd) == (
        900,
        0,
        100,
    )
    key = await dynamo.keys.get("acme", principal.key_id)
    assert key is not None
    assert (key.held_nano_usd, key.spent_nano_usd) == (0, 100)


async def test_a_decided_generation_that_cannot_be_settled_is_left_to_the_sweeper(
    dynamo: DynamoStores, caplog: pytest.LogCaptureFixture
) -> None:
    _, principal = await funded_key(dynamo, 1_000)
    hold = await dynamo.ledger.hold(principal, 400)
    meddler, stores = meddled(dynamo)
    meddler.meddle = lambda payload: "drop" if "UpdateExpression" in payload else "pass"

    standing = await stores.ledger.settle(hold, record_of(hold, 150))

    assert standing.cost_nano_usd == 150
    # moto logs each request.
    assert not [record for record in caplog.records if record.name.startswith("tollgate")]
    dynamo.clock.now += HOLD_LIFETIME_S + 1
    assert (await dynamo.sweeper.run()).settled == 1
    assert (await dynamo.credits.balance("acme")).spent_nano_usd == 150
    assert await dynamo.generations.get("acme", hold.id) == standing


async def test_an_undecided_settlement_is_an_error(dynamo: DynamoStores) -> None:
    _, principal = await funded_key(dynamo, 1_000)
    hold = await dynamo.ledger.hold(principal, 400)
    meddler, stores = meddled(dynamo)
    meddler.meddle = lambda payload: "drop" if "Item" in payload else "pass"

    with pytest.raises(LedgerError) as raised:
        await stores.ledger.settle(hold, record_of(hold, 150))

    assert raised.value.code is ErrorCode.SERVICE_UNAVAILABLE
    assert await holds(dynamo, wallet_key("acme", 0)) == {hold.id: 400}


async def test_a_store_that_is_silent_for_a_while_costs_no_answer_its_record(
    dynamo: DynamoStores,
) -> None:
    """A reply is lost; the next write finds its own record."""
    _, principal = await funded_key(dynamo, 1_000)
    hold = await dynamo.ledger.hold(principal, 400)
    meddler, stores = meddled(dynamo)
    meddler.meddle = first("lose", lambda payload: "Item" in payload)

    assert (await stores.ledger.settle(hold, record_of(hold, 150))).cost_nano_usd == 150
    assert await holds(dynamo, wallet_key("acme", 0)) == {}


# Shards.


async def test_a_hold_looks_on_every_shard_before_it_refuses(dynamo: DynamoStores) -> None:
    await dynamo.workspaces.ensure("acme", shards=4, by=TESTER)
    _, principal = await funded_key(dynamo, 1_000)
    assert principal.shards == 4

    held = [await dynamo.ledger.hold(principal, 100) for _ in range(10)]
    with pytest.raises(LedgerError) as raised:
        await dynamo.ledger.hold(principal, 100)

    assert len({hold.shard for hold in held}) == 1
    assert raised.value.code is ErrorCode.INSUFFICIENT_CREDITS
    for hold in held:
        await dynamo.ledger.settle(hold, record_of(hold, 60))
    assert (await dynamo.credits.balance("acme")).spent_nano_usd == 600


async def test_c64_credit_is_taken_from_any_shard_that_has_it(dynamo: DynamoStores) -> None:
    await dynamo.workspaces.ensure("acme", shards=4, by=TESTER)
    await dynamo.credits.grant("acme", "first", 8, "paid", by=TESTER)
    for number in range(8):
        taken = CreditEntry(
            id=f"taken-{number}",
            workspace_id="acme",
            kind="adjustment",
            amount_nano_usd=-1,
            note="",
            created_s=0,
        )
        assert await dynamo.credits.enter(taken, by=TESTER)
    balance = await dynamo.credits.balance("acme")
    assert (balance.granted_nano_usd, balance.available_nano_usd) == (0, 0)


async def test_a_hold_that_comes_twice_is_charged_on_the_shard_that_its_record_names(
    dynamo: DynamoStores,
) -> None:
    """The first delivery finds an empty shard, the second the credit that came in between."""
    await dynamo.workspaces.ensure("acme", shards=2, by=TESTER)
    _, principal = await funded_key(dynamo, 1_000)
    poor = next(
        shard
        for shard, item in enumerate([await wallet(dynamo, shard) for shard in range(2)])
        if read_number(item, "av") == 0
    )
    twice = Twice(dynamo, poor)
    stores = dynamo_stores(twice, dynamo.tables, dynamo.clock)

    first_id = next(id_ for id_ in ids_of(dynamo) if shard_order(id_, 2)[0] == poor)
    hold = await stores.ledger.hold(principal, 100, first_id)
    assert (hold.id, hold.shard) == (first_id, 1 - poor)
    assert await holds(dynamo, wallet_key("acme", poor)) == {hold.id: 100}
    await stores.ledger.settle(hold, record_of(hold, 60))
    dynamo.clock.now += HOLD_LIFETIME_S + 1
    assert (await dynamo.sweeper.run()).settled == 1

    balance = await dynamo.credits.balance("acme")
    assert (balance.spent_nano_usd, balance.held_nano_usd) == (60, 0)
    assert await dynamo.audit.run() == []


async def test_a_workspace_keeps_the_shards_it_began_with(dynamo: DynamoStores) -> None:
    assert (await dynamo.workspaces.ensure("acme", shards=2, by=TESTER)).shards == 2
    assert (await dynamo.workspaces.ensure("acme", shards=5, by=TESTER)).shards == 2
