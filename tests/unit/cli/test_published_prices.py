"""Prices of genai-prices in the words of a routing file: the same bill at any time and size.

Keeps C65.
"""

from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pytest
from genai_prices.types import (
    ClauseEquals,
    ConditionalPrice,
    ModelInfo,
    ModelPrice,
    StartDateConstraint,
    Tier,
    TieredPrices,
    TimeOfDateConstraint,
)
from hypothesis import given
from hypothesis import strategies as st

from tollgate.cli.routing.published_prices import Unpublished, convert_price, find_published_price
from tollgate.routing.price import PriceSchedule
from tollgate.routing.schema import ProviderSection

TODAY = date(2026, 11, 21)
NAMES = {
    "input_mtok": "input",
    "output_mtok": "output",
    "cache_read_mtok": "cache_read",
    "cache_write_mtok": "cache_write",
    "input_audio_mtok": "audio_input",
    "output_audio_mtok": "audio_output",
    "cache_audio_read_mtok": "cache_read_audio",
}
# As what a class without a rate is billed, if not as plain input.
PLAIN = {"output_audio_mtok": "output_mtok", "cache_audio_read_mtok": "cache_read_mtok"}
OPENAI = {"codec": "openai_chat", "transport": "http_sse", "base_url": "https://api.openai.com/v1"}

amounts = st.integers(1, 9).map(Decimal)
tiered = st.builds(
    lambda base, tiers: TieredPrices(
        base=base, tiers=[Tier(start=start, price=price) for start, price in tiers.items()]
    ),
    amounts,
    st.dictionaries(st.sampled_from([100, 200, 300]), amounts, min_size=1, max_size=2),
)
rates = st.fixed_dictionaries(
    {"input_mtok": amounts | tiered, "output_mtok": amounts | tiered},
    optional=dict.fromkeys(list(NAMES)[2:], amounts | tiered),
)
constraints = st.one_of(
    st.integers(-20, 20).map(lambda days: StartDateConstraint(TODAY + timedelta(days=days))),
    st.tuples(st.integers(0, 23), st.integers(0, 23))
    .filter(lambda hours: hours[0] != hours[1])
    .map(lambda hours: TimeOfDateConstraint(*(time(hour, tzinfo=UTC) for hour in hours))),
)


def model_of(prices: Any) -> ModelInfo:
    return ModelInfo(id="m", match=ClauseEquals("m"), prices=prices)


def models() -> st.SearchStrategy[ModelInfo]:
    conditional = st.builds(
        lambda constraint, price: ConditionalPrice(constraint, prices=ModelPrice(**price)),
        constraints,
        rates,
    )
    first = rates.map(lambda price: ConditionalPrice(None, prices=ModelPrice(**price)))
    return st.builds(
        lambda head, tail: model_of([head, *tail]), first, st.lists(conditional, max_size=4)
    )


def billed(price: Mapping[str, Decimal | TieredPrices | None], prompt: int) -> dict[str, Decimal]:
    """What they charge for each class: one without a rate is billed as what it is part of."""
    found = {}
    for unit, name in NAMES.items():
        plain = PLAIN.get(unit, "input_mtok")
        amount = price.get(unit) or price.get(plain) or price["input_mtok"]
        assert amount is not None
        if isinstance(amount, TieredPrices):
            reached = [tier.price for tier in amount.tiers if prompt > tier.start]
            amount = [amount.base, *reached][-1]
        found[name] = amount
    return found


@given(models(), st.integers(0, 50), st.integers(0, 23), st.sampled_from([1, 101, 201, 301]))
def test_c65_a_price_costs_the_same_from_that_day_on(
    model: ModelInfo, days: int, hour: int, prompt: int
) -> None:
    theirs = convert_price(model, TODAY)
    schedule = PriceSchedule(
        base=theirs.price.price, overrides=tuple(it.override for it in theirs.overrides)
    )
    when = datetime.combine(TODAY + timedelta(days=days), time(hour, 30), UTC)
    ours = schedule.at(when.timestamp(), prompt)
    paid = {}
    for unit, name in NAMES.items():
        plain = getattr(ours, NAMES[PLAIN.get(unit, "input_mtok")])
        rates = (getattr(ours, name), plain, ours.input)
        paid[name] = next(rate for rate in rates if rate is not None)
    assert paid == billed(vars(model.get_prices(when)), prompt)


def test_a_price_that_is_over_is_left_out_and_one_to_come_is_kept() -> None:
    past, coming = TODAY, TODAY + timedelta(days=1)
    price = convert_price(
        model_of(
            [
                ConditionalPrice(None, prices=ModelPrice(input_mtok=Decimal(1))),
                ConditionalPrice(
                    StartDateConstraint(past),
                    prices=ModelPrice(input_mtok=Decimal(2), output_mtok=Decimal(3)),
                ),
                ConditionalPrice(
                    StartDateConstraint(coming),
                    prices=ModelPrice(input_mtok=Decimal(4), output_mtok=Decimal(5)),
                ),
            ]
        ),
        TODAY,
    )
    assert (price.price.input, price.price.output) == (2, 3)
    [override] = price.overrides
    assert override.when.since == coming
    assert (override.price.input, override.price.output) == (4, 5)


def test_hours_of_another_zone_are_told_in_utc() -> None:
    zone = datetime.fromisoformat("2026-11-21T00:00:00+08:00").tzinfo
    night = TimeOfDateConstraint(time(22, tzinfo=zone), time(6, 30, tzinfo=zone))
    both = ModelPrice(input_mtok=Decimal(1), output_mtok=Decimal(1))
    prices = [ConditionalPrice(None, prices=both), ConditionalPrice(night, prices=both)]
    [override] = convert_price(model_of(prices), TODAY).overrides
    assert override.when.utc_window == "14:00-22:30"


def test_requests_and_searches_are_priced_each_and_what_has_no_rate_is_named() -> None:
    price = ModelPrice(
        input_mtok=Decimal(1),
        output_mtok=Decimal(2),
        requests_kcount=Decimal(5),
        web_searches_kcount=Decimal(10),
        storage_searches_kcount=Decimal(3),
    )
    found = convert_price(model_of(price), TODAY)
    assert (found.price.request, found.price.web_search) == (Decimal("0.005"), Decimal("0.01"))
    assert found.unstatable == ("storage_searches_kcount",)


def test_a_later_price_without_a_fee_per_request_has_none() -> None:
    rates = {"input_mtok": Decimal(1), "output_mtok": Decimal(2)}
    with_fee = ModelPrice(**rates, requests_kcount=Decimal(5))
    later = ConditionalPrice(
        StartDateConstraint(TODAY + timedelta(days=1)), prices=ModelPrice(**rates)
    )
    prices = [ConditionalPrice(None, prices=with_fee), later]
    [override] = convert_price(model_of(prices), TODAY).overrides
    assert override.price.request == 0


@pytest.mark.parametrize(
    ("row", "upstream", "words"),
    [
        (OPENAI, "gpt-99", "OpenAI has no price for gpt-99"),
        (OPENAI, "whisper-1", "whisper-1 has no rate for input and output"),
        ({**OPENAI, "base_url": "https://llm.example"}, "gpt-5.2", "are not published"),
        ({"codec": "openai_chat", "transport": "simulator"}, "gpt-5.2", "are not published"),
    ],
)
def test_what_is_not_published_is_said_and_not_guessed(
    row: dict[str, str], upstream: str, words: str
) -> None:
    with pytest.raises(Unpublished, match=words):
        find_published_price(ProviderSection.model_validate(row), upstream, TODAY)
