"""Command line of the benchmark, `make bench`, described in bench/README.md."""

import argparse
import asyncio
import os
import sys
import time
from pathlib import Path

from bench.children import ENVIRONMENT, pin
from bench.figures import (
    GATEWAYS,
    IN_MEMORY,
    SCENARIOS,
    WITH_LEDGER,
    Row,
    Samples,
    Scenario,
    compare_samples,
)
from bench.hostile import measure_hostile
from bench.large_catalog import measure_catalogs
from bench.profile import find_scenario, profile
from bench.refusals import measure_refusals
from bench.result import RESULT, write_result
from bench.rounds import measure_round_trip_s, measure_rounds, run_gateways
from bench.sizes import measure_sizes
from bench.starts import compare_starts, measure_starts
from bench.table import format_table
from bench.trees import Pairs, checkout_of, compare_trees, format_pairs

FIGURES = ("requests", "streams", "first-token", "start", "catalog", "refusals")
# Sizes are not part of a full run, because they need the artefact, root and control groups.
_SIZES = "sizes"
# Hostile requests are not part of a full run, because they have a separate table.
_HOSTILE = "hostile"
_SCENARIOS_OF = {
    "requests": ("small", "few-events", "event-stream", "large-prompt"),
    "streams": ("burst", "paced-sse", "paced-event-stream"),
    "first-token": ("first-token",),
}


def main() -> None:
    """Print the table, or a profile."""
    options = _options()
    if sys.platform != "linux":
        raise SystemExit("the benchmark reads CPU time and memory from /proc: it needs Linux")
    os.environ.update(ENVIRONMENT)
    pin(0, last=False)
    if options.profile:
        gateway = WITH_LEDGER if options.ledger else IN_MEMORY
        print(asyncio.run(profile(find_scenario(options.profile), gateway)))
        return
    if options.against:
        with checkout_of(options.against) as other:
            pairs = asyncio.run(_pairs(options, other))
        print("\n".join(format_pairs(*each) for each in pairs.items()))
        write_result(options.json, against=options.against, pairs=pairs)
        return
    if _SIZES in options.figure:
        print(asyncio.run(measure_sizes(options.rounds)))
        print(f"\n{options.rounds} environments of each size; load {os.getloadavg()[0]:.1f}.")
        return
    if _HOSTILE in options.figure:
        print(asyncio.run(measure_hostile(options.rounds)))
        print(f"\n{options.rounds} requests of each kind; load {os.getloadavg()[0]:.1f}.")
        return
    started_s = time.monotonic()
    rows, samples = asyncio.run(_rows(options))
    print(format_table(rows))
    write_result(options.json, rows=rows, samples=samples)
    print(
        f"\nMedians of {options.rounds} interleaved rounds, CPU of the process tree. Took "
        f"{time.monotonic() - started_s:.0f} s; load {os.getloadavg()[0]:.1f}. Compare ratios "
        "only: absolute times vary between runs and machines."
    )


async def _pairs(options: argparse.Namespace, other: Path) -> dict[str, Pairs]:
    pairs: dict[str, Pairs] = {}
    if scenarios := _scenarios(options):
        pairs |= await compare_trees(other, scenarios, options.rounds)
    if "start" in options.figure:
        pairs |= await compare_starts(other, options.rounds)
    return pairs


async def _rows(options: argparse.Namespace) -> tuple[list[Row], Samples]:
    rows: list[Row] = []
    samples: Samples = {}
    if scenarios := _scenarios(options):
        _tell("requests and streams")
        needed = [name for name in GATEWAYS if any(name in each.gateways for each in scenarios)]
        with run_gateways(needed) as (running, dynamodb_url):
            samples = await measure_rounds(scenarios, running, options.rounds)
            rows += compare_samples(
                samples, await measure_round_trip_s(dynamodb_url) if dynamodb_url else 0.0
            )
    if "start" in options.figure:
        _tell("cold starts and memory")
        rows += await measure_starts(options.rounds)
    if "catalog" in options.figure:
        _tell("large catalogs")
        rows += measure_catalogs(options.rounds)
    if "refusals" in options.figure:
        _tell("refused requests")
        rows += await measure_refusals(options.rounds)
    return rows, samples


def _scenarios(options: argparse.Namespace) -> list[Scenario]:
    wanted = [name for figure in options.figure for name in _SCENARIOS_OF.get(figure, ())]
    return [scenario for scenario in SCENARIOS if scenario.name in wanted]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument(
        "--figure", nargs="*", choices=(*FIGURES, _SIZES, _HOSTILE), default=FIGURES
    )
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--profile", choices=[scenario.name for scenario in SCENARIOS])
    parser.add_argument("--against", help="a commit or another checkout, to compare with")
    parser.add_argument("--json", type=Path, default=RESULT, help="where the result is stored")
    parser.add_argument("--ledger", action="store_true", help="profile with the ledger on")
    return parser.parse_args()


def _tell(what: str) -> None:
    print(f"measuring {what}", file=sys.stderr)


if __name__ == "__main__":
    main()
