"""Limits of teams and members: counted with the key's by every hold, in one round trip.

Keeps C61 and C62.
"""

import asyncio

import pytest
from msgspec.structs import replace

from tests.meddler import holds
from tests.stores import TESTER, DynamoStores, dynamo_stores, funded_key, record_of
from tollgate.core.errors import AccessError, ErrorCode, GatewayError, LedgerError
from tollgate.core.limits import LimitOwner
from tollgate.core.principal import Principal
from tollgate.core.usage import Usage
from tollgate.stores.aws.tables import key_state_key, level_state_key, wallet_key
from tollgate.stores.ports.administration import NewKey
from tollgate.stores.ports.base import Hold, LevelHold
from tollgate.stores.ports.people import LevelSpending
from tollgate.stores.rules.level_settings import LevelSettings, MemberSettings
from tollgate.stores.rules.sweep import HOLD_LIFETIME_S

ACME = "acme"
TEAM = level_state_key("team", ACME, "search")
MEMBER = level_state_key("member", ACME, "ana")
KEY = NewKey(workspace_id=ACME, label="a", requests_per_minute=60_000, burst=1000)
# An hour before midnight of the day of the tests.
LATE_S = 1_795_305_600.0 - 3_600


async def _grouped(
    stores: DynamoStores,
    team: LevelSettings,
    member: MemberSettings | None = None,
    *,
    credit: int = 1_000_000,
    key: NewKey = KEY,
) -> tuple[str, Principal]:
    """A key of the member ana of the team search."""
    await stores.teams.create(ACME, "search", team, by=TESTER)
    settings = replace(member or MemberSettings(), team_id="search")
    await stores.members.create(ACME, "ana", settings, by=TESTER)
    return await funded_key(stores, credit, replace(key, member_id="ana"))


async def _team_spending(stores: DynamoStores, name: str = "search") -> LevelSpending:
    team = await stores.teams.get(ACME, name)
    assert team is not None
    return team.spending


async def _settle(stores: DynamoStores, hold: Hold, cost: int) -> None:
    await stores.ledger.settle(hold, record_of(hold, cost))


async def test_c61_a_hold_counts_against_each_level_that_has_limits(dynamo: DynamoStores) -> None:
    _, principal = await _grouped(
        dynamo,
        LevelSettings(limits_nano_usd={"day": 1_000, "month": 5_000}),
        MemberSettings(limits_nano_usd={"week": 600}),
    )
    hold = await dynamo.ledger.hold(principal, 400)
    assert hold.levels == (
        LevelHold(level="member", id="ana", nano_usd=400),
        LevelHold(level="team", id="search", nano_usd=400),
    )
    spending = await _team_spending(dynamo)
    assert spending.remaining_nano_usd == {"day": 600, "month": 4_600}
    assert spending.held_nano_usd == 400

    await _settle(dynamo, hold, 150)
    spending = await _team_spending(dynamo)
    assert spending.remaining_nano_usd == {"day": 850, "month": 4_850}
    assert spending.used_nano_usd == dict.fromkeys(("day", "week", "month", "total"), 150)
    assert spending.held_nano_usd == 0
    ana = await dynamo.members.get(ACME, "ana")
    assert ana is not None
    assert ana.spending.remaining_nano_usd == {"week": 450}
    # Settled again, nothing changes.
    await _settle(dynamo, hold, 150)
    assert await _team_spending(dynamo) == spending


async def test_c61_a_level_without_limits_is_not_written(dynamo: DynamoStores) -> None:
    _, principal = await _grouped(dynamo, LevelSettings(models=("a/*",)))
    hold = await dynamo.ledger.hold(principal, 400)
    assert hold.levels == ()
    await _settle(dynamo, hold, 150)
    assert await _team_spending(dynamo) == LevelSpending()


@pytest.mark.parametrize(
    ("used_up", "level", "code"),
    [
        ({"key", "member", "team", "workspace"}, "key", ErrorCode.KEY_LIMIT_EXCEEDED),
        ({"member", "team", "workspace"}, "member", ErrorCode.KEY_LIMIT_EXCEEDED),
        ({"team", "workspace"}, "team", ErrorCode.KEY_LIMIT_EXCEEDED),
        ({"workspace"}, None, ErrorCode.INSUFFICIENT_CREDITS),
    ],
)
async def test_c61_the_first_of_key_member_team_and_workspace_refuses(
    dynamo: DynamoStores, used_up: set[str], level: str | None, code: ErrorCode
) -> None:
    def limit(name: str) -> dict[str, int]:
        return {"day": 100 if name in used_up else 10_000}

    _, principal = await _grouped(
        dynamo,
        LevelSettings(limits_nano_usd=limit("team")),
        MemberSettings(limits_nano_usd=limit("member")),
        key=replace(KEY, limits_nano_usd=limit("key")),
        credit=100 if "workspace" in used_up else 10_000,
    )
    with pytest.raises(LedgerError) as refused:
        await dynamo.ledger.hold(principal, 101, covered=True)
    assert refused.value.code is code
    assert (refused.value.limit.level if refused.value.limit else None) == level
    # Nothing stays held on any side.
    for key in (wallet_key(ACME, 0), key_state_key(principal.key_id), TEAM, MEMBER):
        assert await holds(dynamo, key) == {}
    assert (await _team_spending(dynamo)).remaining_nano_usd == limit("team")


