"""An admission refuses what a hold would refuse, from one read and without a write.

Keeps C9, C60, C61, C62.
"""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from msgspec.structs import replace

from tests.metered import Metered
from tests.stores import TESTER, DynamoStores, MemoryStores, funded_key
from tollgate.core.errors import GatewayError
from tollgate.core.ids import IdSource
from tollgate.core.limits import TierLimits
from tollgate.core.principal import Principal
from tollgate.stores.money.admissions import DynamoAdmissions
from tollgate.stores.ports.administration import NewKey
from tollgate.stores.ports.base import Hold
from tollgate.stores.rules.level_settings import LevelSettings

AnyStores = MemoryStores | DynamoStores
WIDE = NewKey(workspace_id="acme", label="test", requests_per_minute=60_000, burst=1000)


async def _lock(stores: AnyStores, principal: Principal) -> None:
    await stores.lock(principal.workspace_id)


async def _hold(stores: AnyStores, principal: Principal) -> None:
    await stores.ledger.hold(principal, 10, tokens=5)


async def _disable(stores: AnyStores, principal: Principal) -> None:
    await stores.keys.change(
        "acme", principal.key_id, lambda settings: replace(settings, disabled=True), by=TESTER
    )


@pytest.mark.parametrize(
    ("settings", "funds", "use"),
    [
        ({}, 10, _hold),
        ({}, 100, _lock),
        ({}, 100, _disable),
        ({"requests_per_minute": 1, "burst": 1}, 100, _hold),
        ({"concurrency": 1}, 100, _hold),
        ({"tokens_per_minute": 5}, 100, _hold),
        ({"limits_nano_usd": {"day": 10}}, 100, _hold),
    ],
)
async def test_c9_an_admission_refuses_as_the_next_hold_does(
    stores: AnyStores,
    settings: dict[str, object],
    funds: int,
    use: Callable[[AnyStores, Principal], Awaitable[None]],
) -> None:
    _, principal = await funded_key(stores, funds, replace(WIDE, **settings))
    ids = IdSource(stores.clock)
    first = ids.new_id()
    await stores.admissions.admit(principal, first)
    await use(stores, principal)
    stores.admissions.end(principal, first)
    by_admission = await refusal(stores.admissions.admit(principal, ids.new_id()))
    by_hold = await refusal(stores.ledger.hold(principal, 10, tokens=5))
    assert by_admission.code is by_hold.code
    assert by_admission.limit == by_hold.limit


async def test_c9_a_tiers_rate_refuses_too(stores: AnyStores) -> None:
    _, principal = await funded_key(stores, 100, WIDE)
    tier = TierLimits(requests_per_minute=1)
    ids = IdSource(stores.clock)
    for _ in range(2):
        await stores.ledger.hold(principal, 1, tier=tier)
    found = await refusal(stores.admissions.admit(principal, ids.new_id(), tier=tier))
    assert found.limit is not None
    assert (found.limit.kind, found.limit.limit) == ("requests", 1)


async def test_c9_admitted_requests_without_a_hold_count(stores: AnyStores) -> None:
    _, principal = await funded_key(stores, 100, replace(WIDE, concurrency=3))
    ids = IdSource(stores.clock)
    names = [ids.new_id() for _ in range(5)]
    outcomes = await asyncio.gather(
        *(stores.admissions.admit(principal, name) for name in names), return_exceptions=True
    )
    assert sum(outcome is None for outcome in outcomes) == 3
    admitted = [name for name, outcome in zip(names, outcomes, strict=True) if outcome is None]
    # An admitted request may ask again, and its end admits the next.
    await stores.admissions.admit(principal, admitted[0])
    await refusal(stores.admissions.admit(principal, ids.new_id()))
    stores.admissions.end(principal, admitted[0])
    await stores.admissions.admit(principal, ids.new_id())


async def test_c9_a_level_refuses_and_an_admission_is_one_read(dynamo: DynamoStores) -> None:
    limits = LevelSettings(limits_nano_usd={"day": 100})
    await dynamo.teams.create("acme", "search", limits, by=TESTER)
    _, principal = await funded_key(dynamo, 1_000, replace(WIDE, team_id="search"))
    metered = Metered(dynamo.client)
    admissions = DynamoAdmissions(metered, dynamo.tables.ledger, dynamo.clock)
    ids = IdSource(dynamo.clock)
    await admissions.admit(principal, ids.new_id())
    assert (metered.rounds, metered.write_units) == ([["BatchGetItem"]], 0)
    await dynamo.ledger.hold(principal, 100)
    found = await refusal(admissions.admit(principal, ids.new_id()))
    assert found.limit is not None
    assert (found.limit.level, found.limit.id, found.limit.kind) == ("team", "search", "day")


async def refusal(work: Awaitable[Hold | None]) -> GatewayError:
    with pytest.raises(GatewayError) as raised:
        await work
    return raised.value
