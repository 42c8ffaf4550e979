"""A hold warns of a spending limit from the share on that its key states, on both stores.

Keeps C95.
"""

import pytest
from msgspec.structs import replace

from tests.stores import DynamoStores, MemoryStores, funded_key, record_of
from tollgate.core.limits import LimitWarning, Period, TierLimits
from tollgate.stores.ports.administration import NewKey

AnyStores = MemoryStores | DynamoStores
LIMITS: dict[Period, int] = {"day": 100, "month": 1_000}
KEY = NewKey(
    workspace_id="acme",
    label="test",
    requests_per_minute=60_000,
    burst=1000,
    warn_at=80,
    limits_nano_usd=LIMITS,
)


async def test_c95_a_hold_warns_of_the_limit_that_is_used_most(stores: AnyStores) -> None:
    _, principal = await funded_key(stores, 10**6, KEY)
    assert (await stores.ledger.hold(principal, 79)).warning is None
    # What is held counts as used, like in a refusal.
    held = await stores.ledger.hold(principal, 4)
    assert held.warning == LimitWarning(period="day", percent=83)
    await stores.ledger.settle(held, record_of(held, 0))
    assert (await stores.ledger.hold(principal, 0)).warning is None
    rest = await stores.ledger.hold(principal, 50)
    assert rest.warning == LimitWarning(period="day", percent=100)


@pytest.mark.parametrize("changes", [{"warn_at": None}, {"limits_nano_usd": {}}])
async def test_c95_a_key_without_a_share_or_a_limit_has_no_warning(
    stores: AnyStores, changes: dict[str, object]
) -> None:
    _, principal = await funded_key(stores, 10**6, replace(KEY, **changes))
    assert (await stores.ledger.hold(principal, 90)).warning is None


@pytest.mark.parametrize(
    ("quotas", "model", "warned"),
    [
        ("usd/hour=0.000000100", "a/b", LimitWarning(period="hour", percent=90)),
        ("usd/day=0.000000100@a/*", "a/b", LimitWarning(period="day", percent=90, models="a/*")),
        ("usd/day=0.000000100@a/*", "c/d", None),
        ("requests/day=1", "a/b", None),
        ("tokens/day=10", "a/b", None),
    ],
)
async def test_c95_a_quota_in_usd_is_a_limit_to_warn_of(
    stores: AnyStores, quotas: str, model: str, warned: LimitWarning | None
) -> None:
    key = replace(KEY, limits_nano_usd={}, quotas=quotas)
    _, principal = await funded_key(stores, 10**6, key)
    hold = await stores.ledger.hold(principal, 90, models=(model,), tokens=10)
    assert hold.warning == warned


async def test_c95_a_used_quota_of_other_models_is_not_warned_of(stores: AnyStores) -> None:
    key = replace(KEY, limits_nano_usd={}, quotas="usd/day=0.000000100@a/*")
    _, principal = await funded_key(stores, 10**6, key)
    await stores.ledger.hold(principal, 90, models=("a/b",))
    hold = await stores.ledger.hold(principal, 1, models=("c/d",))
    assert hold.warning is None


async def test_c95_the_limit_that_is_used_most_may_be_one_or_the_other(stores: AnyStores) -> None:
    key = replace(KEY, quotas="usd/hour=0.000000095")
    _, principal = await funded_key(stores, 10**6, key)
    hold = await stores.ledger.hold(principal, 90, models=("a/b",))
    assert hold.warning == LimitWarning(period="hour", percent=94)
    stores.clock.now += 3_600
    hold = await stores.ledger.hold(principal, 5, models=("a/b",))
    assert hold.warning == LimitWarning(period="day", percent=95)


async def test_c95_a_tiers_budget_is_a_limit_to_warn_of(stores: AnyStores) -> None:
    _, principal = await funded_key(stores, 10**6, KEY)
    tier = TierLimits(budget_nano_usd=50, budget_period="month")
    hold = await stores.ledger.hold(principal, 45, tier=tier)
    assert hold.warning == LimitWarning(period="month", percent=90)
