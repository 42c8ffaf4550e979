"""Credit that expires and credit that is lent, on DynamoDB: what is taken, when, and only once.

Keeps C64.
"""

import asyncio
from itertools import count

import pytest

from tests.faults.administration import Crashing
from tests.faulty_client import Killed
from tests.stores import (
    TESTER,
    DynamoStores,
    HandClock,
    aws_client,
    dynamo_stores,
    fresh_tables,
    funded_key,
    record_of,
)
from tollgate.core.errors import ErrorCode, LedgerError, RequestError
from tollgate.core.ids import IdSource
from tollgate.core.principal import Principal
from tollgate.stores.money.credit_lots import CreditLots
from tollgate.stores.ports.base import Hold
from tollgate.stores.ports.credit import CreditEntry, EntryKind
from tollgate.stores.rules.sweep import HOLD_LIFETIME_S

DAY_S = 86_400


def lots_of(stores: DynamoStores) -> CreditLots:
    ids = IdSource(stores.clock)
    return CreditLots(stores.client, stores.tables, stores.wallets, ids=ids, clock=stores.clock)


async def enter(
    stores: DynamoStores,
    name: str,
    amount: int,
    *,
    lasts_s: int | None = None,
    kind: EntryKind = "grant",
) -> bool:
    now_s = int(stores.clock.now)
    entry = CreditEntry(
        id=name,
        workspace_id="acme",
        kind=kind,
        amount_nano_usd=amount,
        note="",
        created_s=now_s,
        expires_s=None if lasts_s is None else now_s + lasts_s,
    )
    return await stores.credits.enter(entry, by=TESTER)


async def spend(stores: DynamoStores, principal: Principal, amount: int) -> None:
    hold = await stores.ledger.hold(principal, amount)
    await stores.ledger.settle(hold, record_of(hold, amount))


async def left(stores: DynamoStores) -> dict[str, int]:
    return {lot.id: lot.left_nano_usd for lot in (await stores.credits.balance("acme")).lots}


async def available(stores: DynamoStores) -> int:
    return (await stores.credits.balance("acme")).available_nano_usd


async def entries(stores: DynamoStores, kind: EntryKind) -> list[tuple[str, int]]:
    found = (await stores.credits.entries("acme")).found
    return sorted((it.id, it.amount_nano_usd) for it in found if it.kind == kind)


async def test_c64_credit_that_expires_first_is_spent_first_and_its_rest_is_taken_back(
    dynamo: DynamoStores,
) -> None:
    _, principal = await funded_key(dynamo, 1_000)
    assert await enter(dynamo, "plan", 100, lasts_s=2 * DAY_S)
    assert await enter(dynamo, "trial", 50, lasts_s=DAY_S)
    assert not await enter(dynamo, "trial", 50, lasts_s=DAY_S)
    await spend(dynamo, principal, 60)
    assert await left(dynamo) == {"plan": 90}
    dynamo.clock.now += DAY_S
    assert await lots_of(dynamo).expire("acme") == 0
    dynamo.clock.now += DAY_S
    assert await lots_of(dynamo).expire("acme") == 1
    assert await lots_of(dynamo).expire("acme") == 0
    assert await entries(dynamo, "expiry") == [("expiry:plan:0", -90)]
    assert (await left(dynamo), await available(dynamo)) == ({}, 1_000)
    assert await dynamo.audit.run() == []


async def test_c64_all_lots_that_are_due_are_taken_back_in_one_round(dynamo: DynamoStores) -> None:
    await funded_key(dynamo, 1_000)
    for number in range(7):
        await enter(dynamo, f"plan-{number}", 10, lasts_s=60)
    dynamo.clock.now += 60
    assert await lots_of(dynamo).expire("acme") == 7
    assert (await left(dynamo), await available(dynamo)) == ({}, 1_000)


async def test_c64_what_is_held_at_the_expiry_may_be_spent_and_what_is_released_is_taken(
    dynamo: DynamoStores,
) -> None:
    _, principal = await funded_key(dynamo, 1_000)
    await enter(dynamo, "plan", 100, lasts_s=60)
    hold = await dynamo.ledger.hold(principal, 40)
    dynamo.clock.now += 60
    assert await lots_of(dynamo).expire("acme") == 1
    assert await available(dynamo) == 1_000
    await dynamo.ledger.settle(hold, record_of(hold, 15))
    assert await left(dynamo) == {"plan": 25}
    assert await lots_of(dynamo).expire("acme") == 1
    assert await entries(dynamo, "expiry") == [("expiry:plan:0", -60), ("expiry:plan:1", -25)]
    assert await available(dynamo) == 1_000


