"""Comparison of two prices for an endpoint, at each time and each prompt size at which a price
changes.

The comparison uses billed rates: overrides are applied, and a class of tokens without a rate has
the rate of input or output.
"""

from collections.abc import Iterator
from datetime import UTC, date, datetime, time
from decimal import Decimal

from msgspec import Struct
from msgspec.structs import fields

from tollgate.cli.routing.published_prices import BILLED_AS
from tollgate.core.clock import DAY_S
from tollgate.routing.price import Price, PriceOverride, PriceSchedule
from tollgate.routing.price_sections import WEEKDAYS


class _Situation(Struct, frozen=True):
    """A time and a prompt size, with a description of both."""

    when_s: float
    prompt_tokens: int
    words: str


class PriceDifference(Struct, frozen=True, kw_only=True):
    """A rate that differs between two prices; `when` is `always`, or describes times and sizes."""

    rate: str
    ours: Decimal
    theirs: Decimal
    when: str


def compare_prices(
    ours: PriceSchedule, theirs: PriceSchedule, today: date
) -> tuple[PriceDifference, ...]:
    """Return the differences between two prices on and after a UTC day."""
    situations = tuple(_situations((*ours.overrides, *theirs.overrides), today))
    found: dict[tuple[str, Decimal, Decimal], list[str]] = {}
    for situation in situations:
        file_rates = ours.at(situation.when_s, situation.prompt_tokens)
        published_rates = theirs.at(situation.when_s, situation.prompt_tokens)
        for rate in _stated(file_rates) | _stated(published_rates):
            billed = _billed(file_rates)[rate], _billed(published_rates)[rate]
            if billed[0] != billed[1]:
                found.setdefault((rate, *billed), []).append(situation.words)
    return tuple(
        PriceDifference(
            rate=rate,
            ours=our_rate,
            theirs=their_rate,
            when="always" if len(words) == len(situations) else "; ".join(words),
        )
        for (rate, our_rate, their_rate), words in sorted(found.items())
    )


def _stated(price: Price) -> set[str]:
    return {field.name for field in fields(price) if getattr(price, field.name) is not None}


def _billed(price: Price) -> dict[str, Decimal]:
    """Return the billed rate for each class; a class that has neither a rate nor a fallback rate is
    free.
    """
    rates: dict[str, Decimal] = {}
    for name in Price.__struct_fields__:
        rate: Decimal | None = getattr(price, name)
        rates[name] = rates.get(BILLED_AS.get(name, ""), Decimal(0)) if rate is None else rate
    return rates


def _situations(overrides: tuple[PriceOverride, ...], today: date) -> Iterator[_Situation]:
    """Yield one situation for each range of times and prompt sizes with constant prices."""
    midnight_s = datetime.combine(today, time(), UTC).timestamp()
    edges = {
        edge_s
        for override in overrides
        for edge_s in (override.since_s, override.until_s)
        if edge_s
    }
    days_s = [midnight_s, *sorted(edge_s for edge_s in edges if edge_s > midnight_s)]
    weeks = _group_weekdays(overrides)
    # If weekdays differ, prices may change at midnight.
    midnight = {0} if len(weeks) > 1 else set()
    minutes = sorted(midnight.union(*(override.utc_minutes or () for override in overrides))) or [0]
    sizes = [
        0,
        *sorted(
            {override.prompt_tokens_over for override in overrides if override.prompt_tokens_over}
        ),
    ]
    for start_s, end_s in zip(days_s, [*days_s[1:], None], strict=True):
        since = f"from {datetime.fromtimestamp(start_s, UTC).date()}" if len(days_s) > 1 else ""
        for weekdays in weeks:
            day_s = _first_of(weekdays, start_s)
            if end_s is not None and day_s >= end_s:
                continue
            on = f"on {'/'.join(WEEKDAYS[day] for day in weekdays)}" if len(weeks) > 1 else ""
            for minute, end in zip(minutes, [*minutes[1:], minutes[0]], strict=True):
                hours = f"{_clock(minute)}-{_clock(end)} UTC" if len(minutes) > 1 else ""
                for size, largest in zip(sizes, [*sizes[1:], None], strict=True):
                    words = ", ".join(filter(None, (since, on, hours, _sized(size, largest))))
                    yield _Situation(day_s + minute * 60, size + 1, words)


def _group_weekdays(overrides: tuple[PriceOverride, ...]) -> list[list[int]]:
    """Return groups of weekdays that have the same overrides; the hours of a day may reach into the
    next day.
    """
    groups: dict[tuple[bool, ...], list[int]] = {}
    for day in range(7):
        matches = tuple(
            other in override.utc_weekdays
            for override in overrides
            if override.utc_weekdays is not None
            for other in ((day, (day - 1) % 7) if _is_over_midnight(override) else (day,))
        )
        groups.setdefault(matches, []).append(day)
    return [*groups.values()]


def _is_over_midnight(override: PriceOverride) -> bool:
    return override.utc_minutes is not None and override.utc_minutes[0] > override.utc_minutes[1]


def _first_of(weekdays: list[int], day_s: float) -> float:
    """Return the start of the first of these weekdays at or after `day_s`."""
    today = datetime.fromtimestamp(day_s, UTC).weekday()
    return day_s + min((day - today) % 7 for day in weekdays) * DAY_S


def _sized(over: int, largest: int | None) -> str:
    up_to = "" if largest is None else f" up to {largest}"
    least = f" over {over}" if over else ""
    return f"prompts{least}{up_to} tokens" if least or up_to else ""


def _clock(minute: int) -> str:
    return f"{minute // 60:02}:{minute % 60:02}"
