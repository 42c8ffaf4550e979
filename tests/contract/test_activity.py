"""Listing generations and adding them up, in every store."""

import pytest
from msgspec.structs import fields, replace

from tests.stores import NOON_S, DynamoStores, MemoryStores, funded_key, record_of
from tollgate.aws.attributes import string
from tollgate.core.clock import DAY_S
from tollgate.core.ids import created_s
from tollgate.core.principal import Principal
from tollgate.core.records.activity import GenerationFilter, day_of
from tollgate.core.records.generation import GenerationRecord
from tollgate.core.usage import Usage

AnyStores = MemoryStores | DynamoStores
MIDNIGHT_S = int(NOON_S) // DAY_S * DAY_S


async def generated(
    stores: AnyStores, principal: Principal, at_s: float, cost: int = 7, **changes: object
) -> GenerationRecord:
    """A settled generation whose id was made then."""
    stores.clock.now = at_s
    hold = await stores.ledger.hold(principal, 10)
    record = replace(record_of(hold, cost), model="test/echo", provider="simulator")
    return await stores.ledger.settle(hold, replace(record, **changes))


def between(since_s: float, until_s: float, **wanted: object) -> GenerationFilter:
    return replace(GenerationFilter(since_s=int(since_s), until_s=int(until_s)), **wanted)


async def all_pages(
    stores: AnyStores, wanted: GenerationFilter, limit: int
) -> tuple[list[str], list[int]]:
    """Every id through all pages, and how long these were."""
    ids: list[str] = []
    lengths: list[int] = []
    before: str | None = None
    while True:
        page = await stores.generations.page("acme", wanted, limit=limit, before=before)
        ids += [record.id for record in page.found]
        lengths.append(len(page.found))
        before = page.next
        if before is None:
            return ids, lengths


async def week_of_generations(stores: AnyStores) -> list[GenerationRecord]:
    """Thirteen generations on four of the last seven days, several on midnight's two sides."""
    _, principal = await funded_key(stores, 10**6)
    made: list[GenerationRecord] = []
    for days_ago, seconds in (
        (6, (0, 1, 86_399)),
        (5, (0, 0, 0, 43_200)),
        (2, (86_399,)),
        (0, (0, 1, 2, 3, 40_000)),
    ):
        day_s = MIDNIGHT_S - days_ago * DAY_S
        made += [await generated(stores, principal, day_s + second) for second in seconds]
    stores.clock.now = NOON_S
    return made


@pytest.mark.parametrize("limit", [1, 2, 5, 13, 100])
async def test_c67_pages_hold_every_generation_once_newest_first(
    stores: AnyStores, limit: int
) -> None:
    made = await week_of_generations(stores)

    ids, lengths = await all_pages(stores, between(NOON_S - 7 * DAY_S, NOON_S), limit)

    assert ids == sorted((record.id for record in made), reverse=True)
    assert all(length == limit for length in lengths[:-1])


async def test_c67_a_range_is_half_open_and_by_the_second(stores: AnyStores) -> None:
    made = await week_of_generations(stores)

    ids, _ = await all_pages(stores, between(MIDNIGHT_S + 1, MIDNIGHT_S + 3), 100)
    assert sorted(ids) == sorted(record.id for record in made[9:11])

    nothing = await stores.generations.page("acme", between(9, 9), limit=1)
    assert (nothing.found, nothing.next) == ((), None)


async def test_c67_each_filter_lets_its_own_pass(stores: AnyStores) -> None:
    _, principal = await funded_key(stores, 10**6)
    plain = await generated(stores, principal, NOON_S)
    other = await generated(stores, principal, NOON_S, model="test/other", provider="elsewhere")
    failed = await generated(stores, principal, NOON_S, 0, outcome="error")
    dear = await generated(stores, principal, NOON_S, 9)
    labelled = await generated(stores, principal, NOON_S, labels={"team": "search", "env": "dev"})

    async def found(**wanted: object) -> set[str]:
        ids, _ = await all_pages(stores, between(NOON_S - 1, NOON_S + 1, **wanted), 2)
        return set(ids)

    assert await found(model="test/other") == {other.id}
    assert await found(provider="elsewhere") == {other.id}
    assert await found(outcome="error") == {failed.id}
    assert await found(cost_min_nano_usd=8) == {dear.id}
    assert await found(labels={"team": "search"}) == {labelled.id}
    assert await found(labels={"team": "ads"}) == set()
    assert await found(key_id="somebody") == set()
    assert await found(key_id=principal.key_id) == {
        record.id for record in (plain, other, failed, dear, labelled)
    }


