"""A service tier is asked for where it has a price, and billed as it served.

Keeps C53, C87.
"""

from collections.abc import Sequence
from typing import Any, Final

import pytest
from msgspec.structs import replace

from tests import traffic
from tests.gateways import House, house, request_body
from tests.scripted import Answer, Scripted, frame, refuses
from tests.unit.engine.client_formats import exchange
from tests.unit.routing.catalogs import NOW_S, catalog, endpoint, model, price
from tests.upstream.openai_chunks import chunk, usage
from tollgate.cli.routing.explanation import render_explanation
from tollgate.engine.generate import generate
from tollgate.routing.planning.planner import Planner
from tollgate.routing.review.traffic import read_traffic
from tollgate.routing.review.verdicts import ReplayPlanner, WouldServe
from tollgate.web.models.endpoint_status import EndpointStatus
from tollgate.web.records.generation_shapes import GenerationObject
from tollgate.web.routing.explanation_shapes import explain_plan

# Dollars per million tokens of prompt and answer, by tier; an answer has 9 and 3 tokens.
STANDARD: Final = {"dollars_in": "4", "dollars_out": "20"}
TIERS: Final = {
    "flex": {"price": price("2", "10")},
    "priority": {"price": price("8", "40")},
}
COSTS: Final = {"default": 96_000, "flex": 48_000, "priority": 192_000}
TIERED: Final = {
    "acme/tiered": model({**endpoint("near", "t-1", **STANDARD), "service_tiers": TIERS})
}
# developers.openai.com/api/docs/guides/flex-processing, 2026-11-27.
BUSY: Final = refuses(429, code="resource_unavailable")


def served(tier: str | None) -> Answer:
    """An answer that reports the tier, as OpenAI does in each chunk."""
    stated = {} if tier is None else {"service_tier": tier}
    return (
        frame(chunk({"role": "assistant", "content": "Hello"}, **stated)),
        frame(chunk({}, finish="stop", **stated)),
        frame(chunk(usage=usage(9, 3), **stated)),
    )


async def ask(
    tier: str | None,
    *answers: Answer,
    models: Any = TIERED,
    name: str = "acme/tiered",
    **sections: Any,
) -> House:
    """Serve one request for a tier."""
    home = await house(near=Scripted(*answers), models=models, **sections)
    await request(home, tier, name)
    return home


async def request(home: House, tier: str | None, name: str = "acme/tiered", **fields: Any) -> Any:
    """Send one request; return the reply."""
    fields |= {} if tier is None else {"service_tier": tier}
    parsed = home.ingress.parse(request_body(name, **fields))
    call = replace(home.call(name, stream=False), parsed=parsed)
    reply = home.reply()
    await generate(home.gateway, call, home.sink(call, reply))
    return reply.json


def asked_tiers(home: House) -> Sequence[object]:
    """The tiers that the provider was asked for, request by request."""
    return [request.body.get("service_tier") for request in home.near.requests]  # type: ignore[union-attr]


@pytest.mark.parametrize("tier", ["flex", "priority"])
async def test_c87_a_priced_tier_is_asked_for_and_billed(tier: str) -> None:
    home = await ask(tier, served(tier))
    record = home.record
    assert asked_tiers(home) == [tier]
    assert (record.cost_nano_usd, record.service_tier) == (COSTS[tier], tier)
    assert {line.service_tier for line in record.lines} == {tier}
    assert record.attempts[0].service_tier == tier
    assert (record.trace.service_tier, record.adapted) == (tier, ())
    shown = GenerationObject.of(record)
    assert {line.service_tier for line in shown.cost_lines} == {tier}


async def test_c87_an_answer_says_its_tier() -> None:
    home = await house(near=Scripted(served("flex")), models=TIERED)
    assert (await request(home, "flex"))["service_tier"] == "flex"


@pytest.mark.parametrize("tier", [None, "auto", "default"])
async def test_c87_without_a_tier_the_default_is_asked_for(tier: str | None) -> None:
    """A project of OpenAI's may have a dearer tier for requests that ask for none."""
    home = await ask(tier, served("default"))
    assert asked_tiers(home) == ["default"]
    assert (home.record.cost_nano_usd, home.record.adapted) == (COSTS["default"], ())
    assert home.record.lines[0].service_tier is None


async def test_c87_a_downgrade_is_billed_as_served_and_named() -> None:
    home = await ask("priority", served("default"))
    record = home.record
    assert (record.cost_nano_usd, record.service_tier) == (COSTS["default"], "default")
    assert record.adapted == ("service_tier",)


async def test_c87_a_tier_that_is_not_reported_is_billed_as_asked() -> None:
    assert (await ask("priority", served(None))).record.cost_nano_usd == COSTS["priority"]


async def test_c87_fast_is_priority() -> None:
    home = await ask("fast", served("fast"))
    assert (asked_tiers(home), home.record.cost_nano_usd) == (["priority"], COSTS["priority"])
    assert home.record.adapted == ()


@pytest.mark.parametrize(
    ("asked", "lie"), [(None, "priority"), ("flex", "priority"), ("default", "ultrafast")]
)
async def test_c87_a_tier_that_nobody_asked_for_is_not_billed(asked: str | None, lie: str) -> None:
    home = await ask(asked, served(lie))
    record = home.record
    assert record.cost_nano_usd == COSTS[asked or "default"]
    assert (record.service_tier, record.adapted) == (lie, ("service_tier",))


