"""Generations in rounds under killed processes and callers who leave, and the bugs they must show.

Keeps C36, C64, C65, C73.
"""

import asyncio
from pathlib import Path

import pytest

from tests.faults.copies import run_copy_of_project
from tests.faults.mutants import ROUND_MUTANTS
from tests.faults.rounds import WAYS, find_violations

_AT_ONCE = 2


@pytest.mark.parametrize("way", WAYS)
async def test_c64_c73_the_books_survive_the_end_of_rounds_at_any_place(
    honest_url: str, way: str
) -> None:
    assert [violation async for violation in find_violations(honest_url, [way])] == []


@pytest.mark.nightly
async def test_each_seeded_bug_of_rounds_is_caught(ministack_url: str, tmp_path: Path) -> None:
    slots = asyncio.Semaphore(_AT_ONCE)

    async def is_caught(place: int) -> bool:
        async with slots:
            mutant = ROUND_MUTANTS[place]
            output = await run_copy_of_project(
                tmp_path / str(place),
                mutant,
                "tests.faults.rounds",
                arguments=[ministack_url, mutant.shown_by],
            )
        return "VIOLATION" in output

    caught = await asyncio.gather(*map(is_caught, range(len(ROUND_MUTANTS))))
    survivors = [mutant.name for mutant, it in zip(ROUND_MUTANTS, caught, strict=True) if not it]
    assert survivors == []