async def test_c67_another_workspace_has_no_part_in_a_list(stores: AnyStores) -> None:
    await week_of_generations(stores)
    page = await stores.generations.page("acm", between(NOON_S - 9 * DAY_S, NOON_S), limit=9)
    assert page.found == ()
    assert (await stores.activity.activity("acm", MIDNIGHT_S, MIDNIGHT_S + 1)).rows == ()


async def test_c67_activity_adds_up_days_models_and_keys(stores: AnyStores) -> None:
    _, principal = await funded_key(stores, 10**6)
    usage = Usage(uncached_input_tokens=3, output_tokens=2)
    nobody = {"outcome": "error", "model": None, "provider": None}
    await generated(stores, principal, MIDNIGHT_S - 1, 4, usage=usage)
    for second in (0, 100):
        await generated(stores, principal, MIDNIGHT_S + second, 5, usage=usage, key_label="ci")
    await generated(stores, principal, MIDNIGHT_S + 200, 0, **nobody)
    stores.clock.now = NOON_S

    found = await stores.activity.activity("acme", MIDNIGHT_S - DAY_S, MIDNIGHT_S + DAY_S)

    assert [
        (row.day, row.model, row.requests, row.failed, row.cost_nano_usd, row.usage.total_tokens)
        for row in found.rows
    ] == [
        ("2026-11-20", "test/echo", 1, 0, 4, 5),
        ("2026-11-21", None, 1, 1, 0, 0),
        ("2026-11-21", "test/echo", 2, 0, 10, 10),
    ]
    assert found.rows[-1].key_label == "ci"
    assert found.partial_days == ()


async def test_c67_a_closed_day_reads_as_it_did_when_it_was_open(dynamo: DynamoStores) -> None:
    await week_of_generations(dynamo)
    days = (MIDNIGHT_S - 6 * DAY_S, MIDNIGHT_S)
    dynamo.clock.now = MIDNIGHT_S + 3599
    live = await dynamo.activity.activity("acme", *days)

    assert await dynamo.activity.close_due() == 20
    dynamo.clock.now = MIDNIGHT_S + 3600
    assert await dynamo.activity.close_due() == 1
    assert await dynamo.activity.close_due() == 0

    closed = await dynamo.activity.activity("acme", *days)
    assert closed.rows == live.rows
    assert (closed.closed_days, closed.live_days) == (live.live_days, live.closed_days)
    assert sum(row.cost_nano_usd for row in live.rows) == 8 * 7


async def test_c67_a_closed_day_keeps_every_class_of_usage(dynamo: DynamoStores) -> None:
    _, principal = await funded_key(dynamo, 10**6)
    usage = Usage(**{field.name: place + 1 for place, field in enumerate(fields(Usage))})
    await generated(dynamo, principal, MIDNIGHT_S - 1, usage=usage)
    dynamo.clock.now = MIDNIGHT_S + 3600
    await dynamo.activity.close_due()

    found = await dynamo.activity.activity("acme", MIDNIGHT_S - DAY_S, MIDNIGHT_S)

    assert [row.usage for row in found.rows] == [usage]


async def test_c67_a_closed_day_keeps_the_labels_that_callers_stated(dynamo: DynamoStores) -> None:
    _, principal = await funded_key(dynamo, 10**6)
    for session in ("s-1", "s-2", None, "s-1"):
        labels = {} if session is None else {"session": session, "device": "a=b"}
        await generated(dynamo, principal, MIDNIGHT_S - 1, caller_labels=labels)
    live = await dynamo.activity.activity("acme", MIDNIGHT_S - DAY_S, MIDNIGHT_S)
    dynamo.clock.now = MIDNIGHT_S + 3600
    await dynamo.activity.close_due()

    found = await dynamo.activity.activity("acme", MIDNIGHT_S - DAY_S, MIDNIGHT_S)

    shown = [(row.caller_labels.get("session"), row.requests) for row in found.rows]
    assert shown == [(None, 1), ("s-1", 2), ("s-2", 1)]
    assert found.rows == live.rows