@pytest.mark.parametrize(
    ("settings", "kind"),
    [
        (LevelSettings(concurrency=2), "concurrency"),
        (LevelSettings(tokens_per_minute=20), "tokens"),
        (LevelSettings(requests_per_minute=2, burst=2), "requests"),
    ],
)
async def test_c61_a_team_limits_what_its_keys_do_together(
    dynamo: DynamoStores, settings: LevelSettings, kind: str
) -> None:
    _, first = await _grouped(dynamo, settings)
    _, second = await funded_key(dynamo, 1, replace(KEY, label="b", team_id="search"))
    for principal in (first, second):
        await dynamo.ledger.hold(principal, 1, tokens=10)
    with pytest.raises(AccessError) as refused:
        await dynamo.ledger.hold(first, 1, tokens=10)
    assert refused.value.code is ErrorCode.RATE_LIMIT_EXCEEDED
    assert refused.value.limit is not None
    assert (refused.value.limit.level, refused.value.limit.id) == ("team", "search")
    assert refused.value.limit.kind == kind
    assert refused.value.retry_after_s is not None
    # The headers of the reply state the key's own rate.
    assert refused.value.rate_limit is not None
    assert refused.value.rate_limit.limit == KEY.burst


async def test_c61_a_level_gets_the_tokens_back_that_an_answer_left(dynamo: DynamoStores) -> None:
    limits = LevelSettings(tokens_per_minute=100)
    _, principal = await _grouped(dynamo, limits, MemberSettings(tokens_per_minute=100))
    hold = await dynamo.ledger.hold(principal, 1, tokens=70)
    answered = replace(record_of(hold, 1), usage=Usage(output_tokens=20))
    await dynamo.ledger.settle(hold, answered)
    rest = await dynamo.ledger.hold(principal, 1, tokens=90)
    assert [level.tokens for level in rest.levels] == [80, 80]


@pytest.mark.parametrize("who", ["key", "member"])
async def test_what_a_key_or_its_member_refuses_uses_up_no_rate_of_the_team(
    dynamo: DynamoStores, who: str
) -> None:
    """Else one who ignores a rate of one request a minute leaves none to the others."""
    one = {"requests_per_minute": 1, "burst": 1}
    key = replace(KEY, **one) if who == "key" else KEY
    member = MemberSettings(**one) if who == "member" else MemberSettings()
    team = LevelSettings(requests_per_minute=10, burst=10, concurrency=3)
    _, greedy = await _grouped(dynamo, team, member, key=key)
    other = replace(KEY, label="b", team_id="search")
    _, colleague = await funded_key(dynamo, 1_000_000, other)

    await _settle(dynamo, await dynamo.ledger.hold(greedy, 10), 10)
    refused: list[object] = []
    for at_once in (2, 1, 1, 20):
        holding = (dynamo.ledger.hold(greedy, 10) for _ in range(at_once))
        refused += await asyncio.gather(*holding, return_exceptions=True)
    for outcome in refused:
        assert isinstance(outcome, AccessError)
        assert outcome.limit is not None
        assert (outcome.limit.level, outcome.limit.kind) == (who, "requests")
    # One was served, and the two that came at once counted before anybody knew.
    for _ in range(7):
        await _settle(dynamo, await dynamo.ledger.hold(colleague, 10), 10)
    dynamo.clock.now += 61
    await _settle(dynamo, await dynamo.ledger.hold(greedy, 10), 10)
    assert (await _team_spending(dynamo)).held_nano_usd == 0


async def test_a_key_that_moves_settles_where_it_held(dynamo: DynamoStores) -> None:
    limits = LevelSettings(limits_nano_usd={"day": 1_000})
    secret, principal = await _grouped(dynamo, limits)
    await dynamo.teams.create(ACME, "other", limits, by=TESTER)
    hold = await dynamo.ledger.hold(principal, 400)

    await dynamo.keys.change(
        ACME, principal.key_id, lambda it: replace(it, team_id="other"), by=TESTER
    )
    moved = await dynamo.keys.authenticate(secret)
    assert moved.team_id == "other"
    after = await dynamo.ledger.hold(moved, 300)
    await _settle(dynamo, hold, 100)
    await _settle(dynamo, after, 200)

    assert (await _team_spending(dynamo)).used_nano_usd["day"] == 100
    assert (await _team_spending(dynamo, "other")).used_nano_usd["day"] == 200