async def test_c64_an_expiry_takes_from_every_shard_that_has_some(dynamo: DynamoStores) -> None:
    await dynamo.workspaces.ensure("acme", shards=4, by=TESTER)
    for number in range(8):
        await enter(dynamo, f"plan-{number}", 100, lasts_s=60)
    dynamo.clock.now += 60
    while await lots_of(dynamo).expire("acme"):
        pass
    assert (await left(dynamo), await available(dynamo)) == ({}, 0)
    assert await dynamo.audit.run() == []


async def test_c64_credit_that_is_taken_back_beyond_the_rest_comes_from_what_expires(
    dynamo: DynamoStores,
) -> None:
    await funded_key(dynamo, 10)
    await enter(dynamo, "plan", 100, lasts_s=DAY_S)
    await enter(dynamo, "correction", -30, kind="adjustment")
    assert await left(dynamo) == {"plan": 80}
    await enter(dynamo, "more", 1_000)
    dynamo.clock.now += DAY_S
    await lots_of(dynamo).expire("acme")
    assert await entries(dynamo, "expiry") == [("expiry:plan:0", -80)]


async def test_c64_a_workspace_without_credit_that_expires_has_no_item_of_lots(
    dynamo: DynamoStores,
) -> None:
    await funded_key(dynamo, 1_000)
    await enter(dynamo, "correction", -30, kind="adjustment")
    assert (await lots_of(dynamo).read("acme")).revision == 0


async def test_c64_a_lent_amount_is_spent_like_credit_and_owed_until_it_is_paid(
    dynamo: DynamoStores,
) -> None:
    _, principal = await funded_key(dynamo, 10)
    assert await dynamo.credits.set_credit_limit("acme", 100, by=TESTER)
    assert not await dynamo.credits.set_credit_limit("acme", 100, by=TESTER)
    await spend(dynamo, principal, 70)
    balance = await dynamo.credits.balance("acme")
    assert (balance.owed_nano_usd, balance.available_nano_usd) == (60, 40)
    with pytest.raises(RequestError) as refused:
        await dynamo.credits.set_credit_limit("acme", 59, by=TESTER)
    assert refused.value.param == "credit_limit"
    assert await dynamo.credits.set_credit_limit("acme", 60, by=TESTER)
    with pytest.raises(LedgerError) as spent:
        await dynamo.ledger.hold(principal, 5)
    assert spent.value.code is ErrorCode.INSUFFICIENT_CREDITS
    assert "tollgate credits pay" in spent.value.message
    await enter(dynamo, "transfer", 65, kind="payment")
    balance = await dynamo.credits.balance("acme")
    assert (balance.owed_nano_usd, balance.available_nano_usd) == (0, 65)
    assert await dynamo.credits.set_credit_limit("acme", 0, by=TESTER)
    assert await dynamo.credits.set_credit_limit("acme", 7, by=TESTER)
    assert await available(dynamo) == 12
    amounts = [amount for _, amount in await entries(dynamo, "credit_line")]
    assert sorted(amounts) == [-60, -40, 7, 100]
    assert await dynamo.audit.run() == []


async def test_c64_a_grant_that_expires_pays_no_debt_and_lowers_no_limit(
    dynamo: DynamoStores,
) -> None:
    _, principal = await funded_key(dynamo, 10)
    await dynamo.credits.set_credit_limit("acme", 100, by=TESTER)
    await spend(dynamo, principal, 70)
    await enter(dynamo, "plan", 50, lasts_s=60)
    balance = await dynamo.credits.balance("acme")
    assert (balance.owed_nano_usd, balance.available_nano_usd) == (60, 90)
    with pytest.raises(RequestError):
        await dynamo.credits.set_credit_limit("acme", 59, by=TESTER)
    dynamo.clock.now += 60
    await lots_of(dynamo).expire("acme")
    balance = await dynamo.credits.balance("acme")
    assert (balance.owed_nano_usd, balance.available_nano_usd) == (60, 40)


