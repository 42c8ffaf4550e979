"""Usage times price, to the nano-dollar.

Keeps C65.
"""

from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import fields, replace

from tollgate.core.events import Ended, Started, UsageReported
from tollgate.core.records.generation import BillLine, Fee, total_nano_usd
from tollgate.core.response import Fold
from tollgate.core.usage import Usage
from tollgate.routing.price import (
    MODEL_ITEMS,
    Price,
    bill,
    cost_max_nano_usd,
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
    cache_read_audio=maybe_rates,
    image=maybe_rates,
    web_search=maybe_rates,
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
    cache_read_audio_input_tokens=maybe_tokens,
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


def test_c65_cached_audio_is_taken_out_of_what_was_read_from_the_cache() -> None:
    usage = Usage(cache_read_input_tokens=100, cache_read_audio_input_tokens=60)
    price = Price(input=Decimal(1), output=Decimal(4), cache_read=Decimal("0.03"))
    assert [(line.item, line.quantity) for line in bill(usage, price)] == [("cache_read", 100)]
    apart = replace(price, cache_read_audio=Decimal("0.1"))
    assert [(line.item, line.quantity, line.cost_nano_usd) for line in bill(usage, apart)] == [
        ("cache_read", 40, 1_200),
        ("cache_read_audio", 60, 6_000),
    ]


def test_c65_each_search_that_a_provider_ran_by_itself_is_charged_on_one_line() -> None:
    usage = Usage(web_searches=3)
    price = Price(input=Decimal(1), output=Decimal(1), web_search=Decimal("0.01"))
    assert bill(usage, price) == (
        BillLine(
            item="provider_web_search",
            quantity=3,
            usd_per_million=Decimal(10_000),
            cost_nano_usd=30_000_000,
        ),
    )
    assert bill(Usage(web_searches=0), price) == ()


def test_c65_a_search_that_nobody_has_priced_is_told_and_not_charged() -> None:
    unpriced = Price(input=Decimal(1), output=Decimal(1))
    [line] = bill(Usage(web_searches=3), unpriced)
    assert (line.item, line.quantity, line.cost_nano_usd) == ("unpriced_web_search", 3, 0)
    [free] = bill(Usage(web_searches=3), replace(unpriced, web_search=Decimal(0)))
    assert (free.item, free.cost_nano_usd) == ("provider_web_search", 0)


def test_every_line_of_a_model_is_known_as_one() -> None:
    parts = Usage(**{field.name: 2 for field in fields(Usage)})
    everything = replace(parts, uncached_input_tokens=6, output_tokens=6)
    price = Price(**{field.name: Decimal(1) for field in fields(Price)})
    items = {line.item for line in (*bill(everything, price), *bill(everything, FULL))}
    assert items == MODEL_ITEMS


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
        streamed = streamed.update(report)
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
        cache_read_input_tokens=2,
        cache_read_audio_input_tokens=1,
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
        cache_read_audio=HALF,
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
