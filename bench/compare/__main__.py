"""Measurement of Tollgate next to other gateways in one run: `make compare`."""

import argparse
import asyncio
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from statistics import median
from typing import Final

from bench.children import ENVIRONMENT, pin
from bench.compare.peers import PEERS
from bench.figures import IN_MEMORY, PASSTHROUGH, SCENARIOS, WITH_LEDGER, Sample, Samples
from bench.result import RESULT, write_result
from bench.rounds import measure_rounds, run_gateways
from bench.upstream import STREAM_CHUNKS

_RESULT: Final = RESULT.with_name("compare.json")
_OURS: Final = (PASSTHROUGH, IN_MEMORY, WITH_LEDGER)
_FIGURES: Final = {
    "small": "CPU ms, whole ~1 KB answer, 8 at once",
    "large-prompt": "CPU ms, the same after a 64 KB prompt",
    "event-stream": "CPU ms, whole ~1 KB answer from Bedrock, 8 at once",
    "burst": "CPU ms, stream of 200 events without pauses",
    "paced-sse": "CPU µs an event, stream of 200, 5 ms apart",
    "first-token": "ms to the first token, one at a time",
}
_RULES: Final = """\
- Every gateway serves the same requests in every round, in another order each round. A ratio
  is the median of the ratios within each round. Compare ratios only: seconds vary between
  machines and runs.
- CPU is that of the whole process tree, on one CPU; client and upstream share the other. An
  incomplete answer ends the run.
- Tollgate streams from each provider, so a whole answer arrives there as 200 events, and at
  the others as one JSON body.
- The pass-through does nothing but forward. LiteLLM checks a master key and has no database;
  Portkey checks no key. Tollgate checks its key, limits, prices and credit, in memory or in
  DynamoDB.
- Tollgate runs on aiohttp's server here, as the pass-through does; the others run on their
  own."""


def main() -> None:
    """Print the table with the rules that it was made by."""
    parser = argparse.ArgumentParser(prog="make compare", description=__doc__)
    parser.add_argument("--rounds", type=int, default=4)
    rounds: int = parser.parse_args().rounds
    if sys.platform != "linux":
        raise SystemExit("the benchmark reads CPU time from /proc: it needs Linux")
    os.environ.update(ENVIRONMENT)
    pin(0, last=False)
    names = (*_OURS, *PEERS)
    scenarios = [replace(each, gateways=names) for each in SCENARIOS if each.name in _FIGURES]
    with run_gateways(_OURS, peers=tuple(PEERS)) as (running, _):
        samples = asyncio.run(measure_rounds(scenarios, running, rounds))
    write_result(_RESULT, samples=samples)
    print(format_comparison(samples))
    print(f"\n{rounds} rounds; load {os.getloadavg()[0]:.1f}.\n\n{_RULES}")


def format_comparison(samples: Samples) -> str:
    """Return a Markdown table: a figure of each gateway, and its ratio to the pass-through's."""
    titles = {name: f"{name} {peer.version}" for name, peer in PEERS.items()}
    names = (*_OURS, *PEERS)
    lines = [
        f"| figure | {' | '.join(titles.get(name, name) for name in names)} |",
        f"|---{'|---' * len(names)}|",
    ]
    for scenario, figure in _FIGURES.items():
        base = [_value(scenario, each) for each in samples[scenario, PASSTHROUGH]]
        cells = [
            _cell([_value(scenario, each) for each in samples[scenario, name]], base)
            for name in names
        ]
        lines.append(f"| {figure} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _value(scenario: str, sample: Sample) -> float:
    if scenario == "first-token":
        return sample.first_token_s * 1e3
    if scenario == "paced-sse":
        return sample.cpu_s / STREAM_CHUNKS * 1e6
    return sample.cpu_s * 1e3


def _cell(values: Sequence[float], base: Sequence[float]) -> str:
    ratio = median(value / other for value, other in zip(values, base, strict=True))
    return f"{_three_digits(median(values))} ({_three_digits(ratio)} ×)"


def _three_digits(value: float) -> str:
    return f"{value:.{0 if value >= 100 else 1 if value >= 10 else 2}f}"


if __name__ == "__main__":
    main()