async def test_what_is_in_flight_settles_after_its_member_is_removed_and_its_team_unlimited(
    dynamo: DynamoStores,
) -> None:
    _, principal = await _grouped(
        dynamo,
        LevelSettings(limits_nano_usd={"day": 1_000}),
        MemberSettings(limits_nano_usd={"day": 1_000}),
    )
    hold = await dynamo.ledger.hold(principal, 400)
    await dynamo.members.remove(ACME, "ana", by=TESTER)
    await dynamo.teams.change(ACME, "search", lambda it: replace(it, limits_nano_usd={}), by=TESTER)
    await _settle(dynamo, hold, 100)
    for key in (wallet_key(ACME, 0), key_state_key(principal.key_id), TEAM, MEMBER):
        assert await holds(dynamo, key) == {}


async def test_a_hold_of_before_midnight_is_settled_in_the_day_it_came_from(
    dynamo: DynamoStores,
) -> None:
    dynamo.clock.now = LATE_S
    _, principal = await _grouped(dynamo, LevelSettings(limits_nano_usd={"day": 1_000}))
    hold = await dynamo.ledger.hold(principal, 400)
    dynamo.clock.now += 3_600
    assert (await _team_spending(dynamo)).remaining_nano_usd == {"day": 1_000}
    await _settle(dynamo, hold, 300)
    assert (await _team_spending(dynamo)).remaining_nano_usd == {"day": 1_000}
    dynamo.clock.now -= 3_600
    assert (await _team_spending(dynamo)).remaining_nano_usd == {"day": 700}


async def test_c67_the_sweeper_expires_the_sides_of_levels(dynamo: DynamoStores) -> None:
    _, principal = await _grouped(dynamo, LevelSettings(limits_nano_usd={"day": 1_000}))
    await dynamo.ledger.hold(principal, 400)
    dynamo.clock.now += HOLD_LIFETIME_S + 1
    assert (await dynamo.sweeper.run()).settled == 1
    assert await holds(dynamo, TEAM) == {}
    assert (await _team_spending(dynamo)).used_nano_usd["total"] == 0


async def test_a_top_up_is_within_every_level(dynamo: DynamoStores) -> None:
    _, principal = await _grouped(dynamo, LevelSettings(limits_nano_usd={"day": 1_000}))
    hold = await dynamo.ledger.hold(principal, 400, covered=True)
    hold = await dynamo.ledger.top_up(hold, 500)
    assert [level.nano_usd for level in hold.levels] == [900]
    with pytest.raises(GatewayError) as refused:
        await dynamo.ledger.top_up(hold, 101)
    assert refused.value.limit is not None
    assert refused.value.limit.level == "team"
    await _settle(dynamo, hold, 700)
    assert (await _team_spending(dynamo)).remaining_nano_usd == {"day": 300}
    for key in (wallet_key(ACME, 0), key_state_key(principal.key_id), TEAM):
        assert await holds(dynamo, key) == {}


async def test_a_first_limit_counts_what_the_running_periods_have_cost(
    dynamo: DynamoStores,
) -> None:
    secret, principal = await _grouped(dynamo, LevelSettings())
    for cost in (100, 150):
        hold = await dynamo.ledger.hold(principal, 400)
        record = replace(record_of(hold, cost), labels=principal.labels)
        await dynamo.ledger.settle(hold, record)

    team = await dynamo.teams.change(
        ACME, "search", lambda it: replace(it, limits_nano_usd={"month": 1_000}), by=TESTER
    )
    assert team is not None
    assert team.spending.remaining_nano_usd == {"month": 750}
    assert team.spending.used_nano_usd == dict.fromkeys(("day", "week", "month", "total"), 250)
    dynamo.clock.now += 5.0
    hold = await dynamo.ledger.hold(await dynamo.keys.authenticate(secret), 50)
    assert (await _team_spending(dynamo)).remaining_nano_usd == {"month": 700}

    # Unlimited for a while and limited again, with a hold from before in flight.
    for limits in ({}, {"day": 2_000}):
        await dynamo.teams.change(
            ACME, "search", lambda it, new=limits: replace(it, limits_nano_usd=new), by=TESTER
        )
    assert (await _team_spending(dynamo)).remaining_nano_usd == {"day": 2_000 - 250 - 50}
    await _settle(dynamo, hold, 20)
    assert (await _team_spending(dynamo)).remaining_nano_usd == {"day": 2_000 - 250 - 20}


