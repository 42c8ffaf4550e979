"""Prices that depend on the time and on the size of the prompt.

Keeps C65.
"""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import fields

from tests.unit.routing.test_price import prices, rates, usages
from tollgate.core.records.generation import total_nano_usd
from tollgate.core.usage import Usage
from tollgate.routing.price import (
    Price,
    PriceOverride,
    PriceSchedule,
    bill,
    cost_max_nano_usd,
)

DECEMBER_S = 1_796_083_200  # 2026-12-01, 00:00 UTC
FLAT = Price(input=Decimal(2), output=Decimal(10), cache_read=Decimal("0.2"))


def schedule(*overrides: PriceOverride) -> PriceSchedule:
    return PriceSchedule(base=FLAT, overrides=overrides)


def rates_at(prices: PriceSchedule, when_s: float, tokens: int = 0) -> tuple[Decimal, Decimal]:
    price = prices.at(when_s, tokens)
    return price.input, price.output


def test_c65_a_dated_price_holds_from_the_first_second_of_its_day_to_before_the_last() -> None:
    dated = schedule(
        PriceOverride(rates={"input": Decimal(4)}, since_s=DECEMBER_S, until_s=DECEMBER_S + 86_400)
    )
    assert rates_at(dated, DECEMBER_S - 0.001) == (2, 10)
    assert rates_at(dated, DECEMBER_S) == (4, 10)
    assert rates_at(dated, DECEMBER_S + 86_399.999) == (4, 10)
    assert rates_at(dated, DECEMBER_S + 86_400) == (2, 10)


def test_c65_a_tier_holds_for_the_whole_prompt_that_is_over_it() -> None:
    tiered = schedule(PriceOverride(rates={"input": Decimal(4)}, prompt_tokens_over=200_000))
    assert rates_at(tiered, 0, 200_000) == (2, 10)
    assert rates_at(tiered, 0, 200_001) == (4, 10)


@pytest.mark.parametrize(
    ("window", "inside", "outside"),
    [
        ((990, 1_000), (990, 999), (989, 1_000)),
        ((990, 30), (990, 1_439, 0, 29), (30, 989)),
    ],
)
def test_c65_a_window_may_lie_over_midnight(
    window: tuple[int, int], inside: tuple[int, ...], outside: tuple[int, ...]
) -> None:
    peak = schedule(PriceOverride(rates={"output": Decimal(30)}, utc_minutes=window))
    for minute in inside:
        assert rates_at(peak, DECEMBER_S + minute * 60 + 59.9) == (2, 30)
    for minute in outside:
        assert rates_at(peak, DECEMBER_S + minute * 60) == (2, 10)


WORKDAYS = frozenset(range(5))


@pytest.mark.parametrize(
    ("moment", "output"),
    [
        ("2026-11-20T01:00", 30),  # Friday
        ("2026-11-21T01:00", 10),
        ("2026-11-22T03:59", 10),
        ("2026-11-23T03:59", 30),
        ("2026-11-23T04:00", 10),
    ],
)
def test_c65_a_peak_of_weekdays_is_none_at_the_weekend(moment: str, output: int) -> None:
    peak = PriceOverride(
        rates={"output": Decimal(30)}, utc_minutes=(60, 240), utc_weekdays=WORKDAYS
    )
    when_s = datetime.fromisoformat(f"{moment}+00:00").timestamp()
    assert rates_at(schedule(peak), when_s) == (2, output)


def test_c65_hours_over_midnight_are_of_the_day_on_which_they_begin() -> None:
    fridays = PriceOverride(
        rates={"output": Decimal(30)}, utc_minutes=(1_380, 60), utc_weekdays=frozenset({4})
    )
    friday_s = datetime(2026, 11, 20, tzinfo=UTC).timestamp()
    held = [hour for hour in range(7 * 24) if fridays.holds_at(friday_s + hour * 3600)]
    assert held == [23, 24]


