"""Quotas of a key hold exactly, per model and per window, on everything the stores run on.

Keeps C62, C64, C92, C95.
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
from tollgate.core.limits import LimitOwner, SessionLimit
from tollgate.core.principal import Principal
from tollgate.core.usage import Usage
from tollgate.stores.aws.tables import get_items, state_key
from tollgate.stores.keys.state_items import read_key_state
from tollgate.stores.ports.administration import NewKey
from tollgate.stores.ports.base import Hold
from tollgate.stores.rules.sweep import HOLD_LIFETIME_S

AnyStores = MemoryStores | DynamoStores
WIDE = NewKey(workspace_id="acme", label="test", requests_per_minute=60_000, burst=1000)
OPUS, ECHO = "anthropic/opus", "test/echo"


async def key_with(stores: AnyStores, quotas: str) -> Principal:
    _, principal = await funded_key(stores, 10**6, replace(WIDE, quotas=quotas))
    return principal


async def refused(
    stores: AnyStores, principal: Principal, amount: int = 1, *models: str, covered: bool = False
) -> GatewayError:
    with pytest.raises(GatewayError) as raised:
        await stores.ledger.hold(principal, amount, models=models, covered=covered)
    return raised.value


async def spend(
    stores: AnyStores, principal: Principal, cost: int, model: str = OPUS, tokens: int = 0
) -> Hold:
    hold = await stores.ledger.hold(principal, 50, models=(model,), tokens=80)
    used = Usage(output_tokens=tokens)
    await stores.ledger.settle(hold, replace(record_of(hold, cost), model=model, usage=used))
    return hold


async def counters(stores: AnyStores, principal: Principal) -> dict[str, int]:
    """Return the counters by unit, window and models."""
    key = await stores.keys.get("acme", principal.key_id)
    assert key is not None
    found = {}
    for name, used in key.counters.items():
        window, _, models = name.removeprefix("c_").partition("@")
        found[f"{window.rpartition('/')[0]}@{models}".removesuffix("@")] = used
    return found


async def test_c95_windows_of_a_second_a_minute_and_an_hour_hold_side_by_side(
    stores: AnyStores,
) -> None:
    stores.clock.now = 1_800_000_000.0
    principal = await key_with(stores, "requests/second=2,requests/minute=3,requests/hour=4")
    for _ in range(2):
        await spend(stores, principal, 1)
    error = await refused(stores, principal)
    assert isinstance(error, AccessError)
    assert error.code is ErrorCode.RATE_LIMIT_EXCEEDED
    assert error.retry_after_s == 1
    assert error.limit is not None
    assert (error.limit.level, error.limit.kind, error.limit.per) == ("key", "requests", "second")
    stores.clock.now += 1
    await spend(stores, principal, 1)
    error = await refused(stores, principal)
    assert error.limit is not None
    assert (error.limit.per, error.limit.limit, error.limit.remaining) == ("minute", 3, 0)
    stores.clock.now += 60
    await spend(stores, principal, 1)
    error = await refused(stores, principal)
    assert error.limit is not None
    assert (error.limit.per, error.limit.resets_s) == ("hour", 1_800_003_600)
    stores.clock.now += 3600
    await spend(stores, principal, 1)


async def test_c95_tokens_of_a_month_count_what_was_used_and_not_what_was_held(
    stores: AnyStores,
) -> None:
    principal = await key_with(stores, "tokens/day=100,tokens/month=150")
    await spend(stores, principal, 1, tokens=60)
    assert await counters(stores, principal) == {"tokens/day": 60, "tokens/month": 60}
    held = await stores.ledger.hold(principal, 1, tokens=80)
    error = await refused_tokens(stores, principal)
    assert error.limit is not None
    assert (error.limit.kind, error.limit.per, error.limit.remaining) == ("tokens", "day", 0)
    await stores.ledger.settle(held, record_of(held, 1))
    assert await counters(stores, principal) == {"tokens/day": 60, "tokens/month": 60}
    await spend(stores, principal, 1, tokens=90)
    error = await refused_tokens(stores, principal)
    assert error.limit is not None
    assert error.limit.per == "month"


async def refused_tokens(stores: AnyStores, principal: Principal) -> GatewayError:
    with pytest.raises(AccessError) as raised:
        await stores.ledger.hold(principal, 1, tokens=1)
    return raised.value


async def test_c95_a_model_that_used_up_its_quota_is_left_out_and_others_serve(
    stores: AnyStores,
) -> None:
    principal = await key_with(stores, "usd/day=0.0000001@anthropic/*")
    await spend(stores, principal, 100)
    hold = await stores.ledger.hold(principal, 50, models=(OPUS, ECHO))
    assert [quota.text for quota in hold.used_up] == ["usd/day=0.0000001@anthropic/*"]
    assert await counters(stores, principal) == {"usd/day@anthropic/*": 100}
    await stores.ledger.settle(hold, replace(record_of(hold, 40), model=ECHO))
    assert await counters(stores, principal) == {"usd/day@anthropic/*": 100}
    error = await refused(stores, principal, 50, OPUS)
    assert isinstance(error, LedgerError)
    assert error.code is ErrorCode.KEY_LIMIT_EXCEEDED
    assert error.limit is not None
    assert (error.limit.kind, error.limit.per, error.limit.models) == (
        "usd",
        "day",
        "anthropic/*",
    )
    assert error.limit.resets_s is not None
    assert "$0.0000001 per day of anthropic/*" in error.message
    # A refused request holds nothing.
    key = await stores.keys.get("acme", principal.key_id)
    assert key is not None
    assert key.held_nano_usd == 0


async def test_c95_a_quota_counts_the_model_that_answered(stores: AnyStores) -> None:
    principal = await key_with(stores, "usd/day=1@anthropic/*,requests/day=5@anthropic/*")
    hold = await stores.ledger.hold(principal, 50, models=(OPUS, ECHO))
    assert await counters(stores, principal) == {
        "usd/day@anthropic/*": 50,
        "requests/day@anthropic/*": 1,
    }
    await stores.ledger.settle(hold, replace(record_of(hold, 40), model=ECHO))
    assert set((await counters(stores, principal)).values()) == {0}


async def test_c95_a_covered_hold_fits_the_quota_and_so_does_its_top_up(stores: AnyStores) -> None:
    principal = await key_with(stores, "usd/hour=0.0000001")
    error = await refused(stores, principal, 101, covered=True)
    assert error.limit is not None
    assert (error.limit.limit, error.limit.remaining) == (100, 100)
    hold = await stores.ledger.hold(principal, 60, covered=True)
    more = await stores.ledger.top_up(hold, 40)
    assert await counters(stores, principal) == {"usd/hour": 100}
    await stores.ledger.settle(more, record_of(more, 90))
    assert await counters(stores, principal) == {"usd/hour": 90}
    hold = await stores.ledger.hold(principal, 5, covered=True)
    with pytest.raises(LedgerError) as raised:
        await stores.ledger.top_up(hold, 6)
    assert raised.value.limit is not None
    assert (raised.value.limit.per, raised.value.limit.remaining) == ("hour", 5)
    await stores.ledger.settle(hold, record_of(hold, 5))
    assert await counters(stores, principal) == {"usd/hour": 95}


async def test_c95_a_long_answer_is_topped_up_after_the_window_of_its_quota(
    stores: AnyStores,
) -> None:
    principal = await key_with(stores, "requests/second=2,usd/second=0.0000001")
    hold = await stores.ledger.hold(principal, 60, covered=True)
    for _ in range(2):
        # The second write removes the counters of a window that is over.
        stores.clock.now += 5
        await spend(stores, principal, 1)
    more = await stores.ledger.top_up(hold, 40)
    assert more.key_nano_usd == 100
    await stores.ledger.settle(more, record_of(more, 90))


async def test_c95_what_another_limit_refuses_uses_nothing_of_a_quota(stores: AnyStores) -> None:
    principal = await key_with(stores, "requests/day=2,usd/day=1")
    session = SessionLimit(id="0123456789abcdef", nano_usd=10)
    for _ in range(3):
        with pytest.raises(LedgerError):
            await stores.ledger.hold(principal, 11, session=session)
    with pytest.raises(LedgerError):
        await stores.ledger.hold(principal, 10**9, covered=True)
    assert set((await counters(stores, principal)).values()) <= {0}


async def test_c95_a_changed_limit_counts_what_was_used_before(stores: AnyStores) -> None:
    secret, _ = await funded_key(stores, 10**6, replace(WIDE, quotas="requests/day=1"))
    principal = await stores.keys.authenticate(secret)
    await spend(stores, principal, 1)
    await refused(stores, principal)
    change = stores.keys.change(
        "acme", principal.key_id, lambda it: replace(it, quotas="requests/day=2"), by=TESTER
    )
    await change
    stores.clock.now += 5
    principal = await stores.keys.authenticate(secret)
    await spend(stores, principal, 1)
    await refused(stores, principal)


@pytest.fixture
async def metered(honest_url: str) -> AsyncIterator[tuple[Metered, DynamoStores]]:
    clock = HandClock()
    client = aws_client(honest_url, clock=clock, timeout_s=10.0)
    meter = Metered(client)
    yield meter, dynamo_stores(meter, await fresh_tables(client), clock)
    await client.close()


QUOTAS = "requests/second=900,requests/hour=900,tokens/month=100000,usd/day=5@anthropic/*"


async def test_c62_quotas_cost_no_further_write_and_no_read(
    metered: tuple[Metered, DynamoStores],
) -> None:
    meter, stores = metered
    principal = await key_with(stores, QUOTAS)
    await spend(stores, principal, 1)
    for _ in range(3):
        stores.clock.now += 1
        meter.reset()
        await spend(stores, principal, 1)
        assert (meter.write_units, meter.conditions_failed, meter.reads) == (5, 0, [])


async def test_c95_requests_at_once_do_not_pass_a_quota(
    metered: tuple[Metered, DynamoStores],
) -> None:
    _, stores = metered
    principal = await key_with(stores, "usd/day=0.0000001@anthropic/*")

    async def one() -> Hold | GatewayError:
        try:
            return await stores.ledger.hold(principal, 10, models=(OPUS,), covered=True)
        except GatewayError as error:
            return error

    outcomes = await asyncio.gather(*(one() for _ in range(20)))
    assert sum(isinstance(each, Hold) for each in outcomes) == 10
    assert await counters(stores, principal) == {"usd/day@anthropic/*": 100}


async def test_c95_the_sweeper_gives_back_what_a_dead_process_held(
    metered: tuple[Metered, DynamoStores],
) -> None:
    _, stores = metered
    principal = await key_with(stores, "usd/month=1,tokens/month=1000,requests/month=9")
    await stores.ledger.hold(principal, 40, tokens=70)
    recorded = await stores.ledger.hold(principal, 40, tokens=70)
    used = Usage(output_tokens=30)
    await stores.generations.put_if_absent(replace(record_of(recorded, 15), usage=used))
    stores.clock.now += HOLD_LIFETIME_S + 2

    await stores.sweeper.run()

    assert await counters(stores, principal) == {
        "usd/month": 15,
        "tokens/month": 30,
        "requests/month": 2,
    }
    item = await state_of(stores, principal)
    assert [name for name in item if name.startswith("q_")] == []


async def state_of(stores: DynamoStores, principal: Principal) -> dict[str, object]:
    owner = LimitOwner(level="key", id=principal.key_id, workspace_id="acme")
    [item] = await get_items(stores.client, stores.tables.ledger, [state_key(owner)])
    return dict(item)


async def test_c95_counters_of_windows_that_are_over_leave_the_state(
    metered: tuple[Metered, DynamoStores],
) -> None:
    _, stores = metered
    principal = await key_with(stores, "requests/second=9,usd/day=5")
    for _ in range(6):
        await spend(stores, principal, 1)
        stores.clock.now += 2
    item = await state_of(stores, principal)
    names = [name for name in item if name.startswith("c_requests")]
    assert len(names) <= 3
    assert read_key_state(item).counters  # type: ignore[arg-type]