async def test_c87_the_hold_is_that_of_the_dearest_tier_that_may_be_served() -> None:
    held = {tier: (await ask(tier, served(tier))).record.held_nano_usd for tier in COSTS}
    assert round(held["flex"] / held["default"], 2) == 1
    assert round(held["priority"] / held["default"], 2) == 2


async def test_c87_a_tier_without_a_price_is_left_out_and_named() -> None:
    home = await ask("scale", served("default"))
    assert asked_tiers(home) == ["default"]
    assert (home.record.cost_nano_usd, home.record.adapted) == (COSTS["default"], ("service_tier",))


async def test_c87_a_model_without_tiers_serves_and_names_the_parameter() -> None:
    home = await house(near=Scripted(served("default")))
    await request(home, "flex", "acme/small")
    assert asked_tiers(home) == [None]
    assert home.record.adapted == ("service_tier",)


async def test_c87_required_parameters_refuse_a_tier_that_no_endpoint_has() -> None:
    home = await house(near=Scripted(served("default")), models=TIERED)
    reply = await request(home, "scale", provider={"require_parameters": True})
    assert reply["error"]["param"] == "service_tier"
    assert home.near.requests == []


async def test_c87_endpoints_with_the_tier_come_first() -> None:
    plain = endpoint("far", "t-2", **STANDARD)
    tiered = {**endpoint("near", "t-1", **STANDARD), "service_tiers": TIERS}
    home = await ask("flex", served("flex"), models={"acme/tiered": model(plain, tiered)})
    assert home.record.provider == "near"
    home = await ask(None, served("default"), models={"acme/tiered": model(plain, tiered)})
    assert home.record.provider == "far"


ROUTE: Final = {
    "cheap": {"description": "Half the price.", "try": ("acme/tiered",), "service_tier": "flex"}
}


async def test_c87_a_route_asks_for_its_tier_and_falls_back_when_busy() -> None:
    home = await ask(None, BUSY, served("default"), name="cheap", routes=ROUTE)
    record = home.record
    assert asked_tiers(home) == ["flex", "default"]
    assert [each.service_tier for each in record.attempts] == ["flex", None]
    assert record.attempts[0].error == "provider_rate_limit"
    assert (record.cost_nano_usd, record.service_tier) == (COSTS["default"], "default")


async def test_c87_a_route_with_a_tier_bills_flex_when_it_is_free() -> None:
    home = await ask(None, served("flex"), name="cheap", routes=ROUTE)
    assert (asked_tiers(home), home.record.cost_nano_usd) == (["flex"], COSTS["flex"])


async def test_c87_a_caller_who_asks_for_flex_gets_the_refusal_when_it_is_busy() -> None:
    """OpenAI answers 429; its clients then try again without the tier."""
    home = await ask("flex", BUSY)
    assert set(asked_tiers(home)) == {"flex"}
    assert home.record.error == "provider_rate_limit"


async def test_c87_a_busy_tier_does_not_rest_its_endpoint() -> None:
    home = await house(near=Scripted(*(BUSY, served("default")) * 4), models=TIERED, routes=ROUTE)
    for _ in range(4):
        await request(home, None, "cheap")
    assert home.journal.rests == []


async def test_c87_each_format_states_the_tier_that_served() -> None:
    """Anthropic's format has no `flex`, and its `standard` is the default of others."""
    home = await house(near=Scripted(served("default"), served("priority")), models=TIERED)
    question = {
        "model": "acme/tiered",
        "max_tokens": 9,
        "messages": [{"role": "user", "content": "Hi"}],
    }
    message = await exchange(home, "/v1/messages", {**question, "service_tier": "standard_only"})
    assert message.json["usage"]["service_tier"] == "standard"
    response = await exchange(
        home, "/v1/responses", {"model": "acme/tiered", "input": "Hi", "service_tier": "priority"}
    )
    assert response.json["service_tier"] == "priority"
    assert asked_tiers(home) == ["default", "priority"]


async def test_c53_c87_a_replay_bills_the_tier_that_served() -> None:
    sections = {"models": TIERED, "routes": ROUTE}
    plain = {"cheap": {"description": "The whole price.", "try": ("acme/tiered",)}}
    fell_back = (await ask(None, BUSY, served("default"), name="cheap", routes=ROUTE)).record
    paid_whole = (await ask(None, served("default"), name="cheap", routes=plain)).record
    for record, cost in ((fell_back, COSTS["default"]), (paid_whole, COSTS["flex"])):
        [recorded] = read_traffic([traffic.line(record)])
        verdict = ReplayPlanner(catalog(**sections)).predict(recorded)
        assert isinstance(verdict, WouldServe)
        assert verdict.cost_nano_usd == cost


def test_c53_c87_an_explanation_shows_the_tier_of_each_attempt() -> None:
    wanted = traffic.planning_request("cheap", 0, tier=None)
    small = catalog(models=TIERED, routes=ROUTE)
    survey = Planner(small).survey(wanted, now_s=NOW_S)
    shown = explain_plan(survey, wanted, small.sha, time_s=1.0, status=EndpointStatus())
    tiers = [(each.attempt, each.service_tier) for each in shown.candidates]
    assert tiers == [(1, "flex"), (2, None)]
    assert "near/t-1 (flex)" in "\n".join(render_explanation(shown.model_dump()))
