"""Bugs of lines that providers run, seeded one by one: the fault tests of workers show each.

Keeps C83.
"""

import asyncio
from pathlib import Path

import pytest

from tests.faults.copies import run_copy_of_project
from tests.faults.mutants import SUBMISSION_MUTANTS, Mutant

_AT_ONCE = 2
_OPTIONS = (
    *("--disable-plugin-autoload", "-p", "pytest_asyncio.plugin"),
    *("-o", "asyncio_mode=auto", "-x", "-q"),
)
_FILE = "tests/unit/engine/test_provider_batches.py"


async def result_of(root: Path, mutant: Mutant | None, shown_by: str) -> str:
    arguments = (*_OPTIONS, _FILE, "-k", shown_by)
    return await run_copy_of_project(root, mutant, "pytest", arguments=arguments)


@pytest.mark.nightly
async def test_each_seeded_bug_of_submissions_is_caught(tmp_path: Path) -> None:
    assert " passed" in await result_of(tmp_path / "none", None, "half_the_price")
    slots = asyncio.Semaphore(_AT_ONCE)

    async def is_caught(place: int) -> bool:
        async with slots:
            mutant = SUBMISSION_MUTANTS[place]
            output = await result_of(tmp_path / str(place), mutant, mutant.shown_by)
        return " failed" in output

    caught = await asyncio.gather(*map(is_caught, range(len(SUBMISSION_MUTANTS))))
    survivors = [it.name for it, was in zip(SUBMISSION_MUTANTS, caught, strict=True) if not was]
    assert survivors == []
