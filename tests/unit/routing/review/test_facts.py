"""Prices in the words of a review: every rate and condition that a bill depends on.

Keeps C53.
"""

from typing import Any

import pytest

from tests.unit.routing.catalogs import endpoint, model, routing
from tollgate.cli.stack.catalog_prices import list_price_rows
from tollgate.routing.price_sections import WhenSection
from tollgate.routing.review.facts import list_rates, summarize_price
from tollgate.routing.schema import EndpointSection

CONDITIONS: dict[str, Any] = {
    "from": "2026-12-01",
    "until": "2027-01-01",
    "prompt_tokens_over": 200_000,
    "utc_window": "16:30-00:30",
    "utc_days": ("sat", "sun"),
    "image_size": "1024x1024",
    "image_over": "1024x1536",
    "image_quality": "low",
}


def offer(price: dict[str, Any], *overrides: dict[str, Any]) -> EndpointSection:
    stated = endpoint("near", "paint") | {"overrides": overrides}
    stated["price"] = {**stated["price"], **price}
    return EndpointSection.model_validate(stated)


def test_each_condition_of_a_price_is_known_here() -> None:
    fields = WhenSection.model_fields.items()
    assert CONDITIONS.keys() == {field.alias or name for name, field in fields}


@pytest.mark.parametrize("name", CONDITIONS)
def test_a_rate_under_a_condition_is_a_fact_beside_the_others(name: str) -> None:
    """Two rates of one name would hide a change of the first from the plan."""
    both = ({"image_quality": "high"}, {"image_quality": "high", name: CONDITIONS[name]})
    if name == "image_quality":
        both = ({"image_size": "512x512"}, {"image_size": "512x512", name: "low"})
    overrides = ({"when": when, "price": {"image": str(1 + at)}} for at, when in enumerate(both))
    rates = list_rates(offer({"image": "0.5"}, *overrides))
    assert [rate for key, rate in rates.items() if key.endswith("image")] == [
        "0.50",
        "1.00",
        "2.00",
    ]


def test_the_prices_of_a_kept_catalog_name_each_condition() -> None:
    overrides = tuple(
        {"when": {name: value}, "price": {"input": "9"}} for name, value in CONDITIONS.items()
    )
    dearer = endpoint("near", "paint") | {"overrides": overrides}
    rows = list_price_rows(routing(models={"acme/paint": model(dearer)}, aliases={}), "*", None)
    assert len({row["when"] for row in rows}) == 1 + len(CONDITIONS)


def test_a_new_price_by_the_piece_is_told_with_its_sizes_and_qualities() -> None:
    high = {"when": {"image_quality": "high"}, "price": {"image": "0.08"}}
    painted = offer({"input": "0", "output": "0", "image": "0.04"}, high)
    assert summarize_price(painted) == "image 0.04, quality high image 0.08"
    assert summarize_price(offer({"input": "2", "output": "10"})) == "2.00 / 10.00"
    tokens = offer({"input": "5", "output": "30", "image_input": "8"})
    assert summarize_price(tokens) == "input 5.00, output 30.00, image_input 8.00"
