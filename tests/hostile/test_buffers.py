"""Providers and hosts that send without an end: what a request buffers of it, and who pays.

Each attack comes over a socket; its sizes are small by day, and real at night.

Keeps C47.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from tests.hostile.endless import ATTACKS, KB, MB
from tests.hostile.hungry import attack_with

BUDGET: Final = 300 * KB
SIZE: Final = 3 * MB
# What the kernel holds of a connection, and what the gateway has read ahead.
IN_FLIGHT: Final = 8 * MB
ROOT: Final = Path(__file__).parents[2]
# Without a budget, an answer of this many bytes grows the process by several times as many.
HUGE: Final = 1_500 * MB
by_attack = pytest.mark.parametrize("name", ATTACKS)
# Attacks of each way by which bytes come; the others take minutes.
AT_NIGHT: Final = (
    "short texts",
    "long texts",
    "texts beyond Latin",
    "log probabilities",
    "an event without an end",
    "a message of 1 GB",
    "a whole chunked answer",
    "a compressed answer",
    "vectors",
    "pictures",
    "pictures by URL",
    "speech",
)


@by_attack
async def test_c47_a_request_buffers_no_more_than_its_budget(name: str) -> None:
    attack = ATTACKS[name]
    outcome = await attack_with(attack, SIZE, BUDGET)
    assert outcome.code == attack.code
    assert outcome.peak <= BUDGET
    assert (outcome.left, outcome.defects) == (0, [])
    # What is billed is what arrived, within the bound of the request.
    assert (outcome.cost_nano_usd > 0) == attack.is_billed
    assert (outcome.outcome == "cancelled") == attack.is_billed


async def test_c47_a_hostile_provider_is_left_at_the_budget() -> None:
    outcome = await attack_with(ATTACKS["long texts"], 60 * MB, BUDGET)
    assert outcome.sent <= BUDGET + IN_FLIGHT
    # 10^6 bytes are at most 2 * 10^6 tokens at $2 a million.
    assert 0 < outcome.cost_nano_usd <= 2 * BUDGET * 2_000 + 10**6


async def test_c47_an_answer_within_the_budget_is_complete() -> None:
    outcome = await attack_with(ATTACKS["long texts"], 2 * MB, 4 * MB)
    assert (outcome.status, outcome.code, outcome.outcome) == (200, "", "ok")
    assert outcome.received > MB


async def test_c82_c47_speech_is_passed_on_and_not_held() -> None:
    outcome = await attack_with(ATTACKS["speech"], SIZE, 64 * KB)
    assert outcome.received >= SIZE - 64 * KB
    assert outcome.peak <= 16 * KB


async def test_c47_content_that_states_its_size_is_refused_before_it_comes() -> None:
    outcome = await attack_with(ATTACKS["pictures by URL with their length"], SIZE, BUDGET)
    assert (outcome.code, outcome.peak) == ("invalid_request", 0)


async def test_c47_a_workspace_that_has_its_share_is_asked_to_wait() -> None:
    outcome = await attack_with(ATTACKS["long texts"], SIZE, BUDGET, others=BUDGET)
    assert (outcome.status, outcome.code) == (503, "service_unavailable")


@pytest.mark.nightly
@pytest.mark.parametrize("name", AT_NIGHT)
def test_c47_the_process_grows_by_four_bytes_for_a_buffered_byte(name: str) -> None:
    grown = _grown_mb(name, HUGE if ATTACKS[name].code else 150 * MB)
    assert grown <= 4 * 64


@pytest.mark.nightly
def test_c47_a_complete_answer_fits_a_function_of_512_mb() -> None:
    assert _grown_mb("long texts", 60 * MB) <= 400


def _grown_mb(name: str, size: int) -> int:
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'functions'}{os.pathsep}{ROOT}"}
    command = [sys.executable, "-m", "tests.hostile.hungry", name, str(size)]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, check=True, timeout=600
    )
    outcome: dict[str, Any] = json.loads(done.stdout)
    return int(outcome["grown_mb"])
