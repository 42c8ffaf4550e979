"""Usage times price, to the nano-dollar.

Keeps C65.
"""

from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import fields

from tollgate.core.events import Ended, Started, UsageReported
from tollgate.core.generation import BillLine, Fee
from tollgate.core.response import Fold
from tollgate.core.usage import Usage
from tollgate.routing.price import (
    Price,
    PriceOverride,
    PriceSchedule,
    bill,
    cost_max_nano_usd,
    total_nano_usd,
)

FULL = Price(
    input=Decimal("2.20"),
    output=Decimal("11.00"),
    cache_read=Decimal("0.11"),
    cache_write=Decimal("2.75"),
    cache_write_1h=Decimal("4.40"),
    request=Decimal("0.01"),
)

# The second kind leaves half a nano-dollar a token, where every line rounds up.
rates = st.decimals(min_value=0, max_value=1000, places=9) | st.sampled_from(
    [Decimal("0.0005"), Decimal("0.0015"), Decimal("0.0000000005")]
)
maybe_rates = st.none() | rates
tokens = st.integers(min_value=0, max_value=10_000_000)
maybe_tokens = st.none() | tokens
prices = st.builds(
    Price,
    input=rates,
    output=rates,
    cache_read=maybe_rates,
    cache_write=maybe_rates,
    cache_write_1h=maybe_rates,
    request=maybe_rates,
    audio_input=maybe_rates,
    audio_output=maybe_rates,
    image=maybe_rates,
)
usages = st.builds(
    Usage,
    uncached_input_tokens=maybe_tokens,
    cache_read_input_tokens=maybe_tokens,
    cache_write_5m_input_tokens=maybe_tokens,
    cache_write_1h_input_tokens=maybe_tokens,
    output_tokens=maybe_tokens,
    audio_input_tokens=maybe_tokens,
    audio_output_tokens=maybe_tokens,
    images=st.none() | st.integers(0, 1),
)
charges = st.lists(
    st.builds(
        Fee,
        item=st.sampled_from(["web_search", "pdf_page"]),
        quantity=st.integers(min_value=0, max_value=500),
        usd_each=st.decimals(min_value=0, max_value=10, places=9),
    ),
    max_size=3,
)


def test_c65_each_class_of_tokens_is_a_line_at_its_own_rate() -> None:
    usage = Usage(
        uncached_input_tokens=1_000,
        cache_read_input_tokens=2_000,
        cache_write_5m_input_tokens=300,
        cache_write_1h_input_tokens=40,
        output_tokens=500,
        reasoning_tokens=400,
    )
    assert [(line.item, line.quantity, line.cost_nano_usd) for line in bill(usage, FULL)] == [
        ("input", 1_000, 2_200_000),
        ("cache_read", 2_000, 220_000),
        ("cache_write_5m", 300, 825_000),
        ("cache_write_1h", 40, 176_000),
        ("output", 500, 5_500_000),
        ("request", 1, 10_000_000),
    ]


def test_c65_a_class_without_a_rate_is_billed_as_input_never_for_nothing() -> None:
    plain = Price(input=Decimal(3), output=Decimal(15))
    usage = Usage(
        cache_read_input_tokens=10, cache_write_5m_input_tokens=10, cache_write_1h_input_tokens=10
    )
    assert [line.usd_per_million for line in bill(usage, plain)] == [Decimal(3)] * 3


def test_c65_a_rate_of_zero_is_a_rate() -> None:
    free_reads = Price(input=Decimal(3), output=Decimal(15), cache_read=Decimal(0))
    assert bill(Usage(cache_read_input_tokens=10), free_reads) == (
        BillLine(item="cache_read", quantity=10, usd_per_million=Decimal(0), cost_nano_usd=0),
    )


def test_c65_what_was_not_reported_or_is_zero_has_no_line() -> None:
    assert bill(Usage(), Price(input=Decimal(3), output=Decimal(15))) == ()
    assert bill(Usage(output_tokens=0), Price(input=Decimal(3), output=Decimal(15))) == ()


@pytest.mark.parametrize(
    ("quantity", "rate", "cost"),
    [(1, "0.0005", 1), (1, "0.0004", 0), (3, "0.0005", 2), (1, "0.0015", 2), (7, "0.035", 245)],
)
def test_c65_each_line_rounds_half_up_to_a_nano_dollar(quantity: int, rate: str, cost: int) -> None:
    price = Price(input=Decimal(rate), output=Decimal(0))
    assert total_nano_usd(bill(Usage(uncached_input_tokens=quantity), price)) == cost


