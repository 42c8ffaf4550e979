"""Bugs seeded into the workers of background responses, each caught by its unit test.

Keeps C84.
"""

from pathlib import Path

import pytest

from tests.faults.copies import run_copy_of_project
from tests.faults.mutants import BACKGROUND_MUTANTS, PROVIDER_RUN_MUTANTS

_CONFIG = Path(__file__).parent.parent.parent / "pyproject.toml"


@pytest.mark.nightly
async def test_c84_seeded_bugs_of_background_workers_are_caught(tmp_path: Path) -> None:
    missed = []
    mutants = [
        *((each, "test_background.py") for each in BACKGROUND_MUTANTS),
        *((each, "test_provider_runs.py") for each in PROVIDER_RUN_MUTANTS),
    ]
    for number, (mutant, file) in enumerate(mutants):
        root = tmp_path / str(number)
        paths = f"pythonpath={root / 'functions'} {root}"
        options = ["-c", str(_CONFIG), "--rootdir", str(root), "-o", paths, "-q", "-x"]
        output = await run_copy_of_project(
            root,
            mutant,
            "pytest",
            arguments=[*options, "-k", mutant.shown_by, f"tests/unit/web/{file}"],
        )
        if "1 failed" not in output:
            missed.append((mutant.name, output[-500:]))
    assert not missed