async def test_c92_a_key_that_was_moved_spends_each_time_for_whom_it_had(
    stores: AnyStores,
) -> None:
    _, principal = await funded_key(stores, 10**6)
    day_s = MIDNIGHT_S - DAY_S
    teams = ("search", "ranking", "search", "ads")
    for place, team in enumerate(teams):
        labels = {"team": team, "member": "ana", "environment": f"env-{place}"}
        stated = {"session": "s"} if place == 1 else {}
        await generated(
            stores, principal, day_s + place, 5 + place, labels=labels, caller_labels=stated
        )
    # Of a process that was killed nothing but the key is known.
    await generated(stores, principal, day_s + 9, 0, labels={}, key_label="", outcome="lost")
    stores.clock.now = NOON_S
    open_day = (await stores.activity.activity("acme", day_s, day_s + DAY_S)).rows
    spent = {(row.labels["team"], row.moved): row.cost_nano_usd for row in open_day}
    assert spent == {("search", True): 5 + 7, ("ranking", True): 6, ("ads", False): 8}
    assert sum(row.requests for row in open_day) == 5
    if isinstance(stores, DynamoStores):
        await stores.activity.close_due()
        closed = (await stores.activity.activity("acme", day_s, day_s + DAY_S)).rows
        assert sorted(closed, key=str) == sorted(open_day, key=str)
        await stores.activity.close_due()
        assert len((await stores.activity.activity("acme", day_s, day_s + DAY_S)).rows) == 3


async def test_c67_rows_are_read_from_any_place_on_each_once(stores: AnyStores) -> None:
    _, principal = await funded_key(stores, 10**6)
    for day, session in ((-3, "a"), (-3, "b"), (-2, "a"), (-1, ""), (-1, "b"), (0, "a"), (0, "b")):
        labels = {"session": session} if session else {}
        await generated(stores, principal, MIDNIGHT_S + day * DAY_S, caller_labels=labels)
    await generated(stores, principal, MIDNIGHT_S, model=None, provider=None, outcome="error")
    stores.clock.now = NOON_S
    if isinstance(stores, DynamoStores):
        await stores.activity.close_due()
        # A day between closed ones that is still open, as one with a corrupt record is.
        await stores.forget(
            "core", "W#acme", f"D#{day_of(MIDNIGHT_S - 2 * DAY_S)}".replace("-", "")
        )
    days = (MIDNIGHT_S - 3 * DAY_S, MIDNIGHT_S + DAY_S)

    whole = (await stores.activity.activity("acme", *days)).rows

    places = [row.place for row in whole]
    assert places == sorted(set(places))
    assert [row.day for row in whole] == sorted(row.day for row in whole)
    assert len(whole) == 8
    for at, place in enumerate(places):
        found = await stores.activity.read("acme", *days, after=place)
        assert [row async for row in found.rows] == list(whole[at + 1 :])


async def test_c67_code_from_before_callers_labels_reads_the_sums_of_a_closed_day(
    dynamo: DynamoStores,
) -> None:
    _, principal = await funded_key(dynamo, 10**6)
    for session in ("s-1", "s-2", None):
        labels = {} if session is None else {"session": session, "device": "a=b"}
        await generated(dynamo, principal, MIDNIGHT_S - 1, caller_labels=labels)
    dynamo.clock.now = MIDNIGHT_S + 3600
    await dynamo.activity.close_due()
    rows = {"pk": string("W#acme"), "sk": string(f"A#{day_of(MIDNIGHT_S - 1).replace('-', '')}#")}
    reply = await dynamo.client.call(
        "Query",
        {
            "TableName": dynamo.tables.core,
            "KeyConditionExpression": "pk = :pk AND begins_with(sk, :sk)",
            "ExpressionAttributeValues": {f":{name}": value for name, value in rows.items()},
        },
    )
    # A row of that code is day, model, provider and key, and no more; a key has its label beside.
    places = [item["sk"]["S"].split("#") for item in reply["Items"]]
    assert [place[:4] for place in places] == [["A", "20261120", "test/echo", "simulator"]] * 3
    assert {len(place) for place in places} == {5}
    assert all(place[4].startswith(principal.key_id) for place in places)


