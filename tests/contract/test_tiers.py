"""A tier's limits hold for its keys beside their own, in the one write of a hold.

Keeps C61, C62.
"""

import asyncio
from collections.abc import AsyncIterator

import pytest
from msgspec.structs import replace

from tests.metered import Metered
from tests.stores import (
    TESTER,
    DynamoStores,
    HandClock,
    MemoryStores,
    aws_client,
    dynamo_stores,
    fresh_tables,
    funded_key,
    record_of,
)
from tollgate.core.errors import AccessError, ErrorCode, GatewayError, LedgerError
from tollgate.core.limits import Period, TierLimits
from tollgate.core.principal import Principal
from tollgate.stores.ports.administration import NewKey
from tollgate.stores.ports.base import Hold

AnyStores = MemoryStores | DynamoStores
# Wide enough to be in nobody's way.
WIDE = NewKey(workspace_id="acme", label="test", requests_per_minute=60_000, burst=1000)
SLOW = TierLimits(requests_per_minute=3)


def monthly(budget_nano_usd: int) -> TierLimits:
    return TierLimits(budget_nano_usd=budget_nano_usd, budget_period="month")


async def refused(
    stores: AnyStores, principal: Principal, tier: TierLimits, amount: int = 1, **how: bool
) -> GatewayError:
    with pytest.raises(GatewayError) as raised:
        await stores.ledger.hold(principal, amount, tier=tier, **how)
    return raised.value


async def spend(stores: AnyStores, principal: Principal, tier: TierLimits, amount: int) -> Hold:
    hold = await stores.ledger.hold(principal, amount, tier=tier)
    await stores.ledger.settle(hold, record_of(hold, amount))
    return hold


async def test_c61_a_tiers_rate_holds_for_a_key_that_may_go_faster(stores: AnyStores) -> None:
    _, principal = await funded_key(stores, 10**6, WIDE)
    holds = [await stores.ledger.hold(principal, 1, tier=SLOW) for _ in range(6)]
    assert [hold.rate_limit and hold.rate_limit.remaining for hold in holds] == [5, 4, 3, 2, 1, 0]
    assert holds[0].rate_limit is not None
    assert holds[0].rate_limit.limit == 6

    error = await refused(stores, principal, SLOW)

    assert isinstance(error, AccessError)
    assert (error.code, error.retry_after_s) == (ErrorCode.RATE_LIMIT_EXCEEDED, 20)
    assert "3 requests per minute" in error.message
    stores.clock.now += 20
    await stores.ledger.hold(principal, 1, tier=SLOW)
    assert (await refused(stores, principal, SLOW)).code is ErrorCode.RATE_LIMIT_EXCEEDED


async def test_c61_a_keys_own_rate_holds_where_it_is_the_narrower(stores: AnyStores) -> None:
    own = replace(WIDE, requests_per_minute=1, burst=2)
    _, principal = await funded_key(stores, 10**6, own)
    for _ in range(2):
        hold = await stores.ledger.hold(principal, 1, tier=SLOW)
        assert hold.rate_limit is not None
        assert hold.rate_limit.limit == 2
    assert "1 requests per minute" in (await refused(stores, principal, SLOW)).message


async def test_c61_a_new_rate_of_the_tier_holds_for_the_next_request(stores: AnyStores) -> None:
    _, principal = await funded_key(stores, 10**6, WIDE)
    for _ in range(6):
        await stores.ledger.hold(principal, 1, tier=SLOW)
    stores.clock.now += 120
    faster = TierLimits(requests_per_minute=30)
    for _ in range(60):
        await stores.ledger.hold(principal, 1, tier=faster)
    assert "30 requests" in (await refused(stores, principal, faster)).message


@pytest.mark.parametrize("period", ["day", "week", "month", "total"])
async def test_c61_a_tiers_budget_is_each_keys_own(stores: AnyStores, period: Period) -> None:
    tier = TierLimits(budget_nano_usd=100, budget_period=period)
    _, principal = await funded_key(stores, 10**6, WIDE)
    _, other = await funded_key(stores, 10**6, replace(WIDE, workspace_id="other"))
    await spend(stores, principal, tier, 60)
    # Whoever has anything left is admitted, for what is left.
    rest = await stores.ledger.hold(principal, 60, tier=tier)
    assert rest.key_nano_usd == 40

    error = await refused(stores, principal, tier)

    assert isinstance(error, LedgerError)
    assert error.code is ErrorCode.KEY_LIMIT_EXCEEDED
    assert "$0.0000001" in error.message
    assert (await stores.ledger.hold(other, 60, tier=tier)).key_nano_usd == 60
    # What a hold did not spend is the key's again.
    await stores.ledger.settle(rest, record_of(rest, 5))
    assert (await stores.ledger.hold(principal, 60, tier=tier)).key_nano_usd == 35


