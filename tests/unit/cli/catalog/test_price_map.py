"""What is read of litellm's price map: C65."""

from datetime import date
from decimal import Decimal
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.unit.cli.catalog.published import MEMBER, WHEEL, entry, price_map
from tollgate.cli.catalog.facts import PublishedFacts
from tollgate.cli.catalog.price_map import NotAPriceMap, read_price_map
from tollgate.routing.price import Price, PriceOverride, PriceSchedule
from tollgate.routing.schema import ProviderSection

TOGETHER = ProviderSection(
    codec="openai_chat", transport="http_sse", base_url="https://api.together.xyz/v1"
)
DAY = date(2026, 11, 23)  # a Monday
MIDNIGHT_S = 1_795_392_000


def read(folder: Path, **facts: object) -> PublishedFacts:
    path = price_map(folder, together_ai__acme__m=entry(2, 4, **facts))
    found = read_price_map(path).find(TOGETHER, "acme/m")
    assert found is not None
    return found


def test_c65_amounts_are_exact_and_per_million(tmp_path: Path) -> None:
    path = price_map(tmp_path, together_ai__acme__m=entry(1.04, 0.003, max_input_tokens=131072))
    found = read_price_map(path)
    facts = found.find(TOGETHER, "acme/m")
    assert found.version == "9.8.7"
    assert facts is not None
    assert facts.rates == {"input": Decimal("1.04"), "output": Decimal("0.003")}
    assert facts.context == 131072


def test_a_zero_of_a_cache_is_no_price_and_a_zero_of_input_is_one(tmp_path: Path) -> None:
    facts = read(tmp_path, input_cost_per_token=0, cache_creation_input_token_cost=0)
    assert facts.rates == {"input": Decimal(0), "output": Decimal(4)}


def test_limits_abilities_and_the_last_day_are_read(tmp_path: Path) -> None:
    facts = read(
        tmp_path,
        max_output_tokens="4096",
        supports_vision=True,
        supports_pdf_input=False,
        supports_function_calling=True,
        deprecation_date="2027-01-31",
    )
    assert (facts.max_output, facts.input, facts.supports) == (4096, ("text", "image"), ("tools",))
    assert facts.retires == date(2027, 1, 31)


def test_c65_a_model_of_another_kind_has_rates_of_inputs_and_of_searches_alone(
    tmp_path: Path,
) -> None:
    path = price_map(
        tmp_path,
        together_ai__acme__v=entry(
            2, 0, mode="embedding", input_cost_per_audio_token=6e-06, max_output_tokens=9
        ),
        together_ai__acme__r=entry(0, 0, mode="rerank", input_cost_per_query=0.0025),
        together_ai__acme__m=entry(2, 4),
    )
    found = read_price_map(path)
    vectors = found.find(TOGETHER, "acme/v", kind="embedding")
    ranking = found.find(TOGETHER, "acme/r", kind="rerank")
    assert vectors is not None
    assert ranking is not None
    assert (vectors.rates, vectors.max_output) == ({"input": Decimal(2)}, None)
    assert ranking.rates == {"input": Decimal(0), "search": Decimal("0.0025")}
    assert ranking.schedule.base.search == Decimal("0.0025")
    # A name that the map has for another kind of work is another product.
    assert found.find(TOGETHER, "acme/m", kind="embedding") is None


def test_c65_sizes_of_prompts_become_overrides(tmp_path: Path) -> None:
    named = read(tmp_path, input_cost_per_token_above_200k_tokens=6e-06)
    tiers = [
        {"input_cost_per_token": 2e-06, "output_cost_per_token": 4e-06, "range": [0, 200000.0]},
        {"input_cost_per_token": 6e-06, "range": [200000.0, 1000000.0]},
    ]
    listed = read(tmp_path, input_cost_per_token=None, tiered_pricing=tiers)
    for facts in (named, listed):
        assert facts.schedule.at(MIDNIGHT_S, 200_000).input == 2
        assert facts.schedule.at(MIDNIGHT_S, 200_001).input == 6


def test_c65_hours_off_the_peak_become_overrides(tmp_path: Path) -> None:
    windows = [
        {"hours_utc": ["10:00-00:00"], "weekdays": [1, 2, 3, 4, 5]},
        {"hours_utc": "00:00-00:00", "weekdays": [6, 7]},
    ]
    facts = read(tmp_path, off_peak_pricing={"input_cost_per_token": 1e-06, "windows": windows})
    monday, saturday = MIDNIGHT_S, MIDNIGHT_S + 5 * 86_400
    rates = [facts.schedule.at(day + 3600 * 9, 1).input for day in (monday, saturday)]
    assert rates == [2, 1]
    assert facts.schedule.at(monday + 3600 * 10, 1).input == 1


def test_c65_a_source_without_days_is_compared_with_the_price_of_its_day(tmp_path: Path) -> None:
    facts = read(tmp_path)
    later = PriceOverride(rates={"input": Decimal(9)}, since_s=MIDNIGHT_S + 86_400)
    ours = PriceSchedule(base=Price(input=Decimal(2), output=Decimal(4)), overrides=(later,))
    assert facts.differences(ours, DAY) == ()
    [found] = facts.differences(ours, date(2026, 11, 24))
    assert (found.rate, found.ours, found.theirs) == ("input", 9, 2)


def test_a_class_that_is_not_stated_is_not_compared(tmp_path: Path) -> None:
    cached = Price(input=Decimal(2), output=Decimal(4), cache_read=Decimal("0.2"))
    assert read(tmp_path).differences(PriceSchedule(base=cached), DAY) == ()


def test_a_model_of_another_host_is_not_found(tmp_path: Path) -> None:
    path = price_map(tmp_path, acme__m=entry(1, 1, litellm_provider="novita"))
    assert read_price_map(path).find(TOGETHER, "acme/m") is None


@pytest.mark.parametrize("content", [None, b"[", b"PK"])
def test_a_file_that_is_no_price_map_is_refused(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / WHEEL
    if content == b"[":
        with ZipFile(path, "w") as wheel:
            wheel.writestr(MEMBER, "[")
    elif content is not None:
        path.write_bytes(content)
    with pytest.raises(NotAPriceMap, match="no price map"):
        read_price_map(path)
    with pytest.raises(NotAPriceMap, match="not named"):
        read_price_map(tmp_path / "prices.json")


def test_an_amount_that_is_a_sum_of_floats_is_the_amount_that_was_meant(tmp_path: Path) -> None:
    noisy = entry(1, 2) | {"output_cost_per_token": 3.2000000000000003e-06}
    found = read_price_map(price_map(tmp_path, together_ai__m=noisy)).find(TOGETHER, "m")
    assert found is not None
    assert found.rates["output"] == Decimal("3.2")