async def test_c64_sweepers_at_once_take_each_rest_once(honest_url: str) -> None:
    clock = HandClock()
    client = aws_client(honest_url, clock=clock, timeout_s=10.0)
    tables = await fresh_tables(client)
    stores = dynamo_stores(client, tables, clock)
    await stores.workspaces.ensure("acme", shards=4, by=TESTER)
    _, principal = await funded_key(stores, 1_000)
    for number in range(3):
        await enter(stores, f"plan-{number}", 100, lasts_s=60)
    await spend(stores, principal, 150)
    clock.now += 60
    sweepers = [dynamo_stores(client, tables, clock) for _ in range(4)]
    for _ in range(8):
        await asyncio.gather(
            *(lots_of(it).expire("acme") for it in sweepers), return_exceptions=True
        )
    taken = sum(amount for _, amount in await entries(stores, "expiry"))
    assert (taken, await left(stores), await available(stores)) == (-150, {}, 1_000)
    assert await stores.audit.run() == []
    await client.close()


async def test_c64_grants_that_expire_and_come_at_once_are_all_lots(honest_url: str) -> None:
    clock = HandClock()
    client = aws_client(honest_url, clock=clock, timeout_s=10.0)
    tables = await fresh_tables(client)
    await funded_key(dynamo_stores(client, tables, clock), 1_000)
    granted = await asyncio.gather(
        *(
            enter(dynamo_stores(client, tables, clock), f"plan-{number}", 100, lasts_s=60)
            for number in range(4)
        ),
        return_exceptions=True,
    )
    stores = dynamo_stores(client, tables, clock)
    lots = await left(stores)
    assert lots == {f"plan-{number}": 100 for number in range(4) if granted[number] is True}
    assert len(lots) > 1
    assert await available(stores) == 1_000 + sum(lots.values())
    await client.close()


async def test_c64_limits_that_are_set_at_once_add_up_to_the_last_one(honest_url: str) -> None:
    clock = HandClock()
    client = aws_client(honest_url, clock=clock, timeout_s=10.0)
    tables = await fresh_tables(client)
    stores = dynamo_stores(client, tables, clock)
    await funded_key(stores, 1_000)
    await asyncio.gather(
        *(
            dynamo_stores(client, tables, clock).credits.set_credit_limit("acme", it, by=TESTER)
            for it in (100, 200, 300, 50)
        ),
        return_exceptions=True,
    )
    balance = await stores.credits.balance("acme")
    lent = sum(amount for _, amount in await entries(stores, "credit_line"))
    assert lent == balance.credit_limit_nano_usd in (100, 200, 300, 50)
    assert balance.granted_nano_usd == 1_000 + lent
    await client.close()


@pytest.mark.parametrize("lands", [False, True])
async def test_c64_a_process_that_dies_at_any_write_of_lots_leaves_the_books_exact(
    ministack_url: str, lands: bool
) -> None:
    clock = HandClock()
    client = aws_client(ministack_url, clock=clock, timeout_s=10.0)
    for fatal in count(1):
        tables = await fresh_tables(client)
        stores = dynamo_stores(client, tables, clock)
        _, principal = await funded_key(stores, 1_000)
        crashing = Crashing(client, fatal, lands=lands)
        dying = dynamo_stores(crashing, tables, clock)
        hold: Hold | None = None
        ended = False
        try:
            await enter(dying, "trial", 50, lasts_s=60)
            await enter(dying, "plan", 100, lasts_s=60)
            hold = await stores.ledger.hold(principal, 80)
            clock.now += 60
            await lots_of(dying).expire("acme")
            ended = True
        except Killed:
            hold = hold or await stores.ledger.hold(principal, 80)
        # Repeated by another process: what had landed is not done again.
        await enter(stores, "trial", 50, lasts_s=60)
        await enter(stores, "plan", 100, lasts_s=60)
        await stores.ledger.settle(hold, record_of(hold, 70))
        clock.now += HOLD_LIFETIME_S
        while await lots_of(stores).expire("acme"):
            pass
        granted = sum(it.amount_nano_usd for it in (await stores.credits.entries("acme")).found)
        # 70 of 150 that expired were spent, at most.
        assert await left(stores) == {}
        assert (granted, await available(stores)) == (1_070, 1_000)
        assert await stores.audit.run() == []
        if ended:
            break
    assert fatal > 3
    await client.close()
