"""What a caller, a key's tier and a route's own settings do to a plan.

Keeps C11, C13, C19, C50, C51, C53, C55, C61, C62.
"""

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.unit.routing.catalogs import (
    NOW_S,
    catalog,
    endpoint,
    model,
    plan_of,
    principal,
    provider,
    request,
)
from tollgate.core.content import Audio, Document, Image, InlineMedia
from tollgate.core.errors import AccessError, ErrorCode, GatewayError, RequestError
from tollgate.core.request import PriceCeiling, Sampling, UserMessage
from tollgate.providers.ports.base import Guardrail
from tollgate.routing.planning.catalog import Catalog
from tollgate.routing.planning.plan import Plan
from tollgate.routing.planning.planner import Planner, Survey
from tollgate.routing.planning.planning_request import PlanningRequest

PICTURE = Image(source=InlineMedia(media_type="image/png", base64="A" * 4_000_000))


def three_offers(**first: object) -> Catalog:
    """A model that three providers serve, at 3, 1 and 2 dollars."""
    return catalog(
        providers={"near": provider(), "far": provider(), "off": provider()},
        models={
            "acme/large": model(
                endpoint("near", "n", dollars_in="3", dollars_out="3") | first,
                endpoint("far", "f", dollars_in="1", dollars_out="1"),
                endpoint("off", "o", dollars_in="2", dollars_out="2"),
            ),
            "acme/small": model(endpoint("near", "s")),
        },
        aliases={"big": {"to": "acme/large"}, "bigger": {"to": "big"}},
        routes={},
    )


def weighted(*weights: int) -> Catalog:
    """A model whose endpoints are drawn, and a route whose models are."""
    offers = [
        endpoint("near", f"e{number}") | {"weight": weight} for number, weight in enumerate(weights)
    ]
    return catalog(
        models={"acme/large": model(*offers), "acme/small": model(endpoint("far", "s"))},
        aliases={},
        routes={
            "mixed": {
                "description": "Drawn",
                "try": ({"acme/large": 70, "acme/small": 30},),
            }
        },
    )


def planned(name: str = "acme/large", of: Catalog | None = None, **wishes: Any) -> list[str]:
    return providers(plan_of(of or three_offers(), request(name, **wishes), principal=principal()))


def providers(plan: Plan) -> list[str]:
    return [attempt.target.provider for attempt in plan.attempts]


def surveyed(of: Catalog, asked: Any, **key: Any) -> Survey:
    wanted = PlanningRequest.of(asked, principal=principal(**key), request_id="r-1")
    return Planner(of).survey(wanted, now_s=NOW_S)


def reasons(survey: Survey) -> list[str | None]:
    return [each.exclusion.reason if each.exclusion else None for each in survey.candidates]


def refused(of: Catalog, asked: Any, **key: Any) -> GatewayError:
    with pytest.raises(GatewayError) as refusal:
        plan_of(of, asked, principal=principal(**key))
    return refusal.value


# The caller's wishes.


@pytest.mark.parametrize(
    ("wishes", "expected"),
    [
        ({}, ["near", "far", "off"]),
        ({"order": ("off", "far")}, ["off", "far", "near"]),
        ({"order": ("off", "nobody", "off")}, ["off", "near", "far"]),
        ({"only": ("far", "near")}, ["near", "far"]),
        ({"ignore": ("near",)}, ["far", "off"]),
        ({"fallbacks": False}, ["near"]),
        ({"fallbacks": False, "order": ("off", "far")}, ["off", "far"]),
        ({"fallbacks": False, "ignore": ("near",)}, ["far"]),
        ({"sort": "price"}, ["far", "off", "near"]),
        ({"sort": "price", "order": ("near",)}, ["near", "far", "off"]),
        ({"price_max": PriceCeiling(input=2)}, ["far", "off"]),
        ({"price_max": PriceCeiling(output=1)}, ["far"]),
        ({"price_max": PriceCeiling(request=0)}, ["near", "far", "off"]),
    ],
)
def test_c19_the_callers_wishes_choose_among_endpoints(
    wishes: dict[str, Any], expected: list[str]
) -> None:
    assert planned(**wishes) == expected


def test_c19_models_of_the_request_are_tried_after_its_own() -> None:
    assert planned("acme/small", models=("bigger", "acme/small")) == ["near", "near", "far", "off"]


def test_c19_an_unknown_name_among_models_is_not_found() -> None:
    error = refused(three_offers(), request("acme/small", models=("acme/smal",)))
    assert (error.code, error.param) == (ErrorCode.MODEL_NOT_FOUND, "models")


def test_c19_wishes_that_leave_nothing_are_told_with_each_reason() -> None:
    error = refused(three_offers(), request("acme/large", only=("off",), ignore=("off",)))
    assert (error.code, error.param) == (ErrorCode.INVALID_REQUEST, "provider")
    assert "near/n is not in provider.only" in error.message
    assert "off/o is in provider.ignore" in error.message


