"""Canaries over simulated traffic: false alarms, and the time until a regression is found.

Keeps C57.
"""

from statistics import median

import pytest

from tests.canary_traffic import EVERY_FIGURE, Fleet, run_canary
from tollgate.core.routing.canary import LOOK_TIMES_S, Terms

ALL_LOOKS = len(LOOK_TIMES_S)
EVERY_TERM = Terms(worse_percent=EVERY_FIGURE, false_alarms_percent=5)
NO_MORE_ERRORS = Terms(worse_percent={"errors": 0}, false_alarms_percent=5)


def found_hours(keys: int, more_errors_percent: float, runs: int) -> list[float]:
    """Return the hours after which a candidate with more errors was taken back, of those found."""
    fleet = Fleet(
        keys=keys, percent=50, requests_an_hour=20, more_errors_percent=more_errors_percent
    )
    found = (run_canary(fleet, NO_MORE_ERRORS, seed, looks=ALL_LOOKS) for seed in range(runs))
    return sorted(look.at_s / 3600 for look in found if look is not None)


def test_c57_a_regression_of_ten_points_is_found_within_hours() -> None:
    hours = found_hours(30, 10, 10)
    assert len(hours) == 10
    assert median(hours) < 2


def test_c57_a_candidate_that_is_like_the_live_catalog_is_left_alone() -> None:
    fleet = Fleet(keys=20, percent=50, requests_an_hour=10)
    alarms = [run_canary(fleet, EVERY_TERM, seed, looks=6) for seed in range(12)]
    assert sum(look is not None for look in alarms) <= 2


@pytest.mark.nightly
def test_c57_of_a_thousand_null_runs_no_more_than_stated_raise_an_alarm() -> None:
    fleet = Fleet(keys=30, percent=50, requests_an_hour=20)
    runs = (run_canary(fleet, EVERY_TERM, seed, looks=ALL_LOOKS) for seed in range(1_000))
    assert sum(look is not None for look in runs) <= 50


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("keys", "points", "share_found", "hours_max"),
    [
        (30, 1, 0.15, 30),
        (30, 3, 0.8, 10),
        (30, 10, 0.95, 1),
        (200, 1, 0.6, 10),
        (200, 3, 1, 1),
        (200, 10, 1, 0.5),
    ],
)
def test_c57_regressions_are_found_in_the_documented_time(
    keys: int, points: float, share_found: float, hours_max: float
) -> None:
    hours = found_hours(keys, points, 100)
    assert len(hours) >= share_found * 100
    assert median(hours) <= hours_max
