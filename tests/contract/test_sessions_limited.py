"""A session's budget and number of requests hold exactly, on everything the stores run on.

Keeps C62, C95.
"""

import asyncio
from collections.abc import AsyncIterator

import pytest
from msgspec.structs import replace

from tests.metered import Metered
from tests.stores import (
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
from tollgate.core.limits import LimitOwner, SessionLimit
from tollgate.core.principal import Principal
from tollgate.stores.aws.decoding import read_number
from tollgate.stores.aws.tables import get_items, owner_of_state, state_key
from tollgate.stores.ports.administration import NewKey
from tollgate.stores.ports.base import Hold
from tollgate.stores.rules.sweep import HOLD_LIFETIME_S

AnyStores = MemoryStores | DynamoStores
WIDE = NewKey(workspace_id="acme", label="test", requests_per_minute=60_000, burst=1000)
LIMIT = SessionLimit(id="0123456789abcdef", nano_usd=100)


async def refused(
    stores: AnyStores, principal: Principal, amount: int, limit: SessionLimit
) -> LedgerError:
    with pytest.raises(LedgerError) as raised:
        await stores.ledger.hold(principal, amount, session=limit)
    assert raised.value.code is ErrorCode.KEY_LIMIT_EXCEEDED
    return raised.value


async def spend(
    stores: AnyStores, principal: Principal, amount: int, cost: int, limit: SessionLimit = LIMIT
) -> Hold:
    hold = await stores.ledger.hold(principal, amount, session=limit)
    await stores.ledger.settle(hold, record_of(hold, cost))
    return hold


async def test_c95_a_session_holds_the_whole_amount_and_gets_back_what_was_not_spent(
    stores: AnyStores,
) -> None:
    _, principal = await funded_key(stores, 10**6, WIDE)
    await spend(stores, principal, 60, 10)
    held = await stores.ledger.hold(principal, 60, session=LIMIT)

    error = await refused(stores, principal, 31, LIMIT)

    assert error.limit is not None
    assert (error.limit.level, error.limit.id, error.limit.kind) == (
        "session",
        LIMIT.id,
        "total",
    )
    assert (error.limit.limit, error.limit.remaining, error.limit.resets_s) == (100, 30, None)
    assert "may cost $0.000000031" in error.message
    await stores.ledger.settle(held, record_of(held, 90))
    assert (await refused(stores, principal, 1, LIMIT)).limit == replace(error.limit, remaining=0)
    # Another session, another key, and requests of no session are not affected.
    _, other = await funded_key(stores, 10**6, WIDE)
    await stores.ledger.hold(other, 100, session=LIMIT)
    await stores.ledger.hold(principal, 100, session=replace(LIMIT, id="f" * 16))
    await stores.ledger.hold(principal, 100)


async def test_c95_a_hold_that_is_topped_up_leaves_the_session_as_it_is(
    stores: AnyStores,
) -> None:
    _, principal = await funded_key(stores, 10**6, WIDE)
    held = await stores.ledger.hold(principal, 60, session=LIMIT)
    more = await stores.ledger.top_up(held, 30)
    # The session holds the highest cost from the start: 40 of 100 are left.
    assert (await refused(stores, principal, 41, LIMIT)).code is ErrorCode.KEY_LIMIT_EXCEEDED
    await stores.ledger.hold(principal, 40, session=LIMIT)
    await stores.ledger.settle(more, record_of(more, 60))
    assert (await refused(stores, principal, 1, LIMIT)).limit.remaining == 0


async def test_c95_a_session_has_as_many_requests_as_its_limit(stores: AnyStores) -> None:
    limit = SessionLimit(id=LIMIT.id, requests=2)
    _, principal = await funded_key(stores, 10**6, WIDE)
    for _ in range(2):
        await spend(stores, principal, 10**5, 7, limit)
    error = await refused(stores, principal, 1, limit)
    assert error.limit is not None
    assert (error.limit.level, error.limit.kind, error.limit.limit) == ("session", "requests", 2)
    # A wider limit of a later request counts what there was before.
    await spend(stores, principal, 1, 1, replace(limit, requests=3))
    await refused(stores, principal, 1, replace(limit, requests=3))


async def test_c95_what_another_limit_refuses_is_no_request_of_the_session(
    stores: AnyStores,
) -> None:
    limit = SessionLimit(id=LIMIT.id, nano_usd=100, requests=2)
    _, principal = await funded_key(
        stores, 10**6, replace(WIDE, limits_nano_usd={"day": 10}, concurrency=1)
    )
    held = await stores.ledger.hold(principal, 5, session=limit)
    for _ in range(3):
        with pytest.raises(AccessError):
            await stores.ledger.hold(principal, 5, session=limit)
    await stores.ledger.settle(held, record_of(held, 1))
    await spend(stores, principal, 95, 1, limit)
    await refused(stores, principal, 1, limit)


async def test_c95_a_refusal_by_the_session_leaves_nothing_held(stores: AnyStores) -> None:
    _, principal = await funded_key(stores, 10**6, WIDE)
    await refused(stores, principal, 101, LIMIT)
    key = await stores.keys.get("acme", principal.key_id)
    assert key is not None
    assert (key.held_nano_usd, key.spent_nano_usd) == (0, 0)


async def test_c95_a_settlement_that_is_repeated_counts_once(stores: AnyStores) -> None:
    _, principal = await funded_key(stores, 10**6, WIDE)
    hold = await spend(stores, principal, 50, 20)
    await stores.ledger.settle(hold, record_of(hold, 20))
    await spend(stores, principal, 80, 80)
    await refused(stores, principal, 1, LIMIT)


@pytest.fixture
async def metered(honest_url: str) -> AsyncIterator[tuple[Metered, DynamoStores]]:
    clock = HandClock()
    client = aws_client(honest_url, clock=clock, timeout_s=10.0)
    meter = Metered(client)
    yield meter, dynamo_stores(meter, await fresh_tables(client), clock)
    await client.close()


async def used(stores: DynamoStores, principal: Principal) -> tuple[int, int]:
    owner = LimitOwner(level="session", id=f"{principal.key_id}#{LIMIT.id}", workspace_id="acme")
    [item] = await get_items(stores.client, stores.tables.ledger, [state_key(owner)])
    assert owner_of_state(item["pk"]["S"], "acme") == owner
    return read_number(item, "cm"), read_number(item, "n")


async def test_c62_c95_requests_at_once_do_not_pass_the_limit_of_their_session(
    metered: tuple[Metered, DynamoStores],
) -> None:
    _, stores = metered
    _, principal = await funded_key(stores, 10**6, WIDE)

    async def one() -> Hold | GatewayError:
        try:
            return await stores.ledger.hold(principal, 10, session=LIMIT)
        except GatewayError as error:
            return error

    outcomes = await asyncio.gather(*(one() for _ in range(40)))
    holds = [each for each in outcomes if isinstance(each, Hold)]
    assert len(holds) == 10
    assert await used(stores, principal) == (100, 10)


async def test_c62_a_session_costs_two_more_writes_and_its_first_request_no_read(
    metered: tuple[Metered, DynamoStores],
) -> None:
    meter, stores = metered
    _, principal = await funded_key(stores, 10**6, WIDE)
    await spend(stores, principal, 1, 1, replace(LIMIT, id="e" * 16))
    for _ in range(2):
        meter.reset()
        await spend(stores, principal, 1, 1)
        assert (meter.write_units, meter.conditions_failed, meter.reads) == (7, 0, [])
    meter.reset()
    hold = await stores.ledger.hold(principal, 1)
    await stores.ledger.settle(hold, record_of(hold, 1))
    assert meter.write_units == 5


async def test_c95_the_sweeper_settles_the_session_of_a_dead_process(
    metered: tuple[Metered, DynamoStores],
) -> None:
    _, stores = metered
    _, principal = await funded_key(stores, 10**6, WIDE)
    await stores.ledger.hold(principal, 40, session=LIMIT)
    recorded = await stores.ledger.hold(principal, 40, session=LIMIT)
    await stores.generations.put_if_absent(record_of(recorded, 15))
    assert await used(stores, principal) == (80, 2)
    stores.clock.now += HOLD_LIFETIME_S + 2

    report = await stores.sweeper.run()

    assert (report.found, report.settled) == (2, 2)
    assert await used(stores, principal) == (15, 2)
