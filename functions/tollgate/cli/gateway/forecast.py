"""Forecast for the current month: its cost so far, plus recent mean costs for the days left."""

from calendar import monthrange
from collections.abc import Collection, Mapping
from datetime import date
from decimal import Decimal
from typing import Final

from msgspec import Struct

# Each number of latest closed days yields a forecast with their mean cost for every remaining day.
_SPANS: Final = (7, 28)
FORECAST_DAYS: Final = max(_SPANS)
_CENT: Final = Decimal("0.01")


class Forecast(Struct, frozen=True, kw_only=True):
    """The range of a month's cost in dollars, and the numbers of days that the means cover."""

    low: Decimal
    high: Decimal
    days: tuple[int, int]


def forecast_month(
    total: Decimal, costs: Mapping[date, Decimal], closed: Collection[date], today: date
) -> Forecast | None:
    """Return the forecast for the current month, whose cost so far is `total`.

    `costs` has the costs of the latest days with usage. Return None if fewer than 7 days have
    closed since the first of these days.
    """
    first = min((day for day, cost in costs.items() if cost), default=today)
    counted = sorted((day for day in closed if first <= day < today), reverse=True)
    if len(counted) < min(_SPANS):
        return None
    spans = [min(span, len(counted)) for span in _SPANS]
    nothing = Decimal(0)
    past = [costs.get(day, nothing) for day in counted]
    means = [sum(past[:span], nothing) / span for span in spans]
    days_left = monthrange(today.year, today.month)[1] - today.day
    so_far_today = costs.get(today, nothing)
    ends = [
        (total + max(nothing, mean - so_far_today) + mean * days_left).quantize(_CENT)
        for mean in means
    ]
    return Forecast(low=min(ends), high=max(ends), days=(spans[0], spans[1]))


def explain_forecast(forecast: Forecast, today: date) -> str:
    """Return the forecast as a sentence."""
    amounts = dict.fromkeys((f"${forecast.low:,}", f"${forecast.high:,}"))
    days = " and ".join(str(number) for number in dict.fromkeys(forecast.days))
    return (
        f"Forecast of {today:%Y-%m}: {' to '.join(amounts)}, "
        f"at the mean of the last {days} closed days."
    )
