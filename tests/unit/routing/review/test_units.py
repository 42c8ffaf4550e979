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
from tollgate.routing.schema import Routing
from tollgate.web.chat_app import chat_app
from tollgate.web.cors import WebLimits

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
