"""Periods are UTC; weeks begin on Monday.

Keeps C61.
"""

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tollgate.stores.rules.periods import PERIODS, bucket_names, period_ends_s, stale_buckets

seconds = st.integers(min_value=0, max_value=2**32 - 1)


def at(text: str) -> int:
    return int(dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC).timestamp())


@pytest.mark.parametrize(
    ("moment", "names"),
    [
        ("2026-11-21T23:59:59", ("b_20261121", "b_2026W47", "b_202611", "b_total")),
        ("2026-11-22T00:00:00", ("b_20261122", "b_2026W47", "b_202611", "b_total")),
        ("2026-11-23T00:00:00", ("b_20261123", "b_2026W48", "b_202611", "b_total")),
        ("2027-01-01T00:00:00", ("b_20270101", "b_2026W53", "b_202701", "b_total")),
        ("2024-12-30T12:00:00", ("b_20241230", "b_2025W01", "b_202412", "b_total")),
    ],
)
def test_c61_a_second_has_one_bucket_in_each_period(moment: str, names: tuple[str, ...]) -> None:
    assert bucket_names(at(moment)) == names


@pytest.mark.parametrize(
    ("moment", "ends"),
    [
        ("2026-11-21T12:30:01", ("2026-11-22", "2026-11-23", "2026-12-01")),
        ("2026-12-31T23:59:59", ("2027-01-01", "2027-01-04", "2027-01-01")),
        ("2028-01-31T00:00:00", ("2028-02-01", "2028-02-07", "2028-02-01")),
    ],
)
def test_c61_a_period_ends_at_midnight(moment: str, ends: tuple[str, ...]) -> None:
    found = [period_ends_s(period, at(moment)) for period in PERIODS]

    assert found == [*(at(end) for end in ends), None]


@given(seconds)
def test_a_bucket_lasts_exactly_until_its_period_ends(second: int) -> None:
    names = bucket_names(second)
    for index, period in enumerate(PERIODS):
        end = period_ends_s(period, second)
        if end is not None:
            assert bucket_names(end - 1)[index] == names[index]
            assert bucket_names(end)[index] != names[index]


@given(seconds, st.integers(min_value=-3600, max_value=3600))
def test_a_bucket_within_an_hour_is_never_stale(second: int, skew_s: int) -> None:
    names = set(bucket_names(max(0, second + skew_s)))

    assert stale_buckets(names | {"tat", "h"}, second) == ()


def test_buckets_of_other_times_are_stale_and_the_total_never_is() -> None:
    names = {"b_20261119", "b_2026W40", "b_202601", "b_total", "b_20261121", "ws"}

    assert stale_buckets(names, at("2026-11-21T12:00:00")) == (
        "b_202601",
        "b_20261119",
        "b_2026W40",
    )