async def test_c61_a_covered_hold_fits_the_budget_whole_or_is_refused(stores: AnyStores) -> None:
    _, principal = await funded_key(stores, 10**6, WIDE)
    for amount in (101, 10**5):
        error = await refused(stores, principal, monthly(100), amount, covered=True)
        assert error.code is ErrorCode.KEY_LIMIT_EXCEEDED
    await stores.ledger.hold(principal, 60, tier=monthly(100), covered=True)
    assert (
        await refused(stores, principal, monthly(100), 41, covered=True)
    ).code is ErrorCode.KEY_LIMIT_EXCEEDED
    await stores.ledger.hold(principal, 40, tier=monthly(100), covered=True)


@pytest.mark.parametrize("period", ["day", "week", "month", "total"])
async def test_c61_a_covered_hold_is_topped_up_within_its_tiers_budget(
    stores: AnyStores, period: Period
) -> None:
    tier = TierLimits(budget_nano_usd=100, budget_period=period)
    _, principal = await funded_key(stores, 10**6, WIDE)
    hold = await stores.ledger.hold(principal, 60, covered=True, tier=tier)
    hold = await stores.ledger.top_up(hold, 40)
    assert hold.key_nano_usd == 100

    with pytest.raises(LedgerError) as raised:
        await stores.ledger.top_up(hold, 1)

    assert raised.value.code is ErrorCode.KEY_LIMIT_EXCEEDED
    assert "$0.0000001" in raised.value.message
    await stores.ledger.settle(hold, record_of(hold, 30))
    assert (await stores.ledger.hold(principal, 80, tier=tier)).key_nano_usd == 70


async def test_c61_a_top_up_keeps_to_a_keys_own_limit_where_that_is_the_narrower(
    stores: AnyStores,
) -> None:
    _, principal = await funded_key(stores, 10**6, replace(WIDE, limits_nano_usd={"month": 50}))
    hold = await stores.ledger.hold(principal, 30, covered=True, tier=monthly(100))
    hold = await stores.ledger.top_up(hold, 20)
    with pytest.raises(LedgerError, match=r"\$0.00000005 per month"):
        await stores.ledger.top_up(hold, 1)


async def test_c61_a_top_up_knows_a_limit_of_the_key_that_changed_meanwhile(
    stores: AnyStores,
) -> None:
    _, principal = await funded_key(stores, 10**6, WIDE)
    hold = await stores.ledger.hold(principal, 30, covered=True, tier=monthly(100))
    for month, more in ((500, 10), (45, 5)):
        await stores.keys.change(
            "acme",
            principal.key_id,
            lambda settings, month=month: replace(settings, limits_nano_usd={"month": month}),
            by=TESTER,
        )
        hold = await stores.ledger.top_up(hold, more)
    with pytest.raises(LedgerError, match=r"\$0.000000045 per month"):
        await stores.ledger.top_up(hold, 1)


async def test_c61_a_key_that_expires_in_flight_gets_no_more(stores: AnyStores) -> None:
    expiring = replace(WIDE, expires_s=int(stores.clock.now) + 60)
    _, principal = await funded_key(stores, 10**6, expiring)
    hold = await stores.ledger.hold(principal, 30, covered=True)
    stores.clock.now += 60
    with pytest.raises(AccessError) as raised:
        await stores.ledger.top_up(hold, 1)
    assert raised.value.code is ErrorCode.INVALID_API_KEY


async def test_c61_the_narrower_of_two_limits_of_a_period_counts(stores: AnyStores) -> None:
    own = replace(WIDE, limits_nano_usd={"month": 50, "day": 500})
    _, principal = await funded_key(stores, 10**6, own)
    assert (await stores.ledger.hold(principal, 80, tier=monthly(100))).key_nano_usd == 50
    assert "$0.00000005" in (await refused(stores, principal, monthly(100))).message


async def test_c61_a_budget_that_changes_counts_what_was_spent_before(stores: AnyStores) -> None:
    _, principal = await funded_key(stores, 10**6, WIDE)
    await spend(stores, principal, monthly(100), 80)
    assert (await stores.ledger.hold(principal, 500, tier=monthly(200))).key_nano_usd == 120
    assert (await refused(stores, principal, monthly(50))).code is ErrorCode.KEY_LIMIT_EXCEEDED
    # Without a tier the key is as free as it was made.
    assert (await stores.ledger.hold(principal, 500)).key_nano_usd == 500


