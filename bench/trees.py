"""Comparison of this tree with another checkout, in rounds that alternate between the two."""

import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median, quantiles

from bench.children import TOP, child
from bench.figures import IN_MEMORY, Scenario
from bench.rounds import take_sample

# Samples are short, so that noise of the machine affects both trees alike.
_TIMES_MAX = 40


Pairs = Sequence[tuple[float, float]]


@contextmanager
def checkout_of(name: str) -> Iterator[Path]:
    """Yield the checkout in the folder of this name, or a checkout of the commit of this name."""
    if Path(name).is_dir():
        yield Path(name).resolve()
        return
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        _git("worktree", "add", "--quiet", "--detach", str(tree), name)
        try:
            yield tree.resolve()
        finally:
            _git("worktree", "remove", "--force", str(tree))


def _git(*arguments: str) -> None:
    subprocess.run(["git", "-C", str(TOP), *arguments], check=True)


async def compare_trees(
    other: Path, scenarios: Sequence[Scenario], rounds: int
) -> dict[str, Pairs]:
    """Return the CPU seconds of a request here and in another checkout, in pairs, by scenario.

    Quartiles need at least two rounds.
    """
    with ExitStack() as stack:
        upstream = stack.enter_context(child("bench.upstream", measured=False))
        here, there = (
            stack.enter_context(child("bench.gateways.ours", str(upstream.port), tree=tree))
            for tree in (TOP, other)
        )
        taken_of: dict[str, Pairs] = {}
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
                # The first round only warms up both trees.
                if number >= 0:
                    pairs.append((taken[here.pid].cpu_s, taken[there.pid].cpu_s))
            taken_of[scenario.name] = pairs
        return taken_of


def format_pairs(name: str, pairs: Pairs) -> str:
    """Return a line with the ratio of the CPU time here to that in the other checkout."""
    ratios = [here_s / there_s for here_s, there_s in pairs]
    low, middle, high = quantiles(ratios, n=4)
    here_ms, there_ms = (median(column) * 1e3 for column in zip(*pairs, strict=True))
    return (
        f"{name:20}{middle:.3f} ×  (quartiles {low:.3f} to {high:.3f})  "
        f"{here_ms:.3f} ms here, {there_ms:.3f} ms there"
    )
