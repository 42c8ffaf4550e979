"""Prices by the piece in a review: each is told with its condition, and recorded work costs it.

Keeps C53, C65, C82.
"""

from dataclasses import replace
from decimal import Decimal

import pytest

from tests.gateways import Always
from tests.traffic import line
from tests.unit.routing.catalogs import endpoint, model, routing
from tests.works import CASES, WorkCase, home_of
from tollgate.routing.review.diff import list_changes
from tollgate.routing.review.replay import replay_traffic
from tollgate.routing.review.traffic import read_traffic
from tollgate.routing.routing_file import Routing
from tollgate.web.chat_app import chat_app
from tollgate.web.http.cors import WebLimits

HIGH = {"image_size": "1024x1024", "image_quality": "high"}


def painter(*overrides: tuple[dict[str, str], str]) -> Routing:
    conditions = tuple(
        {"when": when, "price": {"image": Decimal(rate)}} for when, rate in overrides
    )
    offer = endpoint("near", "p-1", dollars_in="0", dollars_out="0", image="0.02")
    paint = model(offer | {"overrides": conditions}, kind="image")
    del paint["max_output"]
    return routing(models={"acme/paint": paint}, aliases={}, routes={}, key_tiers={})


def dearer(case: WorkCase) -> WorkCase:
    """The case at a model whose every rate is doubled."""
    offers = [
        offer | {"price": {name: _doubled(value) for name, value in offer["price"].items()}}
        for offer in case.model["endpoints"]
    ]
    return replace(case, model={**case.model, "endpoints": tuple(offers)})


def _doubled(value: object) -> object:
    return value * 2 if isinstance(value, Decimal) else value


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
async def test_c53_c65_recorded_work_costs_what_its_units_do_at_another_price(
    case: WorkCase,
) -> None:
    home = await home_of(case)
    await case.ask(home.secret).run(chat_app(home.front, Always(home.gateway), WebLimits()))
    head = (await home_of(dearer(case))).catalog
    found = replay_traffic(read_traffic([line(home.record)]), home.catalog, head)
    assert (found.requests, found.as_recorded, found.moved) == (1, 1, 0)
    [flow] = found.repriced.values()
    assert flow.before_nano_usd == case.cost_nano_usd == home.spent_nano_usd
    assert flow.after_nano_usd == 2 * case.cost_nano_usd


def test_c53_prices_by_size_and_quality_are_told_apart() -> None:
    before = painter(({"image_quality": "high"}, "0.08"), ({"image_over": "1024x1024"}, "0.04"))
    after = painter(({"image_quality": "high"}, "0.10"), ({"image_over": "1024x1024"}, "0.04"))
    [change] = list_changes(before, after)
    [fact] = change.facts
    assert (change.what, fact.name, fact.before, fact.after, fact.percent) == (
        "price",
        "quality high image",
        "0.08",
        "0.10",
        Decimal("25.0"),
    )


def test_c53_a_new_model_is_told_with_its_prices_by_the_piece() -> None:
    nothing = routing(aliases={}, routes={}, key_tiers={})
    added = [
        {fact.name: fact.after for fact in change.facts}
        for change in list_changes(nothing, painter((HIGH, "0.08")))
        if change.kind == "added"
    ]
    assert [facts["near/p-1"] for facts in added] == [
        "image 0.02, size 1024x1024 quality high image 0.08"
    ]


@pytest.mark.parametrize(
    ("name", "rates"),
    [
        ("speech by characters", {"input": "1", "output": "10"}),
        ("a transcript by seconds", {"input": "1", "output": "10"}),
    ],
)
async def test_c53_c65_work_costs_its_likely_tokens_where_nobody_counted_any(
    name: str, rates: dict[str, str]
) -> None:
    case = next(each for label, each in CASES.items() if label.startswith(name))
    home = await home_of(case)
    await case.ask(home.secret).run(chat_app(home.front, Always(home.gateway), WebLimits()))
    notes = {"source": "made up", "checked": "2026-11-21"}
    price = {unit: Decimal(rate) for unit, rate in rates.items()} | notes
    offers = tuple(offer | {"price": price} for offer in case.model["endpoints"])
    head = (await home_of(replace(case, model={**case.model, "endpoints": offers}))).catalog
    found = replay_traffic(read_traffic([line(home.record)]), home.catalog, head)
    [flow] = found.repriced.values()
    units = home.record.trace.units
    assert units is not None
    likely = home.record.trace.estimated_input_tokens * 1_000 + units.output_tokens * 10_000
    assert flow.after_nano_usd == likely > 0
