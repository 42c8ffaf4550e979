"""The plan of a soak: its load, and the faults that a seed deals over its time."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

FaultKind = Literal["killed", "frozen", "throttled", "outage"]
FAULT_KINDS: Final[tuple[FaultKind, ...]] = ("throttled", "killed", "frozen", "outage")


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The load and the faults of one run, in seconds."""

    seconds: float
    seed: int
    requests_per_second: float = 8.0
    # One of the two processes is killed so often, and the other one lives until the end.
    kill_every_s: float = 300.0
    # The store answers nothing.
    freeze_every_s: float = 300.0
    freeze_s: float = 5.0
    # The store refuses a share of all calls.
    throttle_every_s: float = 300.0
    throttle_s: float = 10.0
    # The provider refuses nearly everything.
    outage_every_s: float = 300.0
    outage_s: float = 10.0
    sweep_every_s: float = 300.0
    sample_every_s: float = 5.0
    # Of a line of the table.
    minute_s: float = 60.0
    # After a fault its traces last: retries, cold caches, a process that starts.
    aftermath_s: float = 10.0
    # Until a process is at rest once the load has ended: a pool that keeps connections for 30 s may
    # look for them every 30 s.
    rest_s: float = 70.0


@dataclass(frozen=True, kw_only=True)
class FaultWindow:
    """One fault, in seconds from the beginning of a run."""

    kind: FaultKind
    begins_s: float
    ends_s: float


def deal_faults(plan: Plan) -> Sequence[FaultWindow]:
    """Return the faults of a run in their order, the same for the same seed."""
    draw = random.Random(plan.seed)
    every = {
        "killed": (plan.kill_every_s, 0.0),
        "frozen": (plan.freeze_every_s, plan.freeze_s),
        "throttled": (plan.throttle_every_s, plan.throttle_s),
        "outage": (plan.outage_every_s, plan.outage_s),
    }
    dealt: list[FaultWindow] = []
    for place, kind in enumerate(FAULT_KINDS):
        period_s, lasts_s = every[kind]
        # A part of each period for each kind, so that every kind has its own effects.
        part_s = period_s / len(FAULT_KINDS)
        for count in range(int(plan.seconds / period_s)):
            room_s = max(0.0, part_s - lasts_s)
            begins_s = count * period_s + place * part_s + draw.random() * room_s
            dealt.append(FaultWindow(kind=kind, begins_s=begins_s, ends_s=begins_s + lasts_s))
    return sorted(dealt, key=lambda it: it.begins_s)


def is_calm(
    faults: Sequence[FaultWindow], begins_s: float, ends_s: float, aftermath_s: float
) -> bool:
    """Return whether nothing between two moments can be the effect of a fault."""
    return all(ends_s < fault.begins_s or begins_s > fault.ends_s + aftermath_s for fault in faults)
