"""Divisions of slices beside other changes of their level.

Keeps C61 and C62.
"""

from collections.abc import Mapping

import pytest
from msgspec.structs import replace

from tests.contract.test_slices import (
    ACME,
    assert_books,
    count,
    fresh,
    hold_all,
    rooms,
    settle,
    teamed,
)
from tests.contract.test_workspaces import maintenance
from tests.stores import TESTER, DynamoStores
from tollgate.stores.rules.level_settings import LevelSettings


@pytest.mark.parametrize("other", [{"display_name": "Search"}, {"models": ("a/*",)}])
async def test_c61_a_team_that_was_renamed_is_sliced_and_evened_out_like_others(
    honest: DynamoStores, other: Mapping[str, object]
) -> None:
    """Such a change raises the revision of the team's row, and is none of its state."""
    limits = {"day": 400}
    secret, principal = await teamed(honest, LevelSettings(limits_nano_usd=limits), slices=1)
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
    settings = LevelSettings(limits_nano_usd={"day": 400})
    _, principal = await teamed(honest, settings, slices=1)
    holds = [await honest.ledger.hold(principal, 1) for _ in range(9)]
    await honest.teams.change(ACME, "search", lambda it: replace(it, limits_nano_usd={}), by=TESTER)
    await maintenance(honest).run((await honest.sweeper.run()).crowded)
    assert await count(honest) == 1
    for hold in holds:
        await settle(honest, hold, 1)
    await assert_books(honest)
