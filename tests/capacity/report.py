"""Finds the rates at which one workspace, team or key meets DynamoDB's limits, and prints them.

Run as `python -m tests.capacity.report`; it takes some minutes of one core.
"""

import logging
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from tests.capacity.load import Outcome, Shape, run_load

ANSWERS_S = (0.5, 2.0, 5.0, 15.0)
# A rate is found to this part of itself.
_EXACT_TO = 0.04
_STEADY_S = 10.0
# What surrounds an item's holds, and what each takes, in bytes.
_ITEM_BYTES, _HOLD_BYTES = 90, 22


@dataclass(frozen=True)
class CapacityRow:
    """The rates of one shape, a second, by the length of answers."""

    name: str
    rates: Sequence[float]


SHAPES = {
    "a wallet of 1 shard": Shape(),
    "a wallet of 4 shards": Shape(shards=4, keys=128),
    "a wallet of 16 shards": Shape(shards=16, keys=256),
    "a team with limits": Shape(shards=16, team=True),
    "a team of 4 slices": Shape(shards=16, team=True, slices=4, keys=128),
    "a team of 16 slices": Shape(shards=16, team=True, slices=16, keys=256),
    "a key": Shape(shards=16, keys=1),
}


def steady(shape: Shape, rate: float) -> Outcome:
    """Run at one rate until the holds in flight are as many as they will be, and then some."""
    return run_load(shape, lambda _: rate, 1.5 * shape.answer_s + _STEADY_S)


def ramp(shape: Shape, doubles_in_s: float, *, first: float, last: float) -> Outcome:
    """Run at a rate that doubles in so many seconds, from the first to the last."""
    duration_s = doubles_in_s * math.log2(last / first)
    return run_load(shape, lambda at_s: first * 2 ** (at_s / doubles_in_s), duration_s)


def highest_rate(shape: Shape) -> float:
    """Return the highest rate at which no call is throttled."""
    # The shards share a load: one takes about the part that it would take alone.
    shards = 1 if shape.keys == 1 else shape.slices if shape.team else shape.shards
    estimate = shards * _estimate(shape.answer_s)
    return _last_that_holds(
        lambda rate: not steady(shape, rate).throttled, 0.55 * estimate, 1.35 * estimate
    )


def capacity_rows(answers_s: Iterable[float] = ANSWERS_S) -> Iterator[CapacityRow]:
    """Yield the rates of each shape."""
    for name, shape in SHAPES.items():
        rates = [highest_rate(replace(shape, answer_s=answer_s)) for answer_s in answers_s]
        yield CapacityRow(name, rates)


def format_capacity(rows: Iterable[CapacityRow], answers_s: Sequence[float] = ANSWERS_S) -> str:
    """Return the rates as a table in Markdown."""
    head = ["requests a second, answers of", *(f"{answer_s:g} s" for answer_s in answers_s)]
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    lines += [
        f"| {row.name} | {' | '.join(f'{rate:,.0f}' for rate in row.rates)} |" for row in rows
    ]
    return "\n".join(lines)


def _estimate(answer_s: float) -> float:
    """Return the rate at which two writes of an item with its holds are a partition's units."""
    rate = 1.0
    while 2 * rate * math.ceil((_ITEM_BYTES + _HOLD_BYTES * rate * answer_s) / 1_024) < 1_000:
        rate += 1
    return rate


def _last_that_holds(holds: Callable[[float], bool], low: float, high: float) -> float:
    """Return the highest number between two at which something holds, nearly."""
    while high / low > 1 + _EXACT_TO:
        middle = math.sqrt(low * high)
        if holds(middle):
            low = middle
        else:
            high = middle
    return low


def main() -> None:
    """Print all tables."""
    logging.disable(logging.CRITICAL)
    print(format_capacity(capacity_rows()))


if __name__ == "__main__":
    main()
