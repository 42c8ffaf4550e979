"""Slices of the state of a hot team or member: its limits stay those of the whole.

Keeps C61, C62, C64 and C67.
"""

import pytest
from msgspec.structs import replace

from tests.contract.test_counts import metered
from tests.contract.test_workspaces import maintenance
from tests.metered import Metered
from tests.nightly import first
from tests.stores import TESTER, DynamoStores, dynamo_stores, funded_key, record_of
from tollgate.aws.attributes import Item
from tollgate.core.errors import ErrorCode, GatewayError
from tollgate.core.ids import IdSource
from tollgate.core.principal import Principal
from tollgate.stores.aws.decoding import read_number, read_numbers_by_name
from tollgate.stores.aws.tables import get_item, get_items, level_row_key, level_state_key
from tollgate.stores.keys.state_items import read_key_state
from tollgate.stores.people.slices import LevelSlices
from tollgate.stores.ports.administration import NewKey
from tollgate.stores.ports.base import Hold
from tollgate.stores.ports.people import Team
from tollgate.stores.rules.level_settings import LevelSettings
from tollgate.stores.rules.periods import TOTAL_BUCKET
from tollgate.stores.rules.slices import SLICES_MAX
from tollgate.stores.rules.sweep import HOLD_LIFETIME_S

__all__ = ["metered"]
ACME = "acme"
KEY = NewKey(
    workspace_id=ACME, label="a", requests_per_minute=60_000, burst=10_000, team_id="search"
)


async def teamed(
    stores: DynamoStores, settings: LevelSettings, slices: int = 4
) -> tuple[str, Principal]:
    """A key of the team search, which has so many slices."""
    await stores.teams.create(ACME, "search", settings, by=TESTER)
    secret, _ = await funded_key(stores, 10**12, KEY)
    while await count(stores) < slices:
        await grow(stores)
    return secret, await fresh(stores, secret)


async def fresh(stores: DynamoStores, secret: str) -> Principal:
    """The principal as a process has it that has cached nothing."""
    process = dynamo_stores(stores.client, stores.tables, stores.clock)
    return await process.keys.authenticate(secret)


async def grow(stores: DynamoStores, holds: int = 1) -> None:
    """Give the team slices, whether its limits allow it to be hot or not."""
    ids = IdSource(stores.clock)
    care = LevelSlices(stores.client, stores.tables, ids=ids, clock=stores.clock)
    row = await get_item(stores.client, stores.tables.core, level_row_key("team", ACME, "search"))
    assert row is not None
    assert await care.grow("team", row, holds)


async def count(stores: DynamoStores) -> int:
    return len(await slices(stores))


async def slices(stores: DynamoStores) -> list[Item]:
    keys = [level_state_key("team", ACME, "search", place) for place in range(SLICES_MAX)]
    return await get_items(stores.client, stores.tables.ledger, keys)


async def team(stores: DynamoStores) -> Team:
    found = await stores.teams.get(ACME, "search")
    assert found is not None
    return found


async def settle(stores: DynamoStores, hold: Hold, cost: int) -> None:
    await stores.ledger.settle(hold, record_of(hold, cost))


async def hold_all(
    stores: DynamoStores, principal: Principal, amount: int = 1, *, tokens: int = 0
) -> tuple[list[Hold], GatewayError]:
    """Hold until it is refused: the holds, and the refusal."""
    holds = []
    for _ in range(200):
        try:
            hold = await stores.ledger.hold(principal, amount, tokens=tokens, covered=True)
        except GatewayError as refused:
            return holds, refused
        holds.append(hold)
    raise AssertionError("nothing is refused")


async def assert_books(stores: DynamoStores) -> None:
    """I6 holds on each slice by itself, and the audit finds nothing else."""
    for item in await slices(stores):
        state = read_key_state(item)
        total = state.limits_nano_usd["total"]
        held = sum(read_numbers_by_name(item, "h").values())
        taken = total - state.buckets.get(TOTAL_BUCKET, total)
        assert taken == held + read_number(item, "us")
    assert await stores.audit.run() == []


LIMITS = [
    (LevelSettings(limits_nano_usd={"day": 24}), "day", 24),
    (LevelSettings(limits_nano_usd={"total": 24, "month": 400}), "total", 24),
    (LevelSettings(tokens_per_minute=24), "tokens", 24),
    (LevelSettings(requests_per_minute=1, burst=24), "requests", 24),
    (LevelSettings(concurrency=24), "concurrency", 24),
    # Fewer than slices: some have no part.
    (LevelSettings(requests_per_minute=1, burst=3), "requests", 3),
    (LevelSettings(concurrency=3), "concurrency", 3),
    (LevelSettings(limits_nano_usd={"week": 3}), "week", 3),
]