@pytest.mark.parametrize(
    "stated",
    [
        {"sampling": Sampling(seed=1)},
        {"sampling": Sampling(logprobs=True)},
        {"sampling": Sampling(logprobs=True, top_logprobs=2)},
    ],
)
def test_c13_who_cannot_take_every_parameter_is_left_out_if_that_is_required(
    stated: dict[str, Any],
) -> None:
    picky = three_offers(dialect={"refuses": ("logprobs", "seed")})
    asked = replace(request("acme/large"), **stated)
    required = replace(asked, preferences=replace(asked.preferences, require_parameters=True))
    assert providers(plan_of(picky, asked, principal=principal())) == ["near", "far", "off"]
    assert providers(plan_of(picky, required, principal=principal())) == ["far", "off"]


def test_aliases_may_lead_to_aliases() -> None:
    assert planned("bigger") == ["near", "far", "off"]


# Draws.


def test_c53_endpoints_with_weights_are_drawn_for_each_request() -> None:
    drawn = weighted(75, 25)
    first = Counter(
        plan_of(drawn, request("acme/large"), principal=principal(), request_id=f"r-{number}")
        .attempts[0]
        .target.upstream_model
        for number in range(4_000)
    )
    assert first["e0"] / 4_000 == pytest.approx(0.75, abs=0.025)


def test_c53_requests_of_a_session_go_to_the_same_endpoint() -> None:
    firsts = {
        plan_of(
            weighted(50, 50),
            request("mixed", session_id="s-1"),
            principal=principal(),
            request_id=f"r-{number}",
        )
        .attempts[0]
        .target.endpoint_id
        for number in range(50)
    }
    assert len(firsts) == 1


def test_c53_a_published_change_of_something_else_draws_nobody_again() -> None:
    one = weighted(50, 50)
    other = replace(one, sha="0" * 64)
    for number in range(50):
        asked = {"principal": principal(), "request_id": f"r-{number}"}
        before = plan_of(one, request("mixed"), **asked)
        assert plan_of(other, request("mixed"), **asked).attempts == before.attempts


def test_c53_the_model_that_was_not_drawn_is_the_next_and_the_plan_shows_the_draw() -> None:
    candidates = surveyed(weighted(50, 50), request("mixed")).candidates
    assert {each.attempt.target.model for each in candidates} == {"acme/large", "acme/small"}
    draws = [each.model_draw for each in candidates]
    assert draws == sorted(draws, key=lambda draw: -(draw or 0))
    assert {each.model_weight for each in candidates} == {70, 30}
    assert {each.weight for each in candidates} == {50, None}


@given(st.integers(0, 10_000))
def test_a_recorded_request_is_planned_again_as_it_was(number: int) -> None:
    asked = request("mixed", order=("far",), session_id="s", size_bytes=number, metadata={"a": "b"})
    wanted = PlanningRequest.of(asked, principal=principal(models=("*",)), request_id=f"r-{number}")
    planner = Planner(weighted(60, 40))
    plan = planner.plan(wanted, now_s=NOW_S)
    again = planner.plan(PlanningRequest.recorded(plan.trace), now_s=NOW_S)
    assert again.attempts == plan.attempts
    assert again.cost_max_nano_usd == plan.cost_max_nano_usd
    assert again.trace == plan.trace
    assert plan.trace.preferences is not None
    assert plan.trace.preferences.session_id is None


# Filters.


@pytest.mark.parametrize(
    ("part", "code"),
    [
        (PICTURE, ErrorCode.IMAGE_NOT_SUPPORTED),
        (
            Audio(source=InlineMedia(media_type="audio/wav", base64=""), format="wav"),
            ErrorCode.AUDIO_NOT_SUPPORTED,
        ),
        (
            Document(source=InlineMedia(media_type="application/pdf", base64="")),
            ErrorCode.FILE_NOT_SUPPORTED,
        ),
    ],
)
def test_c11_a_modality_that_no_model_takes_is_named(part: Any, code: ErrorCode) -> None:
    asked = replace(request("acme/large"), messages=(UserMessage(content=(part,)),))
    assert refused(three_offers(), asked).code is code


def test_c11_the_next_model_that_takes_a_modality_serves() -> None:
    seeing = catalog(
        models={
            "acme/blind": model(endpoint("near", "b")),
            "acme/seeing": model(endpoint("far", "s"), input=("text", "image")),
        },
        aliases={},
        routes={"see": {"description": "Blind first", "try": ("acme/blind", "acme/seeing")}},
    )
    asked = replace(
        request("see", size_bytes=4_000_300), messages=(UserMessage(content=(PICTURE,)),)
    )
    survey = surveyed(seeing, asked)
    assert survey.plan is not None
    assert providers(survey.plan) == ["far"]
    assert reasons(survey) == ["does not take image input", None]


def test_c51_the_bytes_of_a_picture_are_not_counted_as_text() -> None:
    asked = replace(
        request("acme/large", size_bytes=4_000_300), messages=(UserMessage(content=(PICTURE,)),)
    )
    wanted = PlanningRequest.of(asked, principal=principal(), request_id="r-1")
    assert wanted.input_tokens_min == 50
    assert wanted.input_tokens < 2_000
    assert wanted.input_tokens_max < 10_000


