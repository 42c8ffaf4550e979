"""Rounds that give a crowded level slices, and workers at once while they do.

Keeps C61 and C62.
"""

import asyncio
from collections import Counter
from collections.abc import Mapping

import pytest
from msgspec.structs import replace

from tests.contract.test_slices import (
    ACME,
    KEY,
    assert_books,
    count,
    fresh,
    grow,
    settle,
    team,
    teamed,
)
from tests.contract.test_workspaces import maintenance
from tests.nightly import first
from tests.stores import TESTER, DynamoStores, dynamo_stores, funded_key
from tollgate.core.errors import GatewayError
from tollgate.core.records.audit import AuditFilter
from tollgate.stores.rules.level_settings import LevelSettings, MemberSettings


async def test_a_crowded_member_grows_and_its_entry_tells(honest: DynamoStores) -> None:
    await honest.members.create(
        ACME, "ana@example.com", MemberSettings(limits_nano_usd={"day": 10**6}), by=TESTER
    )
    secret, principal = await funded_key(
        honest, 10**9, replace(KEY, team_id=None, member_id="ana@example.com")
    )
    holds = [await honest.ledger.hold(principal, 10) for _ in range(33)]
    swept = await honest.sweeper.run()
    assert [(owner.id, count) for owner, count in swept.crowded.items()] == [
        ("ana@example.com", 33)
    ]
    report = await maintenance(honest).run(swept.crowded)
    assert report.sliced == 1
    [level] = (await fresh(honest, secret)).levels
    assert level.slices == 16
    wanted = AuditFilter(since_s=0, until_s=2 * int(honest.clock.now), target="ana@example.com")
    entries = (await honest.audit_log.page(ACME, wanted, limit=5)).found
    [grew] = [entry for entry in entries if entry.action == "member.grow"]
    assert (grew.before, grew.after) == ({"slices": "1"}, {"slices": "16"})
    for hold in holds:
        await settle(honest, hold, 10)
    member = await honest.members.get(ACME, "ana@example.com")
    assert member is not None
    assert member.spending.used_nano_usd["day"] == 330
    assert await honest.audit.run() == []


@pytest.mark.parametrize(
    ("limits", "slices"),
    [
        ({"requests_per_minute": 1_200, "burst": 100}, 1),
        ({"concurrency": 24}, 1),
        ({"requests_per_minute": 1_201, "burst": 100, "concurrency": 25}, 4),
    ],
)
async def test_a_level_whose_limits_keep_it_from_being_hot_gets_no_slices(
    honest: DynamoStores, limits: Mapping[str, int], slices: int
) -> None:
    _, principal = await teamed(honest, LevelSettings(**limits), slices=1)
    for _ in range(9):
        await honest.ledger.hold(principal, 1)
    swept = await honest.sweeper.run()
    await maintenance(honest).run(swept.crowded)
    assert await count(honest) == slices


@pytest.mark.parametrize("workers", [16, pytest.param(64, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("covered", first(1, [True, False]))
async def test_c62_workers_on_slices_stay_within_a_budget_while_these_are_made_and_changed(
    honest: DynamoStores, covered: bool, workers: int
) -> None:
    """From one slice to sixteen, evened out, and with another limit, which is never passed."""
    most, budget, at_once = 400, 40_000 * workers // 64, 40 * workers // 64
    settings = LevelSettings(limits_nano_usd={"day": budget}, concurrency=at_once)
    secret, _ = await teamed(honest, settings, slices=1)
    processes = [dynamo_stores(honest.client, honest.tables, honest.clock) for _ in range(2)]
    refusals: Counter[str] = Counter()
    costs: list[int] = []
    beyond: list[int] = []
    in_flight = [0]
    peak = [0]

    async def work(number: int) -> None:
        stores = processes[number % 2]
        for _ in range(5):
            try:
                principal = await stores.keys.authenticate(secret)
                hold = await stores.ledger.hold(principal, most, covered=covered)
            except GatewayError as refused:
                refusals[refused.code.value] += 1
                continue
            in_flight[0] += 1
            peak[0] = max(peak[0], in_flight[0])
            cost = most - number
            beyond.append(max(0, cost - hold.levels[0].nano_usd))
            costs.append(cost)
            for _ in range(number % 4):
                await asyncio.sleep(0)
            # Before it is settled: from then on another may hold.
            in_flight[0] -= 1
            await settle(stores, hold, cost)

    async def divide() -> None:
        limit = budget
        for turn in range(6):
            honest.clock.now += 5.0
            if turn in (0, 2):
                await grow(honest)
            await maintenance(honest).run()
            limit -= budget // 10
            await honest.teams.change(
                ACME,
                "search",
                lambda it, new=limit: replace(it, limits_nano_usd={"day": new}),
                by=TESTER,
            )

    await asyncio.gather(divide(), *(work(number) for number in range(workers)))

    spending = (await team(honest)).spending
    assert spending.held_nano_usd == 0
    assert spending.used_nano_usd["day"] == sum(costs)
    assert peak[0] <= at_once
    # What was spent before it was lowered may be above the limit; the first one is not passed.
    assert sum(costs) <= budget + sum(beyond)
    assert not (covered and sum(beyond))
    assert spending.remaining_nano_usd["day"] == budget - 6 * (budget // 10) - sum(costs)
    await assert_books(honest)
    print(f"spent {sum(costs)}, {len(costs)} served, at most {peak[0]} at once, {refusals}")
