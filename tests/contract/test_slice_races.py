"""Holds that come while the slices of a level are divided, and limits that are lowered below them.

Keeps C61.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

import pytest
from msgspec.structs import replace

from tests.contract.test_counts import metered
from tests.contract.test_slices import (
    ACME,
    assert_books,
    hold_all,
    rooms,
    settle,
    team,
    teamed,
)
from tests.contract.test_workspaces import maintenance
from tests.metered import Metered
from tests.stores import TESTER, DynamoStores, dynamo_stores
from tollgate.aws.aws_json import ATTEMPTS_MAX, AwsCaller, AwsReply
from tollgate.core.errors import ErrorCode, GatewayError, LedgerError
from tollgate.core.ids import IdSource
from tollgate.core.principal import Principal
from tollgate.stores.ports.base import Hold
from tollgate.stores.rules.account import shard_order
from tollgate.stores.rules.level_settings import LevelSettings

__all__ = ["metered"]


@dataclass
class Overtaken:
    """A client whose next division is overtaken by something else."""

    client: AwsCaller
    overtake: Callable[[], Awaitable[None]] | None

    async def call(
        self, operation: str, payload: Mapping[str, object], *, attempts_max: int = ATTEMPTS_MAX
    ) -> AwsReply:
        divides = operation == "TransactWriteItems" and "rv = :rv" in str(payload)
        if divides and self.overtake is not None:
            overtake, self.overtake = self.overtake, None
            await overtake()
        return await self.client.call(operation, payload, attempts_max=attempts_max)


def overtaken(stores: DynamoStores, overtake: Callable[[], Awaitable[None]]) -> DynamoStores:
    """The same tables behind a client whose first division comes late."""
    return dynamo_stores(Overtaken(stores.client, overtake), stores.tables, stores.clock)


def ids_of_slice(stores: DynamoStores, place: int) -> Iterator[str]:
    """Ids of holds that ask this one of four slices first."""
    ids = IdSource(stores.clock)
    made = (ids.new_id() for _ in range(500))
    return (it for it in made if shard_order(it, 4)[0] == place)


async def one_a_slice(stores: DynamoStores, principal: Principal, amount: int) -> list[Hold]:
    """Hold an amount that each of the four slices has once, the first slice first."""
    holds = [await stores.ledger.hold(principal, amount, covered=True) for _ in range(4)]
    return sorted(holds, key=lambda hold: hold.levels[0].slice)


async def test_a_refusal_says_what_all_slices_have_left(honest: DynamoStores) -> None:
    _, principal = await teamed(honest, LevelSettings(limits_nano_usd={"day": 400}))
    await one_a_slice(honest, principal, 60)
    with pytest.raises(GatewayError) as refused:
        await honest.ledger.hold(principal, 200, covered=True)
    assert refused.value.limit is not None
    assert (refused.value.limit.limit, refused.value.limit.remaining) == (400, 160)


async def test_a_full_slice_is_not_asked_where_another_is_seen_to_be_free(
    metered: tuple[Metered, DynamoStores],
) -> None:
    meter, stores = metered
    _, principal = await teamed(stores, LevelSettings(concurrency=4))
    for place in (0, 1, 2, 0):
        meter.reset()
        hold = await stores.ledger.hold(principal, 1, next(ids_of_slice(stores, place)))
    assert hold.slices == {"team": 3}
    # That which was asked first is full: all are read, and the free one is asked.
    assert (meter.conditions_failed, meter.reads) == (1, ["BatchGetItem"])


async def test_c61_a_limit_below_what_is_used_lends_again_only_what_was_held(
    honest: DynamoStores,
) -> None:
    """One slice has spent its part, the others hold theirs, which comes back."""
    _, principal = await teamed(honest, LevelSettings(limits_nano_usd={"day": 400}))
    spent, *held = await one_a_slice(honest, principal, 100)
    await settle(honest, spent, 100)
    await honest.teams.change(
        ACME, "search", lambda it: replace(it, limits_nano_usd={"day": 120}), by=TESTER
    )
    for hold in held:
        await settle(honest, hold, 0)
    assert len((await hold_all(honest, principal))[0]) == 20
    await assert_books(honest)


async def test_c61_a_hold_that_overtakes_a_round_keeps_what_it_took(honest: DynamoStores) -> None:
    _, principal = await teamed(honest, LevelSettings(limits_nano_usd={"day": 400}))
    for hold in await one_a_slice(honest, principal, 100):
        await settle(honest, hold, 0 if hold.slices else 100)
    assert await rooms(honest) == [0, 100, 100, 100]

    async def overtake() -> None:
        await honest.ledger.hold(principal, 100, covered=True)

    await maintenance(overtaken(honest, overtake)).run()
    assert await rooms(honest) == [50] * 4
    await assert_books(honest)


async def test_c61_requests_that_overtake_a_lower_concurrency_count_against_it(
    honest: DynamoStores,
) -> None:
    _, principal = await teamed(honest, LevelSettings(concurrency=20))

    async def overtake() -> None:
        for id_ in islice(ids_of_slice(honest, 0), 5):
            await honest.ledger.hold(principal, 1, id_)

    await overtaken(honest, overtake).teams.change(
        ACME, "search", lambda it: replace(it, concurrency=8), by=TESTER
    )
    assert len((await hold_all(honest, principal))[0]) == 3


async def test_what_the_wallet_refuses_is_released_on_the_slice_that_took_it(
    honest: DynamoStores,
) -> None:
    _, principal = await teamed(honest, LevelSettings(concurrency=40))
    for place in range(4):
        id_ = next(ids_of_slice(honest, place))
        with pytest.raises(GatewayError) as refused:
            await honest.ledger.hold(principal, 10**13, id_, covered=True)
        assert refused.value.code is ErrorCode.INSUFFICIENT_CREDITS
    assert (await team(honest)).spending.held_nano_usd == 0
    await assert_books(honest)


async def test_the_parts_of_a_slice_that_is_missing_are_given_to_no_other(
    honest: DynamoStores,
) -> None:
    await teamed(honest, LevelSettings(limits_nano_usd={"day": 400}))
    await honest.forget("ledger", f"T#{ACME}#search#3", "S")
    assert (await maintenance(honest).run()).failed == 1
    with pytest.raises(LedgerError):
        await honest.teams.change(
            ACME, "search", lambda it: replace(it, limits_nano_usd={"day": 500}), by=TESTER
        )
    assert await rooms(honest) == [100] * 3
