"""Compare this tree with another checkout, in rounds that alternate between the two."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from statistics import median, quantiles

from bench.children import TOP, child
from bench.figures import IN_MEMORY, Scenario
from bench.rounds import take_sample

# Short samples, so that noise of the machine meets both trees alike.
_TIMES_MAX = 40


async def compare_trees(other: Path, scenarios: Sequence[Scenario], rounds: int) -> list[str]:
    """Return a line for each scenario: the CPU of a request here, as a ratio to the other tree.

    Two rounds are the fewest that have quartiles.
    """
    with ExitStack() as stack:
        upstream = stack.enter_context(child("bench.upstream", measured=False))
        here, there = (
            stack.enter_context(child("bench.gateways.ours", str(upstream.port), tree=tree))
            for tree in (TOP, other)
        )
        lines = []
        for each in scenarios:
            scenario = replace(each, times=min(each.times, _TIMES_MAX))
            pairs: list[tuple[float, float]] = []
            for number in range(-1, max(rounds, 2)):
                order = (here, there) if number % 2 else (there, here)
                taken = {
                    gateway.pid: await take_sample(
                        scenario, IN_MEMORY, gateway, times=scenario.times
                    )
                    for gateway in order
                }
                # The first round only warms both up.
                if number >= 0:
                    pairs.append((taken[here.pid].cpu_s, taken[there.pid].cpu_s))
            lines.append(_line(scenario, pairs))
        return lines


def _line(scenario: Scenario, pairs: Sequence[tuple[float, float]]) -> str:
    ratios = [here_s / there_s for here_s, there_s in pairs]
    low, middle, high = quantiles(ratios, n=4)
    here_ms, there_ms = (median(column) * 1e3 for column in zip(*pairs, strict=True))
    return (
        f"{scenario.name:20}{middle:.3f} ×  (quartiles {low:.3f} to {high:.3f})  "
        f"{here_ms:.3f} ms here, {there_ms:.3f} ms there"
    )
