"""The benchmark itself: that a small run of it makes its table, of whole answers only.

Keeps no contract statement: what it measures is in bench/README.md.
"""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench.children import child
from bench.figures import IN_MEMORY, PASSTHROUGH, SERVED, Sample, compare_samples
from bench.load import Question, ask
from bench.rounds import run_gateways
from bench.scale.flight import open_streams
from bench.sizes import Size, format_size
from bench.table import format_table
from bench.upstream import SHORT_CHUNKS

TOP = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it reads /proc")


@pytest.mark.nightly
def test_a_round_makes_a_table_of_ratios(tmp_path: Path) -> None:
    result_file = tmp_path / "bench.json"
    command = [sys.executable, "-m", "bench"]
    result = subprocess.run(
        [*command, "--rounds", "1", "--figure", "first-token", "--json", str(result_file)],
        cwd=TOP,
        env={**os.environ, "PYTHONPATH": str(TOP / "functions")},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    heading, rule, *lines = result.stdout.splitlines()
    assert heading.split("|")[1].strip() == "figure"
    assert set(rule) <= set("|- ")
    assert "time to first token" in lines[0]
    assert "≤ 2.00 ms" in lines[0]
    kept = json.loads(result_file.read_text())
    assert [row["figure"] for row in kept["rows"]] == [
        line.split("|")[1].strip() for line in lines[:2]
    ]
    assert all(each["rounds"][0]["cpu_s"] > 0 for each in kept["samples"])


@pytest.mark.nightly
def test_a_checkout_is_compared_with_another(tmp_path: Path) -> None:
    result_file = tmp_path / "bench.json"
    command = [sys.executable, "-m", "bench", "--against", "HEAD", "--rounds", "2"]
    result = subprocess.run(
        [*command, "--figure", "requests", "start", "--json", str(result_file)],
        cwd=TOP,
        env={**os.environ, "PYTHONPATH": str(TOP / "functions")},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    lines = [line.split() for line in result.stdout.splitlines()]
    names = ["small", "few-events", "event-stream", "large-prompt", "start-sse", "start-bedrock"]
    assert [line[0] for line in lines] == names
    assert all(float(line[1]) > 0 and line[2] == "×" for line in lines)
    kept = json.loads(result_file.read_text())
    assert [*kept["pairs"]] == names
    assert all(len(pairs) == 2 for pairs in kept["pairs"].values())
    assert kept["commit"]


@pytest.mark.nightly
async def test_make_scale_opens_its_streams_at_a_time_under_serve(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "BENCH_API_KEY"):
        monkeypatch.setenv(name, "bench")
    with run_gateways([SERVED], emulated=False) as (running, _):
        memory_mb, open_max = await open_streams(running[SERVED], 6)
    assert open_max == 6
    assert memory_mb > 50


def test_an_answer_that_lacks_a_piece_is_not_measured() -> None:
    async def asked() -> None:
        with child("bench.upstream", measured=False) as upstream:
            whole = Question.chat("short", SHORT_CHUNKS, stream=True)
            assert (await ask(upstream.port, whole, times=3)).count == 3
            more = Question.chat("short", SHORT_CHUNKS + 1, stream=True)
            with pytest.raises(ExceptionGroup, match="unhandled errors"):
                await ask(upstream.port, more, times=1)

    asyncio.run(asked())


def test_ratios_are_taken_within_a_round() -> None:
    def sample(cpu_s: float) -> Sample:
        return Sample(cpu_s=cpu_s, first_token_s=0.0)

    # The second round had a busy machine, which both felt.
    samples = {
        ("small", PASSTHROUGH): [sample(0.001), sample(0.010), sample(0.001)],
        ("small", IN_MEMORY): [sample(0.002), sample(0.020), sample(0.004)],
    }
    (row,) = compare_samples(samples, round_trip_s=0.0)
    assert (row.ratio, row.target, row.met) == ("2.0 ×", "≤ 5.2 ×", True)
    assert "met" in format_table([row])


def test_a_size_is_priced_by_its_memory_and_the_seconds_until_an_answer_ends() -> None:
    size = Size(
        start_s=0.5,
        first_token_s=[0.0, 0.0],
        burst_s=0.02,
        paced_s=1.0,
        warm_mb=58,
        large_s=0.3,
        peak_mb=180,
    )
    cells = [it.strip() for it in format_size(1_024, [size]).strip("|").split("|")]
    # Of 5 s and 1 GB: 5 × 0.0000133334 × 1,000,000 + 0.20.
    assert cells[:3] == ["1,024 MB", "0.58", "500 ms"]
    assert cells[5:] == ["10,000", "1,000 ms", "58 MB", "0.30 s", "180 MB", "66.9", "83.5"]