async def test_c67_closing_a_day_again_changes_nothing(dynamo: DynamoStores) -> None:
    await week_of_generations(dynamo)
    dynamo.clock.now = MIDNIGHT_S + 3600
    await dynamo.activity.close_due()
    closed = await dynamo.activity.activity("acme", MIDNIGHT_S - 6 * DAY_S, MIDNIGHT_S)
    for day in ("2026-11-15", "2026-11-19"):
        await dynamo.forget("core", "W#acme", f"D#{day.replace('-', '')}")

    assert await dynamo.activity.close_due() == 2
    assert await dynamo.activity.activity("acme", MIDNIGHT_S - 6 * DAY_S, MIDNIGHT_S) == closed


async def test_c67_a_day_whose_closing_was_interrupted_counts_once(dynamo: DynamoStores) -> None:
    made = await week_of_generations(dynamo)
    await dynamo.activity.close_due()
    # The rows of a day are written before its mark.
    await dynamo.forget("core", "W#acme", f"D#{day_of(MIDNIGHT_S - 5 * DAY_S).replace('-', '')}")
    for _ in range(2):
        found = await dynamo.activity.activity("acme", MIDNIGHT_S - 6 * DAY_S, int(NOON_S))
        assert sum(row.cost_nano_usd for row in found.rows) == 7 * len(made)
        assert sum(row.requests for row in found.rows) == len(made)
        await dynamo.activity.close_due()


async def test_c67_closed_days_outlive_their_records(dynamo: DynamoStores) -> None:
    made = await week_of_generations(dynamo)
    dynamo.clock.now = MIDNIGHT_S + DAY_S + 3600
    await dynamo.activity.close_due()
    for record in made:
        day = day_of(created_s(record.id)).replace("-", "")
        await dynamo.forget("generations", f"W#acme#{day}", f"G#{record.id}")

    dynamo.clock.now += 60 * DAY_S
    found = await dynamo.activity.activity("acme", MIDNIGHT_S - 6 * DAY_S, MIDNIGHT_S + 1)
    assert sum(row.requests for row in found.rows) == len(made)


async def test_c67_activity_tells_how_much_is_known_of_each_day(dynamo: DynamoStores) -> None:
    made = await week_of_generations(dynamo)
    dynamo.clock.now = MIDNIGHT_S + 3600
    await dynamo.activity.close_due()
    await dynamo.forget("core", "W#acme", "D#20261118")
    dynamo.clock.now = NOON_S

    found = await dynamo.activity.activity("acme", MIDNIGHT_S - 30 * DAY_S, int(NOON_S))

    assert found.missing_days == ("2026-10-22", "2026-10-23", "2026-10-24")
    assert found.live_days[:-2] == tuple(f"2026-10-{day}" for day in range(25, 31))
    assert found.live_days[-2:] == ("2026-11-18", "2026-11-21")
    assert (found.closed_days[0], found.closed_days[-1]) == ("2026-10-31", "2026-11-20")
    assert len(found.closed_days) == 20
    assert found.last_record_s == made[-1].created_s


async def test_c67_todays_numbers_are_at_most_a_minute_old(dynamo: DynamoStores) -> None:
    _, principal = await funded_key(dynamo, 10**6)

    async def requests() -> int:
        found = await dynamo.activity.activity("acme", MIDNIGHT_S, MIDNIGHT_S + DAY_S)
        return sum(row.requests for row in found.rows)

    assert await requests() == 0
    # The first request is seen at once: nobody looks a minute at an empty chart.
    await generated(dynamo, principal, NOON_S)
    assert await requests() == 1
    await generated(dynamo, principal, NOON_S + 1)
    assert await requests() == 1
    dynamo.clock.now += 60
    assert await requests() == 2
