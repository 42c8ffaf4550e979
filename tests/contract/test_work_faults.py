"""Killed processes in the middle of work that is no chat, and the bugs that they must show.

Keeps C64, C65, C67, C81, C82.
"""

import asyncio
from pathlib import Path

import pytest

from tests.faults.copies import run_copy_of_project
from tests.faults.mutants import WORK_MUTANTS
from tests.faults.works import find_violations
from tests.nightly import first
from tests.works import CASES

_AT_ONCE = 2


def _rank(kind: str) -> tuple[bool, str]:
    """Put the kind first that makes several requests and one bill of them."""
    return kind != "embedding", kind


# Each night all kinds: seeded bugs of the others are in parts that tests of prices, ledger and
# sweeper hold, too.
@pytest.mark.parametrize(
    "kind", first(1, sorted({case.kind for case in CASES.values()}, key=_rank))
)
async def test_c64_c81_c82_the_books_survive_a_process_that_dies_at_any_write(
    honest_url: str, kind: str
) -> None:
    assert [violation async for violation in find_violations(honest_url, [kind])] == []


@pytest.mark.nightly
async def test_each_seeded_bug_of_work_is_caught(ministack_url: str, tmp_path: Path) -> None:
    slots = asyncio.Semaphore(_AT_ONCE)

    async def is_caught(place: int) -> bool:
        async with slots:
            mutant = WORK_MUTANTS[place]
            output = await run_copy_of_project(
                tmp_path / str(place),
                mutant,
                "tests.faults.works",
                arguments=[ministack_url, mutant.shown_by],
            )
        return "VIOLATION" in output

    caught = await asyncio.gather(*map(is_caught, range(len(WORK_MUTANTS))))
    survivors = [mutant.name for mutant, it in zip(WORK_MUTANTS, caught, strict=True) if not it]
    assert survivors == []
