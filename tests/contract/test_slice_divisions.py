"""Divisions of slices beside other changes of their level.

Keeps C61 and C62.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import pytest
from msgspec.structs import replace

from tests.contract.test_slices import (
    ACME,
    assert_books,
    count,
    fresh,
    grow,
    hold_all,
    rooms,
    settle,
    slices,
    team,
    teamed,
)
from tests.contract.test_workspaces import maintenance
from tests.nightly import first
from tests.stores import TESTER, DynamoStores, dynamo_stores
from tollgate.aws.attributes import Item
from tollgate.aws.aws_json import ATTEMPTS_MAX, AwsCaller, AwsReply
from tollgate.core.errors import ErrorCode, GatewayError
from tollgate.core.ids import IdSource
from tollgate.core.limits import LimitOwner
from tollgate.core.principal import Principal
from tollgate.stores.aws.decoding import read_number, read_text
from tollgate.stores.aws.tables import get_item, level_row_key
from tollgate.stores.keys.slice_writes import Division, SliceWrites
from tollgate.stores.people.slices import LevelSlices
from tollgate.stores.ports.base import Hold
from tollgate.stores.rules.level_settings import LevelSettings, state_settings

TEAM = LimitOwner(level="team", id="search", workspace_id=ACME)
MIDNIGHT_S = 1_795_305_600.0
DAY = LevelSettings(limits_nano_usd={"day": 400})
LIMITS_OF_400 = (
    LevelSettings(tokens_per_minute=400),
    LevelSettings(concurrency=400),
    LevelSettings(requests_per_minute=6_000, burst=400),
)


@dataclass
class TornRead:
    """Answers the first read of several items with some of them as they were before."""

    client: AwsCaller
    before: Sequence[Item]
    done: bool = False

    async def call(
        self, operation: str, payload: Mapping[str, object], *, attempts_max: int = ATTEMPTS_MAX
    ) -> AwsReply:
        reply = await self.client.call(operation, payload, attempts_max=attempts_max)
        if operation == "BatchGetItem" and not self.done:
            self.done = True
            old = {read_text(item, "pk"): item for item in self.before}
            for table, items in reply["Responses"].items():
                reply["Responses"][table] = [old.get(read_text(it, "pk"), it) for it in items]
        return reply


@dataclass
class Interrupted:
    """Lets others do something before the first transaction."""

    client: AwsCaller
    others: Callable[[], Awaitable[object]]
    done: bool = False

    async def call(
        self, operation: str, payload: Mapping[str, object], *, attempts_max: int = ATTEMPTS_MAX
    ) -> AwsReply:
        if operation == "TransactWriteItems" and not self.done:
            self.done = True
            await self.others()
        return await self.client.call(operation, payload, attempts_max=attempts_max)


async def divide(
    stores: DynamoStores, client: AwsCaller, settings: LevelSettings = DAY, slices: int = 4
) -> bool:
    """Even out the slices of the team, by a row that says that there are so many."""
    writes = SliceWrites(
        client, stores.tables.ledger, ids=IdSource(stores.clock), clock=stores.clock
    )
    return await writes.divide(
        Division(
            owner=TEAM,
            settings=state_settings(settings),
            revision=0,
            slices_before=slices,
            slices=slices,
        )
    )


@pytest.mark.parametrize("other", first(1, [{"display_name": "Search"}, {"models": ("a/*",)}]))
async def test_c61_a_team_that_was_renamed_is_sliced_and_evened_out_like_others(
    honest: DynamoStores, other: Mapping[str, object]
) -> None:
    """Such a change raises the revision of the team's row, and is none of its state."""
    secret, principal = await teamed(honest, DAY, slices=1)
    await honest.teams.change(ACME, "search", lambda it: replace(it, **other), by=TESTER)
    crowd = [await honest.ledger.hold(principal, 1) for _ in range(9)]
    assert (await maintenance(honest).run((await honest.sweeper.run()).crowded)).sliced == 1
    for hold in crowd:
        await settle(honest, hold, 0)

    holds, _ = await hold_all(honest, await fresh(honest, secret), 20)
    for hold in holds:
        await settle(honest, hold, 0 if hold.slices else 20)
    least, *_, most = await rooms(honest)
    assert least < 20 < 95 < most
    await maintenance(honest).run()
    least, *_, most = await rooms(honest)
    assert most - least <= 1
    await assert_books(honest)