@pytest.mark.parametrize(("settings", "kind", "most"), first(3, LIMITS))
@pytest.mark.parametrize("before", [0, 2])
async def test_c61_slices_allow_together_what_the_limit_allows_and_no_more(
    honest: DynamoStores, settings: LevelSettings, kind: str, most: int, before: int
) -> None:
    """Also where a part was used when the slices were made."""
    secret, principal = await teamed(honest, settings, slices=1)
    first = [await honest.ledger.hold(principal, 1, tokens=1, covered=True) for _ in range(before)]
    await grow(honest)
    principal = await fresh(honest, secret)
    assert [level.slices for level in principal.levels] == [4]

    holds, refused = await hold_all(honest, principal, tokens=1)

    # Of a bucket of requests that was not full each slice gets a part, in whole requests.
    rounded = 4 if kind == "requests" and before else 0
    assert most - rounded <= len(first) + len(holds) <= most
    assert refused.limit is not None
    assert (refused.limit.level, refused.limit.id) == ("team", "search")
    assert (refused.limit.kind, refused.limit.limit) == (kind, 1 if kind == "requests" else most)
    for hold in (*first, *holds):
        await settle(honest, hold, 0)
    await assert_books(honest)
    assert {hold.levels[0].slice for hold in holds} <= set(range(4))


async def test_a_refused_request_reads_the_slices_once_and_the_usual_one_reads_nothing(
    metered: tuple[Metered, DynamoStores],
) -> None:
    meter, stores = metered
    limits = {"day": 10**15, "month": 10**15}
    _, principal = await teamed(stores, LevelSettings(limits_nano_usd=limits, concurrency=20))
    for _ in range(3):
        await settle(stores, await stores.ledger.hold(principal, 10**6, tokens=10), 5)
    meter.reset()

    hold = await stores.ledger.hold(principal, 10**6, tokens=10)
    await settle(stores, hold, 5)
    sides = ["UpdateItem"] * 3
    assert meter.rounds == [sides, ["PutItem"], sides]
    assert (meter.write_units, meter.conditions_failed, meter.reads) == (7, 0, [])

    holds, _ = await hold_all(stores, principal)
    assert len(holds) == 20
    meter.reset()
    await hold_all(stores, principal)
    assert meter.reads == ["BatchGetItem"]
    # The two sides that were held are released.
    assert len(meter.rounds) == 3
    assert meter.conditions_failed == 1


async def test_a_hold_takes_the_slice_that_has_enough(honest: DynamoStores) -> None:
    _, principal = await teamed(honest, LevelSettings(limits_nano_usd={"day": 400}))
    # 100 on each slice.
    held = [(await honest.ledger.hold(principal, 60, covered=True)).levels[0] for _ in range(4)]
    assert sorted(level.slice for level in held) == [0, 1, 2, 3]
    with pytest.raises(GatewayError) as refused:
        await honest.ledger.hold(principal, 60, covered=True)
    # Together they have more, and none by itself.
    assert refused.value.code is ErrorCode.KEY_LIMIT_EXCEEDED
    assert refused.value.limit is not None
    assert (refused.value.limit.limit, refused.value.limit.remaining) == (400, 40)
    # What is not covered takes what the one with most has.
    rest = await honest.ledger.hold(principal, 60)
    assert rest.levels[0].nano_usd == 40
    assert (await team(honest)).spending.remaining_nano_usd == {"day": 120}


async def test_c62_a_hold_takes_the_rest_of_no_slice_while_another_has_the_whole(
    honest: DynamoStores,
) -> None:
    """A part would pass the limit by what the answer costs beyond it."""
    _, principal = await teamed(honest, LevelSettings(limits_nano_usd={"day": 400}))
    await honest.ledger.hold(principal, 90)
    for _ in range(16):
        hold = await honest.ledger.hold(principal, 60)
        assert hold.levels[0].nano_usd == 60
        await settle(honest, hold, 0)


async def test_c61_what_slices_count_is_shown_as_one(honest: DynamoStores) -> None:
    _, principal = await teamed(honest, LevelSettings(limits_nano_usd={"day": 400, "month": 900}))
    holds = [await honest.ledger.hold(principal, 30) for _ in range(9)]
    for hold in holds[:6]:
        await settle(honest, hold, 20)

    for shown in (await team(honest), (await honest.teams.list(ACME)).found[0]):
        assert shown.spending.used_nano_usd == dict.fromkeys(("day", "week", "month", "total"), 120)
        assert shown.spending.held_nano_usd == 90
        assert shown.spending.remaining_nano_usd == {"day": 190, "month": 690}
    await assert_books(honest)


@pytest.mark.parametrize("limit", first(2, [1_000, 300, 120, 10]))
async def test_c61_a_limit_that_changes_is_the_limit_of_all_slices(
    honest: DynamoStores, limit: int
) -> None:
    """Raised, lowered, and lowered below what is held and spent."""
    _, principal = await teamed(honest, LevelSettings(limits_nano_usd={"day": 400}))
    holds = [await honest.ledger.hold(principal, 30) for _ in range(5)]
    await settle(honest, holds[0], 20)

    changed = await honest.teams.change(
        ACME, "search", lambda it: replace(it, limits_nano_usd={"day": limit}), by=TESTER
    )
    assert changed is not None
    assert changed.spending.remaining_nano_usd == {"day": limit - 140}
    await assert_books(honest)
    # Each slice has its part, in pieces of ten.
    more, _ = await hold_all(honest, principal, 10)
    assert max(0, limit - 140 - 4 * 9) <= 10 * len(more) <= max(0, limit - 140)
    for hold in holds[1:]:
        await settle(honest, hold, 30)
    for item in await slices(honest):
        # The next day begins with parts that are one limit.
        assert read_number(item, "ld") >= 0
    assert sum(read_number(item, "ld") for item in await slices(honest)) == limit


