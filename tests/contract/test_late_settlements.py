"""What an overloaded store keeps of holds is settled within a minute, without a sweep.

Keeps C62, C64.
"""

import asyncio
from collections.abc import Mapping

import pytest
from msgspec.structs import replace

from tests.meddler import Meddler, holds, is_hold, meddled
from tests.stores import TESTER, DynamoStores, HaltedClock, dynamo_stores, funded_key, record_of
from tollgate.aws.attributes import Item
from tollgate.core.errors import ErrorCode, LedgerError
from tollgate.core.ids import IdSource
from tollgate.core.principal import Principal
from tollgate.stores.aws.tables import key_state_key, level_state_key, wallet_key
from tollgate.stores.money.settlements import SETTLED_WITHIN_S, Settlements
from tollgate.stores.ports.administration import NewKey
from tollgate.stores.rules.level_settings import LevelSettings, MemberSettings

TEAM = level_state_key("team", "acme", "search")
MEMBER = level_state_key("member", "acme", "ana")
WALLET = wallet_key("acme", 0)


async def grouped(stores: DynamoStores) -> Principal:
    """A key whose member and team have limits."""
    limits = {"day": 10_000}
    await stores.teams.create("acme", "search", LevelSettings(limits_nano_usd=limits), by=TESTER)
    settings = MemberSettings(team_id="search", limits_nano_usd=limits)
    await stores.members.create("acme", "ana", settings, by=TESTER)
    _, principal = await funded_key(
        stores, 1_000, NewKey(workspace_id="acme", label="a", member_id="ana")
    )
    return principal


async def held(stores: DynamoStores, principal: Principal) -> dict[str, int]:
    """The number of holds of each side, of those that have any."""
    sides: dict[str, Item] = {
        "wallet": WALLET,
        "key": key_state_key(principal.key_id),
        "team": TEAM,
        "member": MEMBER,
    }
    counts = {name: len(await holds(stores, key)) for name, key in sides.items()}
    return {name: count for name, count in counts.items() if count}


def halted(dynamo: DynamoStores) -> tuple[Meddler, DynamoStores, HaltedClock]:
    """A process whose calls are interfered with, and whose pauses the test ends."""
    clock = HaltedClock(dynamo.clock)
    meddler, _ = meddled(dynamo)
    settlements = Settlements(clock, IdSource(clock))
    stores = dynamo_stores(meddler, dynamo.tables, dynamo.clock, settlements=settlements)
    return meddler, stores, clock


async def until_released(stores: DynamoStores, principal: Principal, clock: HaltedClock) -> None:
    """Let the pauses end until nothing is held."""
    begun_s = clock.now_s()
    clock.going.set()
    for _ in range(200):
        if not await held(stores, principal):
            break
    # Several holds wait on one clock, which adds up their pauses.
    assert clock.now_s() - begun_s <= 3 * SETTLED_WITHIN_S
    assert await held(stores, principal) == {}


@pytest.mark.parametrize("what", ["lose", "drop", "refuse"])
async def test_c62_what_an_overloaded_store_keeps_of_a_503_is_released_without_a_sweep(
    dynamo: DynamoStores, what: str
) -> None:
    """The wallet does not answer, and no release is accepted until the load is over."""
    principal = await grouped(dynamo)
    meddler, stores, clock = halted(dynamo)

    def overloaded(payload: Mapping[str, object]) -> str:
        if payload.get("Key") == WALLET:
            return what
        is_release = "REMOVE" in str(payload.get("UpdateExpression"))
        return "refuse" if is_release and not is_hold_of(payload) else "pass"

    meddler.meddle = overloaded
    with pytest.raises(LedgerError) as raised:
        await stores.ledger.hold(principal, 10)
    assert raised.value.code is ErrorCode.SERVICE_UNAVAILABLE
    assert (await held(dynamo, principal)).items() >= {"key": 3, "team": 3, "member": 3}.items()

    meddler.meddle = lambda payload: "pass"
    await until_released(dynamo, principal, clock)


def is_hold_of(payload: Mapping[str, object]) -> bool:
    """Whether a call writes a hold on any side."""
    return any(is_hold(key)(payload) for key in (WALLET, TEAM, MEMBER, payload.get("Key")))


async def test_c62_a_hold_that_arrives_after_its_release_is_released_again(
    dynamo: DynamoStores,
) -> None:
    principal = await grouped(dynamo)
    meddler, stores, clock = halted(dynamo)
    late: list[Mapping[str, object]] = []

    def delayed(payload: Mapping[str, object]) -> str:
        if is_hold(TEAM)(payload):
            late.append(payload)
            return "drop"
        return "pass"

    meddler.meddle = delayed
    with pytest.raises(LedgerError):
        await stores.ledger.hold(principal, 10)
    assert await held(dynamo, principal) == {}
    for payload in late:
        await dynamo.client.call("UpdateItem", payload)
    assert await held(dynamo, principal) == {"team": 3}
    team = await dynamo.teams.get("acme", "search")
    assert team is not None
    assert (team.spending.held_nano_usd, len(team.spending.hold_ids)) == (30, 3)

    await until_released(dynamo, principal, clock)
    team = await dynamo.teams.get("acme", "search")
    assert team is not None
    assert team.spending == replace(team.spending, held_nano_usd=0)
    assert team.spending.remaining_nano_usd == {"day": 10_000}


async def test_c64_an_answer_that_could_not_be_settled_is_charged_without_a_sweep(
    dynamo: DynamoStores,
) -> None:
    principal = await grouped(dynamo)
    meddler, stores, clock = halted(dynamo)
    hold = await stores.ledger.hold(principal, 10)
    meddler.meddle = lambda payload: "refuse" if "REMOVE" in str(payload) else "pass"
    await stores.ledger.settle(hold, record_of(hold, 4))
    assert len(await held(dynamo, principal)) == 4

    meddler.meddle = lambda payload: "pass"
    await until_released(dynamo, principal, clock)
    assert (await dynamo.credits.balance("acme")).spent_nano_usd == 4
    team = await dynamo.teams.get("acme", "search")
    assert team is not None
    assert team.spending.used_nano_usd["day"] == 4


async def test_c62_a_hold_that_was_refused_for_good_is_not_released_twice(
    dynamo: DynamoStores,
) -> None:
    principal = await grouped(dynamo)
    meddler, stores, clock = halted(dynamo)
    with pytest.raises(LedgerError) as raised:
        await stores.ledger.hold(principal, 5_000, covered=True)
    assert raised.value.code is ErrorCode.INSUFFICIENT_CREDITS
    calls = len(meddler.sent)
    clock.going.set()
    await asyncio.sleep(0)
    assert (len(meddler.sent), await held(dynamo, principal)) == (calls, {})