async def test_a_team_without_limits_gets_no_slices_for_what_it_holds_from_before(
    honest: DynamoStores,
) -> None:
    _, principal = await teamed(honest, DAY, slices=1)
    holds = [await honest.ledger.hold(principal, 1) for _ in range(9)]
    await honest.teams.change(ACME, "search", lambda it: replace(it, limits_nano_usd={}), by=TESTER)
    await maintenance(honest).run((await honest.sweeper.run()).crowded)
    assert await count(honest) == 1
    for hold in holds:
        await settle(honest, hold, 1)
    await assert_books(honest)


async def fill_first(stores: DynamoStores, principal: Principal) -> list[Hold]:
    """Hold all that the first slice has, and nothing on the others."""
    holds, _ = await hold_all(stores, principal, 20)
    for hold in holds:
        if hold.slices:
            await settle(stores, hold, 0)
    return [hold for hold in holds if not hold.slices]


@pytest.mark.parametrize("changes", first(1, [False, True]))
@pytest.mark.parametrize(
    ("settings", "limit", "most"), [(DAY, "ld", 400), (LevelSettings(concurrency=20), "cc", 20)]
)
async def test_c62_slices_read_before_and_after_another_division_are_one_limit_all_the_same(
    honest: DynamoStores, settings: LevelSettings, limit: str, most: int, changes: bool
) -> None:
    """DynamoDB reads several items one by one, and another round may write between two of them."""

    async def parts() -> list[int]:
        return [read_number(item, limit) for item in await slices(honest)]

    _, principal = await teamed(honest, settings)
    holds = await fill_first(honest, principal)
    assert await divide(honest, honest.client, settings)
    uneven = sorted(await parts())
    assert len(set(uneven)) > 1
    before = [it for it in await slices(honest) if read_text(it, "pk").endswith("#1")]
    for hold in holds:
        await settle(honest, hold, 0)
    assert await divide(honest, honest.client, settings)
    assert len(set(await parts())) == 1
    await fill_first(honest, principal)

    torn = TornRead(honest.client, before)
    if changes:
        more = replace(settings, limits_nano_usd={**settings.limits_nano_usd, "month": 1_000})
        teams = dynamo_stores(torn, honest.tables, honest.clock).teams
        await teams.change(ACME, "search", lambda _: more, by=TESTER)
    else:
        assert await divide(honest, torn, settings)
    assert torn.done
    assert sorted(await parts()) == uneven
    assert sum(uneven) == most
    if settings is DAY:
        assert sum(await rooms(honest)) == most - 100
    await assert_books(honest)


@pytest.mark.parametrize("settings", first(1, [DAY, *LIMITS_OF_400]))
async def test_c62_slices_that_were_added_since_the_row_was_read_keep_their_parts(
    honest: DynamoStores, settings: LevelSettings
) -> None:
    """Else a round beside another one gives the first four the whole limit again."""
    await teamed(honest, settings, slices=16)
    there = await slices(honest)
    assert not await divide(honest, honest.client, settings)
    assert await slices(honest) == there


async def test_c61_a_limit_that_goes_while_its_team_gets_slices_is_gone_from_all_of_them(
    honest: DynamoStores,
) -> None:
    """Without slices the team is no longer counted, and its state may keep the limit."""
    secret, _ = await teamed(honest, DAY, slices=1)
    client = Interrupted(honest.client, lambda: grow(honest))
    teams = dynamo_stores(client, honest.tables, honest.clock).teams
    await teams.change(ACME, "search", lambda it: replace(it, limits_nano_usd={}), by=TESTER)
    assert client.done
    assert await count(honest) == 4
    await honest.ledger.hold(await fresh(honest, secret), 1_000, covered=True)