async def test_a_changed_limit_moves_what_is_left(dynamo: DynamoStores) -> None:
    _, principal = await _grouped(dynamo, LevelSettings(limits_nano_usd={"day": 1_000}))
    await dynamo.ledger.hold(principal, 400)
    await dynamo.teams.change(
        ACME,
        "search",
        lambda it: replace(it, limits_nano_usd={"day": 500}, concurrency=1),
        by=TESTER,
    )
    assert (await _team_spending(dynamo)).remaining_nano_usd == {"day": 100}
    with pytest.raises(AccessError, match="Team `search` allows 1 requests at a time"):
        await dynamo.ledger.hold(principal, 10)


@pytest.mark.parametrize("workers", [16, pytest.param(64, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("covered", [True, False])
async def test_c62_workers_on_one_team_budget_stay_within_it(
    honest: DynamoStores, covered: bool, workers: int
) -> None:
    """A budget is passed by no more than what answers cost beyond the part that they held."""
    dynamo = honest
    budget, most = 10_000 * workers // 64, 400
    _, first = await _grouped(dynamo, LevelSettings(limits_nano_usd={"day": budget}))
    _, second = await funded_key(dynamo, 1, replace(KEY, label="b", team_id="search"))
    processes = [dynamo, dynamo_stores(dynamo.client, dynamo.tables, dynamo.clock)]
    refusals: list[ErrorCode] = []
    costs: list[int] = []
    beyond: list[int] = []

    async def work(number: int) -> None:
        stores = processes[number % 2]
        for _ in range(3):
            try:
                hold = await stores.ledger.hold(
                    (first, second)[number // 2 % 2], most, covered=covered
                )
            except GatewayError as refused:
                refusals.append(refused.code)
                continue
            cost = most - number
            beyond.append(max(0, cost - hold.levels[0].nano_usd))
            await _settle(stores, hold, cost)
            costs.append(cost)

    await asyncio.gather(*(work(number) for number in range(workers)))

    spending = await _team_spending(dynamo)
    assert spending.held_nano_usd == 0
    assert spending.used_nano_usd["day"] == sum(costs)
    assert set(refusals) == {ErrorCode.KEY_LIMIT_EXCEEDED}
    assert budget - most < sum(costs) <= budget + sum(beyond)
    assert not (covered and sum(beyond))
    print(f"budget {budget}, spent {sum(costs)}, {len(costs)} served, {len(refusals)} refused")


async def test_c62_answers_that_hold_what_is_left_pass_a_budget_by_what_each_costs_beyond_its_hold(
    dynamo: DynamoStores,
) -> None:
    """What one answer gives back admits the next, while one that held a part still runs."""
    _, principal = await _grouped(dynamo, LevelSettings(limits_nano_usd={"day": 100}))
    most = 80
    whole = await dynamo.ledger.hold(principal, most)
    second = await dynamo.ledger.hold(principal, most)
    await _settle(dynamo, whole, 75)
    third = await dynamo.ledger.hold(principal, most)

    held = [hold.levels[0].nano_usd for hold in (whole, second, third)]
    assert held == [80, 20, 5]
    with pytest.raises(GatewayError, match="has used up"):
        await dynamo.ledger.hold(principal, most)
    for hold in (second, third):
        await _settle(dynamo, hold, most)
    passed_by = -(await _team_spending(dynamo)).remaining_nano_usd["day"]
    assert passed_by == (most - held[1]) + (most - held[2])


async def test_the_audit_sees_a_level_that_does_not_add_up(dynamo: DynamoStores) -> None:
    _, principal = await _grouped(
        dynamo, LevelSettings(limits_nano_usd={"day": 1_000}), MemberSettings(concurrency=9)
    )
    await _settle(dynamo, await dynamo.ledger.hold(principal, 400), 100)
    await dynamo.ledger.hold(principal, 200)
    assert list(await dynamo.audit.run()) == []

    await dynamo.client.call(
        "UpdateItem",
        {
            "TableName": dynamo.tables.ledger,
            "Key": TEAM,
            "UpdateExpression": "SET us = us + :c",
            "ExpressionAttributeValues": {":c": {"N": "7"}},
        },
    )
    [broken] = await dynamo.audit.run()
    assert broken.invariant == "I6 held + spent of T#acme#search"
    assert (broken.expected_nano_usd, broken.found_nano_usd) == (300, 307)


def test_an_owner_names_its_state() -> None:
    owner = LimitOwner(level="member", id="ana#x", workspace_id="a")
    assert owner.subject == "Member `ana#x`"