@given(
    st.integers(0, 2**31).map(lambda second: datetime.fromtimestamp(second, UTC)),
    st.tuples(st.integers(0, 1_439), st.integers(0, 1_439)).filter(lambda it: it[0] != it[1]),
    st.none() | st.frozensets(st.integers(0, 6), min_size=1),
)
def test_c65_a_window_of_weekdays_is_what_a_calendar_says(
    moment: datetime, window: tuple[int, int], weekdays: frozenset[int] | None
) -> None:
    override = PriceOverride(rates={}, utc_minutes=window, utc_weekdays=weekdays)
    length = timedelta(minutes=(window[1] - window[0]) % 1_440)
    midnight = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    begun = [midnight + timedelta(days=back, minutes=window[0]) for back in (-1, 0)]
    expected = any(
        start <= moment < start + length and (weekdays is None or start.weekday() in weekdays)
        for start in begun
    )
    assert override.holds_at(moment.timestamp()) == expected


def test_c65_the_later_override_wins_rate_by_rate() -> None:
    both = schedule(
        PriceOverride(rates={"input": Decimal(4), "output": Decimal(20)}),
        PriceOverride(rates={"input": Decimal(3)}),
    )
    assert rates_at(both, 0) == (3, 20)
    assert both.at(0, 0).cache_read == Decimal("0.2")


overrides = st.builds(
    PriceOverride,
    rates=st.dictionaries(st.sampled_from([field.name for field in fields(Price)]), rates),
    since_s=st.none() | st.integers(0, 100),
    until_s=st.none() | st.integers(0, 100),
    prompt_tokens_over=st.none() | st.integers(1, 10_000),
    utc_minutes=st.none() | st.just((0, 1)),
    utc_weekdays=st.none() | st.frozensets(st.sampled_from([2, 3])),
)
schedules = st.builds(
    PriceSchedule, base=prices, overrides=st.lists(overrides, max_size=4).map(tuple)
)


@given(usages, schedules, st.integers(0, 120))
def test_c65_the_bound_covers_whatever_tier_a_prompt_turns_out_to_be_in(
    usage: Usage, schedule: PriceSchedule, when_s: int
) -> None:
    billed = total_nano_usd(bill(usage, schedule.at(when_s, usage.input_tokens)))
    assert billed <= max(
        cost_max_nano_usd(usage.input_tokens, usage.output_tokens or 0, price)
        for price in schedule.possible(when_s, usage.input_tokens)
    )


@pytest.mark.parametrize(("most", "rate"), [(0, 2), (100, 2), (101, 4), (1_000, 4)])
def test_c62_the_bound_has_the_rates_of_each_size_that_a_prompt_may_have(
    most: int, rate: int
) -> None:
    tiered = schedule(PriceOverride(rates={"input": Decimal(4)}, prompt_tokens_over=100))
    assert max(price.input for price in tiered.possible(0, most)) == rate
    assert tiered.cost_max_nano_usd(0, most, 0) == most * rate * 1_000 + 5


def test_c65_c83_a_schedule_is_scaled_with_its_overrides_but_for_searches() -> None:
    base = Price(
        input=Decimal(3), output=Decimal(15), cache_read=Decimal("0.3"), web_search=Decimal("0.01")
    )
    night = PriceOverride(rates={"input": Decimal(1)}, utc_minutes=(0, 60))
    half = PriceSchedule(base=base, overrides=(night,)).scaled(50)
    assert half.base == Price(
        input=Decimal("1.5"),
        output=Decimal("7.5"),
        cache_read=Decimal("0.15"),
        web_search=Decimal("0.01"),
    )
    assert half.at(60.0, 10).input == Decimal("0.5")
    assert PriceSchedule(base=base).scaled(100).base == base
    cached = PriceSchedule(base=base).scaled(50, 100).base
    assert (cached.input, cached.cache_read) == (Decimal("1.5"), Decimal("0.3"))
