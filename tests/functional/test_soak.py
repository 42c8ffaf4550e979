"""The short form of `make soak`, and a crowd whose 503s leave holds behind.

Keeps C36, C62, C64, C66.
"""

import json
import os
from pathlib import Path

import pytest

from tests.soak.__main__ import keep, table
from tests.soak.criteria import SHORT_BOUNDS
from tests.soak.crowd import CALLERS, send_crowd
from tests.soak.plan import FAULT_KINDS, Plan
from tests.soak.run import soak, staged

SECONDS = 12.0


def make_seed() -> int:
    seed = int.from_bytes(os.urandom(3), "big")
    print(f"seed {seed}")
    return seed


@pytest.mark.nightly
async def test_c64_two_processes_under_faults_keep_nothing_and_their_books(
    ministack_url: str, tmp_path: Path
) -> None:
    seed = make_seed()
    plan = Plan(
        seconds=SECONDS,
        seed=seed,
        requests_per_second=10,
        kill_every_s=SECONDS,
        freeze_every_s=SECONDS,
        freeze_s=2,
        throttle_every_s=SECONDS,
        throttle_s=1.5,
        outage_every_s=SECONDS,
        outage_s=1,
        sweep_every_s=5,
        sample_every_s=1,
        aftermath_s=1,
        rest_s=1,
    )
    async with staged(ministack_url, tmp_path, seed) as stage:
        findings = await soak(stage, plan)

    counts = findings.counts
    print(counts)
    assert findings.violations == []
    assert [str(it) for it in findings.verdicts(SHORT_BOUNDS) if not it.holds] == []
    # Each part has happened.
    assert {it.kind for it in findings.faults} == set(FAULT_KINDS)
    seen = ("delivered in calm", "told refused", "told left", "store frozen", "store throttled")
    assert [it for it in seen if not counts[it]] == []
    assert len(findings.at_rest) == len(stage.servers)
    assert counts["sweeps"] + counts["sweeps that failed"] > 0
    # What is printed and kept is what was found.
    _, line = table(findings).splitlines()
    assert line.startswith(f"0 | {counts['told delivered']} | {counts['told refused']} | ")
    keep(findings, findings.verdicts(SHORT_BOUNDS), tmp_path / "dist" / "soak.json")
    kept = json.loads((tmp_path / "dist" / "soak.json").read_bytes())
    assert kept["counts"] == counts
    assert all(it["holds"] for it in kept["verdicts"])


@pytest.mark.nightly
async def test_c64_the_sweep_clears_what_128_refused_callers_leave_held(
    ministack_url: str, tmp_path: Path
) -> None:
    seed = make_seed()
    async with staged(ministack_url, tmp_path, seed, processes=1) as stage:
        findings = await send_crowd(stage, seed)

    counts = findings.counts
    print(counts)
    assert len(findings.told) == CALLERS
    assert counts["refused service_unavailable"] > CALLERS // 2
    assert findings.held, "no 503 has left anything held: the store was not slow"
    assert counts["holds swept at the end"] == len(findings.held)
    # They hold nothing any more, the books are exact, and no refused caller is billed.
    assert findings.violations == []