async def test_c61_no_part_of_today_is_negative_for_what_yesterday_still_holds(
    honest: DynamoStores,
) -> None:
    """A limit is lowered below what is used, and what the new day does not hold makes up for no
    part of it: else another slice had more than the limit on the next day."""
    honest.clock.now = MIDNIGHT_S - 60
    _, principal = await teamed(honest, DAY)
    held = [await honest.ledger.hold(principal, 40) for _ in range(6)]
    honest.clock.now = MIDNIGHT_S + 60
    for hold in [await honest.ledger.hold(principal, 25) for _ in range(8)]:
        await settle(honest, hold, 25)
    await honest.teams.change(
        ACME, "search", lambda it: replace(it, limits_nano_usd={"day": 20}), by=TESTER
    )
    parts = [read_number(item, "ld") for item in await slices(honest)]
    assert min(parts) >= 0
    assert sum(parts) == 20
    for hold in held:
        await settle(honest, hold, 40)
    await assert_books(honest)


@pytest.mark.parametrize("known", first(1, [1, 4]))
async def test_c61_a_process_that_has_not_seen_more_slices_yet_refuses_by_the_whole_limit(
    honest: DynamoStores, known: int
) -> None:
    """Authentication has cached their number for up to five seconds."""
    settings = LevelSettings(requests_per_minute=6_000, burst=100)
    _, principal = await teamed(honest, settings, slices=known)
    await grow(honest, 33)
    assert await count(honest) == 16
    holds, refused = await hold_all(honest, principal)
    assert len(holds) == 100
    assert {hold.levels[0].slice for hold in holds} == set(range(16))
    assert refused.limit is not None
    assert refused.limit.limit == 6_000


async def test_a_rate_that_is_in_use_while_slices_are_made_serves_on_with_them(
    honest: DynamoStores,
) -> None:
    """A request comes between the read of its bucket and the transaction, as it does when a team
    is busy: the new slices begin a quarter of a second emptier, and not closed for three."""
    settings = LevelSettings(requests_per_minute=6_000, burst=100)
    secret, principal = await teamed(honest, settings, slices=1)
    await honest.ledger.hold(principal, 1)
    client = Interrupted(honest.client, lambda: honest.ledger.hold(principal, 1))
    await grow(dynamo_stores(client, honest.tables, honest.clock), 33)
    assert client.done
    holds, _ = await hold_all(honest, await fresh(honest, secret))
    # In whole requests of each slice.
    assert 98 - 25 - 16 <= len(holds) <= 98


async def hold_on(stores: DynamoStores, principal: Principal, place: int, amount: int) -> Hold:
    """Hold on one slice: ids are tried until one leads to it."""
    for _ in range(200):
        hold = await stores.ledger.hold(principal, amount)
        if hold.levels[0].slice == place:
            return hold
        await settle(stores, hold, 0)
    raise AssertionError("no id leads to the slice")


async def test_c61_a_slice_that_is_busy_for_a_moment_speaks_before_one_that_has_spent_its_part(
    honest: DynamoStores,
) -> None:
    """Else a caller is told to come back tomorrow, where the next answer that ends lets it in."""
    _, principal = await teamed(honest, replace(DAY, concurrency=8))
    await hold_on(honest, principal, 0, 60)
    for place in (1, 1, 2, 2, 3, 3):
        last = await hold_on(honest, principal, place, 1)
    with pytest.raises(GatewayError) as refused:
        await honest.ledger.hold(principal, 60, covered=True)
    assert refused.value.code is ErrorCode.RATE_LIMIT_EXCEEDED
    assert refused.value.retry_after_s is not None
    assert refused.value.limit is not None
    assert (refused.value.limit.kind, refused.value.limit.limit) == ("concurrency", 8)
    await settle(honest, last, 0)
    assert await honest.ledger.hold(principal, 60, covered=True)