async def test_c61_a_budget_of_nothing_admits_nobody(stores: AnyStores) -> None:
    _, principal = await funded_key(stores, 10**6, WIDE)
    assert (await refused(stores, principal, monthly(0))).code is ErrorCode.KEY_LIMIT_EXCEEDED
    # What costs nothing may still be asked for.
    assert (await stores.ledger.hold(principal, 0, tier=monthly(0))).key_nano_usd == 0


async def test_c61_a_budget_starts_anew_with_its_period(stores: AnyStores) -> None:
    tier = TierLimits(budget_nano_usd=100, budget_period="day")
    _, principal = await funded_key(stores, 10**6, WIDE)
    await spend(stores, principal, tier, 100)
    assert (await refused(stores, principal, tier)).code is ErrorCode.KEY_LIMIT_EXCEEDED
    stores.clock.now += 86_400
    await spend(stores, principal, tier, 100)


async def test_c62_many_at_once_from_several_processes_stay_within_the_tier(
    honest: DynamoStores,
) -> None:
    _, principal = await funded_key(honest, 10**9, WIDE)
    others = [dynamo_stores(honest.client, honest.tables, honest.clock) for _ in range(3)]
    tier = replace(monthly(100), requests_per_minute=10)
    holding = [
        each.ledger.hold(principal, 7, tier=tier) for each in (honest, *others) for _ in range(10)
    ]
    done = await asyncio.gather(*holding, return_exceptions=True)
    held = [hold.key_nano_usd for hold in done if isinstance(hold, Hold)]
    refusals = [error for error in done if isinstance(error, GatewayError)]
    assert len(held) + len(refusals) == 40
    assert sum(held) <= 100
    assert len(held) <= 20


async def test_c62_many_top_ups_at_once_stay_within_the_tier(honest: DynamoStores) -> None:
    _, principal = await funded_key(honest, 10**9, WIDE)
    others = [dynamo_stores(honest.client, honest.tables, honest.clock) for _ in range(3)]
    tier = monthly(100)
    holds = [await honest.ledger.hold(principal, 5, covered=True, tier=tier) for _ in range(8)]
    more = [
        each.ledger.top_up(hold, 11)
        for hold, each in zip(holds, [honest, *others] * 2, strict=True)
    ]
    done = await asyncio.gather(*more, return_exceptions=True)
    assert sum(isinstance(outcome, Hold) for outcome in done) == 5
    assert all(isinstance(outcome, Hold | LedgerError) for outcome in done)


@pytest.fixture
async def metered(ministack_url: str) -> AsyncIterator[tuple[Metered, DynamoStores]]:
    clock = HandClock()
    client = aws_client(ministack_url, clock=clock)
    meter = Metered(client)
    yield meter, dynamo_stores(meter, await fresh_tables(client), clock)
    await client.close()


@pytest.mark.parametrize(
    ("own", "first", "later"),
    [
        # What nothing narrower stands in the way of needs one write even of a key never seen.
        (WIDE, 1, 1),
        # One that is narrower itself is learnt of once.
        (replace(WIDE, requests_per_minute=60, burst=120), 2, 1),
        (replace(WIDE, limits_nano_usd={"month": 10}), 2, 1),
    ],
)
async def test_c62_a_tier_costs_no_further_round_trip_once_a_key_was_seen(
    metered: tuple[Metered, DynamoStores], own: NewKey, first: int, later: int
) -> None:
    meter, stores = metered
    _, principal = await funded_key(stores, 10**6, own)
    tier = replace(monthly(1000), requests_per_minute=600)
    for writes in (first, later, later):
        meter.reset()
        await stores.ledger.hold(principal, 1, tier=tier)
        assert len(meter.rounds) == writes
        assert meter.reads == []


async def test_c62_a_top_up_within_a_tier_is_one_write_on_each_side(
    metered: tuple[Metered, DynamoStores],
) -> None:
    meter, stores = metered
    _, principal = await funded_key(stores, 10**6, WIDE)
    hold = await stores.ledger.hold(principal, 10, covered=True, tier=monthly(100))
    meter.reset()
    await stores.ledger.top_up(hold, 10)
    assert len(meter.rounds) == 1
    assert meter.reads == []
