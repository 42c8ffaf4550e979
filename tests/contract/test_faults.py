"""The fault test, and the bugs that it must catch.

`make soak-ledger` runs it longer: TOLLGATE_SOAK_S says how many seconds each wallet is worked on.
With DDB_LOCAL_DIR, a folder that holds DynamoDB Local, it runs on that too.

Keeps C64.
"""

import asyncio
import os
from pathlib import Path

import pytest

from tests.faults.copies import run_copy_of_project
from tests.faults.mutants import MUTANTS, Mutant
from tests.faults.run import RICH, STARVED, run
from tests.faulty_client import MONEY_SITES, TRANSACTION_SITES, faults_at

# What every run has to go through, and does: the time ends only once each has happened.
SEEN = (
    "settled",
    "settled twice",
    "vanished",
    "swept",
    "entered",
    "grown",
    "moved",
    "slices seen",
    "divided",
    "stopped",
    "midnights",
    "looks",
    "workspace_locked",
    "invalid_api_key",
)
SECONDS = float(os.environ.get("TOLLGATE_SOAK_S", "4"))
_MUTANT_SECONDS = "3"
# What a write that comes late brings shows only if what it doubles is settled by then: on a busy
# machine that takes longer.
_MUTANT_LATE_S = ("3", "6", "12", "12")
_AT_ONCE = 2


@pytest.mark.nightly
async def test_c64_the_books_survive_a_bad_year(honest_url: str) -> None:
    seed = int.from_bytes(os.urandom(3), "big")
    print(f"seed {seed}")

    found = await asyncio.gather(
        *(run(honest_url, wallet, seconds=SECONDS, seed=seed) for wallet in (RICH, STARVED))
    )

    for findings in found:
        print(dict(findings.counts))
        assert findings.violations == []
        for seen in SEEN:
            assert findings.counts[seen] > 0, seen
    rich, starved = (findings.counts for findings in found)
    assert starved["insufficient_credits"] > 0
    assert (rich + starved)["expired"] > 0
    missed = [
        f"{fault}, {site}"
        for site in sorted(MONEY_SITES | TRANSACTION_SITES)
        for fault in faults_at(site)
        if not (rich + starved)[f"{fault}, {site}"]
    ]
    assert missed == [], "a write has not met every fault"


@pytest.mark.nightly
async def test_each_seeded_bug_is_caught_and_nothing_without_one(
    ministack_url: str, tmp_path: Path
) -> None:
    """The same run over a copy of the project with one bug in it; a survivor fails.

    A run ends at its first violation. It has the wallet that shows its bug best; what survives that
    has both.
    """
    slots = asyncio.Semaphore(_AT_ONCE)

    async def run_copy(place: int, mutant: Mutant | None) -> str:
        output = ""
        wallets = [(mutant and mutant.shown_by) or RICH.name]
        for late_s in _MUTANT_LATE_S:
            copy = tmp_path / f"{place}-{late_s}"
            async with slots:
                output = await run_copy_of_project(
                    copy,
                    mutant,
                    "tests.faults.first_violation",
                    arguments=(ministack_url, _MUTANT_SECONDS, str(place), late_s, *wallets),
                )
            if mutant is None or "VIOLATION" in output:
                break
            wallets = [RICH.name, STARVED.name]
        return output

    mutants = (None, *MUTANTS)
    unharmed, *harmed = await asyncio.gather(*(run_copy(*it) for it in enumerate(mutants)))

    assert "VIOLATION" not in unharmed, unharmed[-1500:]
    survivors = {
        mutant.name: output[-1500:]
        for mutant, output in zip(MUTANTS, harmed, strict=True)
        if "VIOLATION" not in output
    }
    assert survivors == {}