# Tiers.


def tiers(**tier: object) -> Catalog:
    return catalog(key_tiers={"free": tier, "team": {}})


def test_c61_a_tier_names_the_models_its_keys_may_use() -> None:
    free = tiers(models=("acme/small",))
    plan = plan_of(free, request("smart"), principal=principal(tier="free"))
    assert {attempt.target.model for attempt in plan.attempts} == {"acme/small"}
    with pytest.raises(AccessError) as not_allowed:
        plan_of(free, request("acme/large"), principal=principal(tier="free"))
    assert not_allowed.value.code is ErrorCode.MODEL_NOT_ALLOWED
    assert not_allowed.value.message == "The tier of this key may not use acme/large."
    assert len(plan_of(free, request("smart"), principal=principal(tier="team")).attempts) == 4


def test_c61_a_request_that_may_cost_more_than_the_tier_allows_is_refused() -> None:
    free = tiers(max_cost_usd_per_request="0.01")
    error = refused(free, request("acme/large", output_tokens_max=4_000), tier="free")
    assert error.code is ErrorCode.KEY_LIMIT_EXCEEDED
    assert "max_tokens" in error.message
    plan = plan_of(
        free, request("acme/large", output_tokens_max=100), principal=principal(tier="free")
    )
    assert plan.cost_max_nano_usd <= 10_000_000


def test_c62_a_tier_that_is_not_defined_allows_nothing() -> None:
    assert refused(tiers(), request("acme/large"), tier="gone").code is ErrorCode.MODEL_NOT_ALLOWED


# Settings of routes and endpoints.


def test_c55_a_guardrail_of_the_route_holds_where_the_endpoint_has_none() -> None:
    guarded = catalog(
        models={
            "acme/large": model(
                endpoint("near", "n") | {"guardrail": {"id": "own", "version": "1"}},
                endpoint("far", "f"),
            )
        },
        aliases={},
        routes={
            "safe": {
                "description": "Guarded",
                "try": ("acme/large",),
                "guardrail": {"id": "route", "version": "DRAFT"},
            }
        },
    )
    plan = plan_of(guarded, request("safe"), principal=principal())
    assert [attempt.target.guardrail for attempt in plan.attempts] == [
        Guardrail(id="own", version="1"),
        Guardrail(id="route", version="DRAFT"),
    ]
    direct = plan_of(guarded, request("acme/large"), principal=principal())
    assert direct.attempts[1].target.guardrail is None


def test_an_endpoint_replaces_single_keys_of_the_timeouts_and_of_the_dialect() -> None:
    special = three_offers(
        timeouts={"idle_s": 7}, dialect={"tool_call_id_length": 9, "reasoning_field": None}
    )
    first, second, _ = plan_of(special, request("acme/large"), principal=principal()).attempts
    assert (first.timeouts.idle_s, first.timeouts.connect_s) == (7.0, 10.0)
    assert second.timeouts.idle_s == 120.0
    assert first.target.dialect.tool_call_id_length == 9
    assert first.target.dialect.refuses == second.target.dialect.refuses


def test_c50_a_route_says_how_often_to_retry_on_which_error() -> None:
    patient = catalog(
        defaults={"retry": {"retries_max": 1, "backoff_max_s": 9}},
        routes={
            "smart": {
                "description": "Impatient when busy",
                "try": ("acme/large",),
                "retry": {"retries_max_by_error": {"provider_overloaded": 0}},
            }
        },
        aliases={},
    )
    retry = plan_of(patient, request("smart"), principal=principal()).attempts[0].retry
    assert retry.retries_max_on(ErrorCode.PROVIDER_OVERLOADED) == 0
    assert retry.retries_max_on(ErrorCode.PROVIDER_UNAVAILABLE) == 1
    assert retry.backoff_max_s == 9.0


# What explain shows.


def test_c51_resting_endpoints_move_to_the_end_and_stay() -> None:
    plan = plan_of(three_offers(), request("acme/large"), principal=principal())
    assert providers(plan.resting_last({"near/n"})) == ["far", "off", "near"]
    assert providers(plan.resting_last({"near/n", "far/f", "off/o"})) == ["near", "far", "off"]
    assert plan.resting_last(()) is plan


def test_c53_a_survey_of_a_refused_request_still_shows_what_removed_each() -> None:
    survey = surveyed(catalog(), request("smart", tools=True, size_bytes=1_000_000))
    assert survey.plan is None
    assert isinstance(survey.refusal, RequestError)
    assert reasons(survey) == [
        "does not support tools",
        "takes 100000 tokens",
        "takes 100000 tokens",
        "takes 100000 tokens",
    ]


def test_the_bound_is_for_every_choice_that_is_asked_for() -> None:
    one = request("acme/large", output_tokens_max=10)
    bounds = [
        plan_of(catalog(), replace(one, choices=n), principal=principal()).cost_max_nano_usd
        for n in (1, 3)
    ]
    assert bounds[1] == 3 * bounds[0]