async def test_c61_a_slice_without_a_part_of_the_rate_says_nothing_about_the_next_request(
    honest: DynamoStores,
) -> None:
    """It never lets one through, so the one that has a part and lacks money refuses."""
    settings = replace(DAY, requests_per_minute=6_000, burst=3)
    _, principal = await teamed(honest, settings)
    for _ in range(3):
        await honest.ledger.hold(principal, 60, covered=True)
    honest.clock.now += 1
    with pytest.raises(GatewayError) as refused:
        await honest.ledger.hold(principal, 60, covered=True)
    assert refused.value.limit is not None
    assert (refused.value.limit.kind, refused.value.limit.remaining) == ("day", 40)
    assert refused.value.retry_after_s is None


@pytest.mark.parametrize("before", first(1, [0, 2]))
@pytest.mark.parametrize(
    "settings",
    first(
        2,
        [
            LevelSettings(limits_nano_usd={"day": 24}),
            LevelSettings(tokens_per_minute=24),
            LevelSettings(concurrency=24),
            LevelSettings(requests_per_minute=1, burst=24),
        ],
    ),
)
async def test_c62_what_is_held_while_slices_are_made_is_given_to_no_other_slice(
    honest: DynamoStores, settings: LevelSettings, before: int
) -> None:
    """The read has seen none of it, and what the first slice gives up is held by now."""
    secret, principal = await teamed(honest, settings, slices=1)

    held = 0

    async def hold(count: int) -> None:
        nonlocal held
        for _ in range(count):
            # Of those that are refused each has met another slice first.
            with suppress(GatewayError):
                await honest.ledger.hold(principal, 1, tokens=1, covered=True)
                held += 1

    await hold(before)
    client = Interrupted(honest.client, lambda: hold(15))
    await grow(dynamo_stores(client, honest.tables, honest.clock))
    assert client.done
    assert held == before + 15
    principal = await fresh(honest, secret)
    await hold(40)
    rounded = 4 if settings.burst else 0
    assert 24 - rounded <= held <= 24


@pytest.mark.parametrize(
    ("settings", "limit", "part"), [(DAY, "ld", 100), (LevelSettings(concurrency=20), "cc", 5)]
)
async def test_c62_slices_are_divided_as_they_were_read_or_anew(
    honest: DynamoStores, settings: LevelSettings, limit: str, part: int
) -> None:
    _, principal = await teamed(honest, settings)
    ended, *others = await fill_first(honest, principal)
    assert await divide(honest, honest.client, settings)
    await settle(honest, ended, 0)

    async def divide_meanwhile() -> None:
        for hold in others:
            await settle(honest, hold, 0)
        assert await divide(honest, honest.client, settings)

    assert await divide(honest, Interrupted(honest.client, divide_meanwhile), settings)
    assert [read_number(item, limit) for item in await slices(honest)] == [part] * 4
    if settings is DAY:
        assert await rooms(honest) == [part] * 4


async def test_c61_a_limit_that_comes_while_slices_are_made_is_that_of_all_of_them(
    honest: DynamoStores,
) -> None:
    """What was read had no such limit, and none that was read has changed."""
    await teamed(honest, DAY, slices=1)
    both = {"day": 400, "month": 100}

    async def limit() -> None:
        await honest.teams.change(
            ACME, "search", lambda it: replace(it, limits_nano_usd=both), by=TESTER
        )

    row = level_row_key("team", ACME, "search")
    read = await get_item(honest.client, honest.tables.core, row)
    assert read is not None
    client = Interrupted(honest.client, limit)
    care = LevelSlices(client, honest.tables, ids=IdSource(honest.clock), clock=honest.clock)
    assert not await care.grow("team", read, 1)
    assert await count(honest) == 1
    await grow(honest)
    assert (await team(honest)).spending.remaining_nano_usd == both
    assert sum(read_number(item, "lm") for item in await slices(honest)) == 100
