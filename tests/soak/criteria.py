"""The criteria of a soak: what has to stay flat, by how much, and whether it did; pure."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

# Fewer points than these make no slope.
_POINTS_MIN: Final = 8
# Of a run, in which caches fill and pools grow.
_WARM_UP: Final = 0.25
_MINUTE_ANSWERS_MIN: Final = 20


@dataclass(frozen=True, kw_only=True)
class Sample:
    """What one process uses at one moment, in seconds from the beginning of the run."""

    at_s: float
    server: int
    # Counts the process's starts: a killed one begins another life.
    life: int
    rss_mb: float
    descriptors: int
    connections: int
    threads: int
    tasks: int
    in_flight: int
    defects: int


@dataclass(frozen=True, kw_only=True)
class Minute:
    """The answers of one minute that no fault has touched."""

    number: int
    added_ms: Sequence[float]

    def percentile(self, share: float) -> float:
        """Return the value that this share of the answers does not exceed."""
        ordered = sorted(self.added_ms)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """How flat is flat. None leaves a criterion out: a short run says nothing of it."""

    rss_mb_per_hour: float | None = 4.0
    # Beyond what a process has before its first request, once it is at rest again.
    descriptors_left: int = 4
    tasks_left: int = 0
    threads_left: int = 8
    # The last third's p99 over the first third's.
    p99_ratio: float | None = 1.5


SHORT_BOUNDS: Final = Bounds(rss_mb_per_hour=None, descriptors_left=48, p99_ratio=None)


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """One criterion: what was measured, what it may be."""

    name: str
    measured: float
    bound: float

    @property
    def holds(self) -> bool:
        return self.measured <= self.bound

    def __str__(self) -> str:
        word = "ok" if self.holds else "NOT FLAT"
        return f"{self.name:<52} {self.measured:>9.2f}  at most {self.bound:>7.2f}  {word}"


def slope_per_hour(points: Sequence[tuple[float, float]]) -> float:
    """Return the median of the slopes of all pairs of points (Theil and Sen), an hour.

    A peak, or a fault's traces, move it little.
    """
    slopes = [
        (later - earlier) / (after_s - before_s)
        for place, (before_s, earlier) in enumerate(points)
        for after_s, later in points[place + 1 :]
        if after_s > before_s
    ]
    return 3_600 * statistics.median(slopes) if slopes else 0.0


def judge_processes(
    samples: Sequence[Sample], first: Sequence[Sample], at_rest: Sequence[Sample], bounds: Bounds
) -> list[Verdict]:
    """Judge what processes use.

    `first` were taken before the first request, one of each process that was there at the end, and
    `at_rest` after the last one. Memory is judged of the process that lived longest.
    """
    defects = max(it.defects for it in (*samples, *at_rest))
    verdicts = [Verdict(name="defects", measured=defects, bound=0)]
    if bounds.rss_mb_per_hour is not None:
        verdicts.append(
            Verdict(
                name="resident memory of the longest life, MB/hour",
                measured=slope_per_hour(_after_warm_up(longest_life(samples))),
                bound=bounds.rss_mb_per_hour,
            )
        )
    before = {it.server: it for it in first}
    for rest in at_rest:
        base = before[rest.server]
        for name, left, bound in (
            ("descriptors", rest.descriptors - base.descriptors, bounds.descriptors_left),
            ("tasks", rest.tasks - base.tasks, bounds.tasks_left),
            ("threads", rest.threads - base.threads, bounds.threads_left),
            ("requests in flight", rest.in_flight, 0),
        ):
            verdicts.append(
                Verdict(
                    name=f"{name} left at rest, process {rest.server}", measured=left, bound=bound
                )
            )
    return verdicts


def longest_life(samples: Sequence[Sample]) -> Sequence[Sample]:
    """Return the samples of the process that ran longest without being killed."""
    lives: dict[tuple[int, int], list[Sample]] = {}
    for sample in samples:
        lives.setdefault((sample.server, sample.life), []).append(sample)
    return max(lives.values(), key=lambda life: life[-1].at_s - life[0].at_s)


def judge_latency(minutes: Sequence[Minute], bounds: Bounds) -> list[Verdict]:
    """Judge the p99 of what the gateway adds: of each third the median of its minutes."""
    full = [it for it in minutes if len(it.added_ms) >= _MINUTE_ANSWERS_MIN]
    third = len(full) // 3
    if bounds.p99_ratio is None or not third:
        return []
    first, last = (
        statistics.median(it.percentile(0.99) for it in part)
        for part in (full[:third], full[-third:])
    )
    name = f"p99 of the last third ({last:.0f} ms) by the first ({first:.0f} ms)"
    return [Verdict(name=name, measured=last / first, bound=bounds.p99_ratio)]


def judge_books(violations: Sequence[str]) -> Verdict:
    """Judge the books: not one violation."""
    return Verdict(name="violations of the books", measured=len(violations), bound=0)


def _after_warm_up(life: Sequence[Sample]) -> Sequence[tuple[float, float]]:
    warm = life[int(len(life) * _WARM_UP) :]
    if len(warm) < _POINTS_MIN:
        raise ValueError("the run was too short to say whether memory grows")
    return [(it.at_s, it.rss_mb) for it in warm]
