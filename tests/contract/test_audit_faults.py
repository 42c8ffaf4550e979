"""Crashes and races of administration, and the bugs that they must show.

Keeps C90.
"""

import asyncio
from pathlib import Path

import pytest

from tests.faults.administration import CHANGES, RACE, find_violations
from tests.faults.copies import run_copy_of_project
from tests.faults.mutants import ADMINISTRATION_MUTANTS
from tests.nightly import first

_AT_ONCE = 2


# The parts in which seeded bugs show. Each night all parts.
SHOWN = {mutant.shown_by for mutant in ADMINISTRATION_MUTANTS}


@pytest.mark.parametrize("parts", first(1, [SHOWN, {*CHANGES, RACE} - SHOWN]))
async def test_c90_no_change_is_without_its_entry_and_no_entry_without_its_change(
    honest_url: str, parts: set[str]
) -> None:
    assert {*CHANGES, RACE} > SHOWN
    assert [violation async for violation in find_violations(honest_url, parts)] == []


@pytest.mark.nightly
async def test_c90_each_seeded_bug_of_administration_is_caught(
    ministack_url: str, tmp_path: Path
) -> None:
    slots = asyncio.Semaphore(_AT_ONCE)

    async def is_caught(place: int) -> bool:
        async with slots:
            mutant = ADMINISTRATION_MUTANTS[place]
            output = await run_copy_of_project(
                tmp_path / str(place),
                mutant,
                "tests.faults.administration",
                arguments=[ministack_url, mutant.shown_by],
            )
        return "VIOLATION" in output

    caught = await asyncio.gather(*map(is_caught, range(len(ADMINISTRATION_MUTANTS))))
    survivors = [
        mutant.name for mutant, it in zip(ADMINISTRATION_MUTANTS, caught, strict=True) if not it
    ]
    assert survivors == []
