"""The share of a limit that is left, as replies to holds have stated it, on both stores.

Keeps C95.
"""

import pytest
from msgspec.structs import replace

from tests.stores import (
    TESTER,
    DynamoStores,
    MemoryStores,
    dynamo_stores,
    funded_key,
    record_of,
)
from tollgate.core.errors import LedgerError
from tollgate.core.limits import TierLimits
from tollgate.stores.ports.administration import NewKey
from tollgate.stores.ports.people import MemberSettings
from tollgate.stores.rules.level_settings import LevelSettings

AnyStores = MemoryStores | DynamoStores
DAY_S = 86_400
KEY = NewKey(
    workspace_id="acme",
    label="test",
    requests_per_minute=60_000,
    burst=1000,
    limits_nano_usd={"day": 100, "month": 1_000},
)


async def test_c95_the_smallest_share_of_the_keys_limits_counts(stores: AnyStores) -> None:
    _, principal = await funded_key(stores, 10**6, KEY)
    held = await stores.ledger.hold(principal, 79)
    assert stores.ledger.budget_left_percent(principal) == 21
    await stores.ledger.settle(held, record_of(held, 5))
    await stores.ledger.hold(principal, 3)
    assert stores.ledger.budget_left_percent(principal) == 92
    tier = TierLimits(budget_nano_usd=10, budget_period="month")
    assert stores.ledger.budget_left_percent(principal, tier=tier) == 20
    # On the next day only the month's use counts.
    stores.clock.now += DAY_S
    assert stores.ledger.budget_left_percent(principal) == 99


@pytest.mark.parametrize("models", ["", "@a/*"])
async def test_c95_a_quota_in_usd_counts_until_its_window_ends(
    stores: AnyStores, models: str
) -> None:
    stores.clock.now = 1_800_000_000.0
    key = replace(KEY, limits_nano_usd={}, quotas=f"usd/hour=0.000000100{models},requests/day=2")
    _, principal = await funded_key(stores, 10**6, key)
    held = await stores.ledger.hold(principal, 79, models=("a/b",))
    assert stores.ledger.budget_left_percent(principal) == 21
    await stores.ledger.settle(held, replace(record_of(held, 5), model="a/b"))
    await stores.ledger.hold(principal, 3, models=("a/b",))
    assert stores.ledger.budget_left_percent(principal) == 92
    stores.clock.now += 3_600
    assert stores.ledger.budget_left_percent(principal) == 100


async def test_c95_without_a_limit_no_share_is_known(stores: AnyStores) -> None:
    _, principal = await funded_key(stores, 10**6, replace(KEY, limits_nano_usd={}))
    await stores.ledger.hold(principal, 79)
    assert stores.ledger.budget_left_percent(principal) is None


async def test_c95_member_and_team_count_and_a_refusal_teaches_too(dynamo: DynamoStores) -> None:
    await dynamo.members.create(
        "acme", "ana", MemberSettings(limits_nano_usd={"week": 200}), by=TESTER
    )
    await dynamo.teams.create(
        "acme", "search", LevelSettings(limits_nano_usd={"total": 4_000}), by=TESTER
    )
    key = replace(KEY, limits_nano_usd={}, member_id="ana", team_id="search")
    _, principal = await funded_key(dynamo, 10**6, key)
    assert dynamo.ledger.budget_left_percent(principal) is None
    await dynamo.ledger.hold(principal, 50)
    assert dynamo.ledger.budget_left_percent(principal) == 75
    # Another process, whose first hold the member's limit refuses.
    other = dynamo_stores(dynamo.client, dynamo.tables, dynamo.clock)
    with pytest.raises(LedgerError):
        await other.ledger.hold(principal, 151, covered=True)
    assert other.ledger.budget_left_percent(principal) == 75
