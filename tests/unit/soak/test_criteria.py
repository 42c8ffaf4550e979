"""The criteria of a soak: each catches the bug that it is there for, and passes what is flat."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from tests.soak.criteria import (
    Bounds,
    Minute,
    Sample,
    Verdict,
    judge_books,
    judge_latency,
    judge_processes,
    slope_per_hour,
)

BASE = Sample(
    at_s=0.0,
    server=0,
    life=1,
    rss_mb=88.0,
    descriptors=9,
    connections=5,
    threads=1,
    tasks=2,
    in_flight=0,
    defects=0,
)
SECONDS = 3_600
# Of six, the half that each process gets.
REQUESTS_PER_SECOND = 3
# What a process that keeps nothing uses: its memory goes up and down by a MB.
Use = Callable[[int], Sample]


def flat(second: int) -> Sample:
    """A process in the middle of its work."""
    busy = second % 50
    return replace(
        BASE,
        at_s=float(second),
        rss_mb=95.0 + busy / 50,
        descriptors=40 + busy % 7,
        tasks=2 + busy % 5,
    )


def judged(use: Use, at_rest: Sample | None = None) -> dict[str, bool]:
    """Which criteria hold for a process that lived an hour beside one that was killed."""
    survivor = [use(second) for second in range(0, SECONDS, 5)]
    killed = [
        replace(use(second), server=1, life=1 + second // 300, rss_mb=88.0 + second % 300 / 30)
        for second in range(0, SECONDS, 5)
    ]
    verdicts = judge_processes(
        [*survivor, *killed], [BASE], [at_rest or replace(BASE, threads=2)], Bounds()
    )
    return {it.name.split(",")[0]: it.holds for it in verdicts}


def broken(verdicts: dict[str, bool]) -> list[str]:
    return [name for name, holds in verdicts.items() if not holds]


def test_a_process_that_keeps_nothing_passes() -> None:
    assert broken(judged(flat)) == []


def test_a_kilobyte_kept_of_each_request_is_caught() -> None:
    def leaking(second: int) -> Sample:
        kept = second * REQUESTS_PER_SECOND / 1024
        return replace(flat(second), rss_mb=flat(second).rss_mb + kept)

    assert broken(judged(leaking)) == ["resident memory of the longest life"]


def test_peaks_of_memory_are_no_growth() -> None:
    def peaking(second: int) -> Sample:
        return replace(flat(second), rss_mb=120.0) if second % 300 < 60 else flat(second)

    assert broken(judged(peaking)) == []


@pytest.mark.parametrize(
    ("kept", "name"),
    [
        ({"descriptors": BASE.descriptors + 5}, "descriptors left at rest"),
        ({"tasks": BASE.tasks + 1}, "tasks left at rest"),
        ({"threads": BASE.threads + 9}, "threads left at rest"),
        ({"in_flight": 1}, "requests in flight left at rest"),
        ({"defects": 1}, "defects"),
    ],
)
def test_what_a_process_keeps_at_rest_is_caught(kept: dict[str, int], name: str) -> None:
    assert broken(judged(flat, replace(BASE, **kept))) == [name]


def latency(of: Callable[[int], Sequence[float]]) -> list[Verdict]:
    return judge_latency([Minute(number=it, added_ms=of(it)) for it in range(60)], Bounds())


def test_a_p99_that_doubles_is_caught_and_one_bad_minute_is_not() -> None:
    def steady(minute: int) -> list[float]:
        return [10.0 + it % 5 for it in range(120)]

    [verdict] = latency(steady)
    assert verdict.holds
    [verdict] = latency(lambda minute: [it * (1 + minute / 40) for it in steady(minute)])
    assert not verdict.holds
    [verdict] = latency(lambda minute: [it * (9 if minute == 55 else 1) for it in steady(minute)])
    assert verdict.holds


def test_minutes_with_few_answers_say_nothing() -> None:
    assert latency(lambda minute: [1.0] * 19) == []


def test_a_run_too_short_for_a_slope_is_not_judged_flat() -> None:
    samples = [flat(second) for second in range(0, 40, 5)]
    with pytest.raises(ValueError, match="too short"):
        judge_processes(samples, [BASE], [BASE], Bounds())


def test_a_slope_is_that_of_most_points() -> None:
    points = [(float(it), it / 3_600) for it in range(20)]
    assert slope_per_hour(points) == pytest.approx(1.0)
    assert slope_per_hour([*points, (20.0, 500.0)]) == pytest.approx(1.0)


def test_one_violation_of_the_books_is_one_too_many() -> None:
    assert judge_books([]).holds
    assert not judge_books(["I1"]).holds
