"""The forecast of the running month in `tollgate spend`.

Keeps C67.
"""

from collections.abc import Mapping
from datetime import date, timedelta
from decimal import Decimal

import pytest

from tollgate.cli.gateway.forecast import explain_forecast, forecast_month

TODAY = date(2026, 11, 21)


def days_before(number: int) -> list[date]:
    return [TODAY - timedelta(days=ago) for ago in range(1, number + 1)]


def costs(*latest_first: str) -> Mapping[date, Decimal]:
    days = days_before(len(latest_first))
    return {day: Decimal(cost) for day, cost in zip(days, latest_first, strict=True)}


def test_c67_a_month_ends_between_the_means_of_7_and_28_closed_days() -> None:
    """Nine days are left after today, which has cost $1 so far; the means are $10 and $4."""
    spent = {**costs(*["10"] * 7, *["2"] * 21), TODAY: Decimal(1)}
    found = forecast_month(Decimal(99), spent, days_before(29), TODAY)
    assert found is not None
    assert (found.low, found.high) == (99 + 3 + 9 * 4, 99 + 9 + 9 * 10)
    assert explain_forecast(found, TODAY) == (
        "Forecast of 2026-11: $138.00 to $198.00, at the mean of the last 7 and 28 closed days."
    )


def test_c67_closed_days_without_use_count_from_the_first_day_with_use() -> None:
    spent = costs("7", "0", "0", "0", "0", "0", "7", "0", "0")
    found = forecast_month(Decimal(14), spent, days_before(21), TODAY)
    assert found is not None
    assert (found.low, found.high, found.days) == (14 + 2 * 10, 14 + 2 * 10, (7, 7))
    assert "$34.00, at the mean of the last 7 closed days" in explain_forecast(found, TODAY)


@pytest.mark.parametrize(
    ("spent", "closed"),
    [(costs(*["1"] * 6), 21), (costs(*["1"] * 20), 6), ({}, 21), ({TODAY: Decimal(5)}, 21)],
)
def test_c67_fewer_than_seven_closed_days_with_use_behind_them_are_no_forecast(
    spent: Mapping[date, Decimal], closed: int
) -> None:
    assert forecast_month(Decimal(20), spent, days_before(closed), TODAY) is None


def test_c67_the_last_day_of_a_month_has_cost_what_it_has_or_its_mean() -> None:
    last = date(2026, 11, 30)
    spent = {last - timedelta(days=ago): Decimal(2) for ago in range(1, 10)}
    closed = list(spent)
    dear = forecast_month(Decimal(100), {**spent, last: Decimal(9)}, closed, last)
    quiet = forecast_month(Decimal(100), spent, closed, last)
    assert dear is not None
    assert quiet is not None
    assert (dear.low, quiet.low) == (100, 102)