async def test_c61_a_rate_and_a_concurrency_that_change_are_those_of_all_slices(
    honest: DynamoStores,
) -> None:
    settings = LevelSettings(requests_per_minute=60, burst=100, concurrency=20)
    _, principal = await teamed(honest, settings)
    for change, most in (({"concurrency": 2}, 2), ({"concurrency": 7}, 7)):
        await honest.teams.change(
            ACME, "search", lambda it, new=change: replace(it, **new), by=TESTER
        )
        holds, _ = await hold_all(honest, principal)
        assert len(holds) == most
        for hold in holds:
            await settle(honest, hold, 0)
    await honest.teams.change(
        ACME, "search", lambda it: replace(it, concurrency=None, burst=9), by=TESTER
    )
    holds, refused = await hold_all(honest, principal)
    assert len(holds) == 9
    assert "60 requests per minute" in str(refused)
    # One more each second: all slices were emptied at once, and each is ready every four seconds.
    honest.clock.now += 4
    assert len((await hold_all(honest, principal))[0]) == 4


async def test_a_level_with_slices_stays_counted_without_limits(honest: DynamoStores) -> None:
    secret, principal = await teamed(honest, LevelSettings(limits_nano_usd={"day": 400}))
    hold = await honest.ledger.hold(principal, 30)
    for limits in ({}, {"month": 100}):
        await honest.teams.change(
            ACME, "search", lambda it, new=limits: replace(it, limits_nano_usd=new), by=TESTER
        )
        principal = await fresh(honest, secret)
        await settle(honest, await honest.ledger.hold(principal, 30), 10)
    await settle(honest, hold, 20)
    assert (await team(honest)).spending.remaining_nano_usd == {"month": 60}
    await assert_books(honest)


async def test_c67_the_sweeper_settles_the_slice_that_pays_and_releases_another(
    honest: DynamoStores,
) -> None:
    """The record is there and nothing was settled; a write of the hold came twice, elsewhere."""
    _, principal = await teamed(honest, LevelSettings(limits_nano_usd={"day": 4_000}))
    hold = await honest.ledger.hold(principal, 30)
    while not hold.slices:
        hold = await honest.ledger.hold(principal, 30)
    record = record_of(hold, 20)
    assert record.slices == {"team": hold.levels[0].slice}
    await honest.generations.put_if_absent(record)  # type: ignore[attr-defined]
    late = level_state_key("team", ACME, "search", 0)
    await honest.client.call(
        "UpdateItem",
        {
            "TableName": honest.tables.ledger,
            "Key": late,
            "UpdateExpression": "SET h.#h = :a",
            "ExpressionAttributeNames": {"#h": hold.id},
            "ExpressionAttributeValues": {":a": {"N": "0"}},
        },
    )
    honest.clock.now += HOLD_LIFETIME_S + 1
    await honest.sweeper.run()
    spending = (await team(honest)).spending
    assert (spending.used_nano_usd["total"], spending.held_nano_usd) == (20, 0)
    await assert_books(honest)


async def test_c61_a_hold_of_before_midnight_settles_in_its_day_on_its_slice(
    honest: DynamoStores,
) -> None:
    honest.clock.now = 1_795_305_600.0 - 60
    _, principal = await teamed(honest, LevelSettings(limits_nano_usd={"day": 400}))
    holds = [await honest.ledger.hold(principal, 40) for _ in range(6)]
    await maintenance(honest).run()
    honest.clock.now += 120
    await maintenance(honest).run()
    for hold in holds:
        await settle(honest, hold, 40)
    assert (await team(honest)).spending.remaining_nano_usd == {"day": 400}
    assert len((await hold_all(honest, principal, 10))[0]) == 40
    honest.clock.now -= 120
    assert (await team(honest)).spending.remaining_nano_usd == {"day": 160}
    await assert_books(honest)


async def test_a_round_evens_slices_out(honest: DynamoStores) -> None:
    """Requests find their slice by hash, so that one may have less than the others."""
    _, principal = await teamed(honest, LevelSettings(limits_nano_usd={"day": 400}))
    holds, _ = await hold_all(honest, principal, 20)
    for hold in holds:
        # Only what the first slice holds is spent.
        await settle(honest, hold, 0 if hold.slices else 20)
    assert await rooms(honest) == [0, 100, 100, 100]
    await maintenance(honest).run()
    assert await rooms(honest) == [75] * 4
    await assert_books(honest)


async def rooms(stores: DynamoStores) -> list[int]:
    """What is left of the day on each slice, the least first."""
    second = int(stores.clock.now)
    return sorted(
        read_key_state(it).remaining_nano_usd(second)["day"] for it in await slices(stores)
    )