def test_c65_audio_is_taken_out_of_the_tokens_it_is_part_of() -> None:
    usage = Usage(
        uncached_input_tokens=100,
        audio_input_tokens=60,
        output_tokens=50,
        audio_output_tokens=20,
        images=2,
    )
    price = Price(
        input=Decimal(1),
        output=Decimal(4),
        audio_input=Decimal(10),
        audio_output=Decimal(20),
        image=Decimal("0.04"),
    )
    assert [(line.item, line.quantity, line.cost_nano_usd) for line in bill(usage, price)] == [
        ("input", 40, 40_000),
        ("input_audio", 60, 600_000),
        ("output", 30, 120_000),
        ("output_audio", 20, 400_000),
        ("image", 2, 80_000_000),
    ]


def test_c65_every_tool_run_and_every_page_is_charged_on_a_line_of_its_own() -> None:
    price = Price(input=Decimal(1), output=Decimal(1))
    charged = (
        Fee(item="web_search", quantity=2, usd_each=Decimal("0.01")),
        Fee(item="pdf_page", quantity=3, usd_each=Decimal("0.002")),
        Fee(item="datetime", quantity=1, usd_each=Decimal(0)),
    )
    assert [
        (line.item, line.quantity, line.usd_per_million, line.cost_nano_usd)
        for line in bill(Usage(), price, charged)
    ] == [
        ("web_search", 2, Decimal(10_000), 20_000_000),
        ("pdf_page", 3, Decimal(2_000), 6_000_000),
        ("datetime", 1, Decimal(0), 0),
    ]


@given(usages, rates, rates)
def test_c65_whatever_is_reported_every_token_is_on_exactly_one_line(
    usage: Usage, input_rate: Decimal, output_rate: Decimal
) -> None:
    lines = bill(usage, Price(input=input_rate, output=output_rate))
    assert sum(line.quantity for line in lines) == usage.total_tokens
    assert all(line.usd_per_million in (input_rate, output_rate) for line in lines)


@given(st.lists(usages, min_size=1, max_size=5), prices)
def test_c65_a_streamed_answer_is_billed_as_the_folded_one(
    reports: list[Usage], price: Price
) -> None:
    fold, streamed = Fold(), Usage()
    fold.accept(Started())
    for report in reports:
        fold.accept(UsageReported(usage=report))
        streamed = streamed.updated(report)
    fold.accept(Ended(finish="stop"))
    assert bill(fold.response().usage, price) == bill(streamed, price)


@given(usages, prices, charges)
def test_c65_the_total_is_the_sum_of_the_lines_and_within_rounding_of_the_exact_cost(
    usage: Usage, price: Price, charged: list[Fee]
) -> None:
    lines = bill(usage, price, charged)
    exact = sum(
        (Decimal(line.quantity) * line.usd_per_million * 1_000 for line in lines), Decimal(0)
    )
    assert total_nano_usd(lines) == sum(line.cost_nano_usd for line in lines)
    assert abs(total_nano_usd(lines) - exact) <= Decimal(len(lines)) / 2
    assert all(line.cost_nano_usd >= 0 and line.quantity > 0 for line in lines)


HALF = Decimal("0.0005")


@given(usages, prices, tokens, tokens)
@example(
    usage=Usage(
        uncached_input_tokens=2,
        audio_input_tokens=1,
        cache_read_input_tokens=1,
        cache_write_5m_input_tokens=1,
        cache_write_1h_input_tokens=1,
        output_tokens=2,
        audio_output_tokens=1,
        images=1,
    ),
    price=Price(
        input=HALF,
        output=HALF,
        audio_input=HALF,
        audio_output=HALF,
        request=Decimal("0.0000000005"),
        image=Decimal("0.0000000005"),
    ),
    more_input=0,
    more_output=0,
)
def test_the_bound_is_never_below_a_bill_within_its_limits(
    usage: Usage, price: Price, more_input: int, more_output: int
) -> None:
    bound = cost_max_nano_usd(
        usage.input_tokens + more_input, (usage.output_tokens or 0) + more_output, price
    )
    assert total_nano_usd(bill(usage, price)) <= bound
    assert isinstance(bound, int)


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
