"""From a request to its attempts.

Keeps C12, C16, C19, C41, C50, C51, C52, C61.
"""

import pytest
from msgspec.structs import replace

from tests.unit.routing.catalogs import (
    catalog,
    endpoint,
    model,
    plan_of,
    principal,
    provider,
    request,
    routing,
)
from tollgate.core.errors import AccessError, ErrorCode, RequestError
from tollgate.core.records.generation import total_nano_usd
from tollgate.core.request import SchemaOutput
from tollgate.core.usage import Usage
from tollgate.routing.chains import RetrySection
from tollgate.routing.planning.output_limit import with_slack
from tollgate.routing.planning.plan import Plan
from tollgate.routing.price import bill

LARGE = ["near/large-1", "far/L"]
SMALL = ["near/small-1"]
TOOLS = ["far/T"]


def planned(name: str, **changes: object) -> Plan:
    tools = bool(changes.pop("tools", False))
    return plan_of(
        catalog(),
        request(name, tools=tools),
        principal=principal(models=changes.pop("models", None)),  # type: ignore[arg-type]
        request_id="r-1",
        fallbacks=bool(changes.pop("fallbacks", True)),
    )


def endpoints(plan: Plan) -> list[str]:
    return [attempt.target.endpoint_id for attempt in plan.attempts]


@pytest.mark.parametrize(
    ("name", "expected", "route"),
    [
        ("acme/large", LARGE, None),
        ("gpt-4o", SMALL, None),
        ("smart", SMALL + LARGE + TOOLS, "smart"),
        ("best", SMALL + LARGE + TOOLS, "smart"),
        ("tensorzero::model_name::acme/large", LARGE, None),
        ("tensorzero::function_name::smart", SMALL + LARGE + TOOLS, "smart"),
    ],
)
def test_c19_a_model_is_named_by_slug_alias_route_or_tensorzero_form(
    name: str, expected: list[str], route: str | None
) -> None:
    plan = planned(name)
    assert endpoints(plan) == expected
    assert plan.trace.route == route
    assert plan.trace.requested_model == name


@pytest.mark.parametrize("name", ["acme/larg", "tensorzero::model_name::acme/larg"])
def test_c19_an_unknown_model_is_not_found_and_the_nearest_name_is_told(name: str) -> None:
    with pytest.raises(RequestError) as refused:
        planned(name)
    assert refused.value.code is ErrorCode.MODEL_NOT_FOUND
    assert refused.value.param == "model"
    assert "Did you mean acme/large" in refused.value.message


def test_c19_a_name_like_no_other_gets_no_suggestion() -> None:
    with pytest.raises(RequestError, match=r"named zzz\.$"):
        planned("zzz")


def test_an_absurdly_long_name_is_neither_compared_nor_repeated_whole() -> None:
    with pytest.raises(RequestError) as refused:
        planned("acme/large" * 100_000)
    assert len(refused.value.message) < 300


@pytest.mark.parametrize("name", ["", "acme", "smart ", "acme/large\n", "\ud800", "*"])
def test_c19_odd_names_are_not_found(name: str) -> None:
    with pytest.raises(RequestError) as refused:
        planned(name)
    assert refused.value.code is ErrorCode.MODEL_NOT_FOUND


def test_c50_endpoints_of_a_model_come_in_order_before_the_next_model() -> None:
    assert endpoints(planned("smart")) == SMALL + LARGE + TOOLS


def test_c50_by_default_the_seven_errors_move_on_to_the_next_attempt() -> None:
    seven = {
        "provider_rate_limit",
        "provider_overloaded",
        "provider_unavailable",
        "provider_timeout",
        "provider_auth",
        "context_length_exceeded",
        "content_filter",
    }
    assert planned("smart").next_on == seven
    assert planned("acme/large").next_on == seven


def test_c50_a_route_may_name_the_errors_it_moves_on_for() -> None:
    routes = {
        "smart": {
            "description": "One error only",
            "try": ("acme/small", "acme/large"),
            "next_on": ("provider_timeout",),
        }
    }
    plan = plan_of(catalog(routes=routes), request("smart"), principal=principal())
    assert plan.next_on == {ErrorCode.PROVIDER_TIMEOUT}


def test_c50_an_attempt_carries_the_limits_of_the_file() -> None:
    defaults = {
        "timeouts": {"connect_s": 3, "first_token_s": 30, "idle_s": 40},
        "retry": {"retries_max": 1, "backoff_min_s": 1, "backoff_max_s": 2},
    }
    plan = plan_of(catalog(defaults=defaults), request("acme/large"), principal=principal())
    attempt = plan.attempts[0]
    assert (attempt.timeouts.connect_s, attempt.timeouts.first_token_s) == (3.0, 30.0)
    assert attempt.timeouts.idle_s == 40.0
    assert attempt.retry == RetrySection(retries_max=1, backoff_min_s=1.0, backoff_max_s=2.0)


def test_a_target_has_the_providers_name_and_dialect_and_the_models_limit() -> None:
    target = planned("acme/large").attempts[1].target
    assert (target.provider, target.model, target.upstream_model) == ("far", "acme/large", "L")
    assert target.dialect.developer_role
    assert target.output_tokens_max == 10_000


def test_c51_models_that_cannot_call_tools_are_left_out_when_tools_are_asked_for() -> None:
    assert endpoints(planned("smart", tools=True)) == LARGE + TOOLS


def test_c51_a_chain_that_cannot_call_tools_is_refused_by_what_it_lacks() -> None:
    with pytest.raises(RequestError, match=r"acme/small does not support tools") as refused:
        planned("acme/small", tools=True)
    assert refused.value.code is ErrorCode.INVALID_REQUEST


def test_c51_models_whose_context_is_too_small_for_sure_are_left_out() -> None:
    plan = plan_of(catalog(), request("smart", size_bytes=6_006), principal=principal())
    assert endpoints(plan) == LARGE + TOOLS


def test_c51_in_doubt_the_provider_decides_whether_a_prompt_fits() -> None:
    plan = plan_of(catalog(), request("acme/small", size_bytes=6_005), principal=principal())
    assert endpoints(plan) == SMALL


def test_c51_a_prompt_that_fits_no_model_is_context_length_exceeded() -> None:
    with pytest.raises(RequestError) as refused:
        plan_of(
            catalog(),
            request("smart", size_bytes=1_000_000),
            principal=principal(),
            request_id="r-1",
        )
    assert refused.value.code is ErrorCode.CONTEXT_LENGTH_EXCEEDED
    assert "100000" in refused.value.message


def test_c52_without_fallbacks_the_first_model_is_kept_with_all_its_endpoints() -> None:
    routes = {"smart": {"description": "Large first", "try": ("acme/large", "acme/small")}}
    plan = plan_of(
        catalog(routes=routes),
        request("smart"),
        principal=principal(),
        request_id="r-1",
        fallbacks=False,
    )
    assert endpoints(plan) == LARGE


def test_c52_without_fallbacks_no_other_model_steps_in_for_a_filtered_one() -> None:
    with pytest.raises(RequestError) as refused:
        planned("smart", tools=True, fallbacks=False)
    assert refused.value.code is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("globs", "name", "expected"),
    [
        (("*",), "smart", SMALL + LARGE + TOOLS),
        (("acme/*",), "smart", SMALL + LARGE),
        (("acme/large",), "smart", LARGE),
        (("smart",), "smart", SMALL + LARGE + TOOLS),
        (("gpt-*",), "gpt-4o", SMALL),
        (("acme/small",), "gpt-4o", SMALL),
        (("acme/large",), "tensorzero::model_name::acme/large", LARGE),
    ],
)
def test_c61_a_key_uses_the_models_its_globs_name_or_a_name_that_leads_to_them(
    globs: tuple[str, ...], name: str, expected: list[str]
) -> None:
    assert endpoints(planned(name, models=globs)) == expected


@pytest.mark.parametrize(
    ("globs", "name"),
    [((), "smart"), (("smart",), "acme/large"), (("acme/large",), "acme/small"), (("a",), "best")],
)
def test_c41_a_key_without_the_model_is_refused(globs: tuple[str, ...], name: str) -> None:
    with pytest.raises(AccessError) as refused:
        planned(name, models=globs)
    assert refused.value.code is ErrorCode.MODEL_NOT_ALLOWED


def test_c41_without_fallbacks_a_key_must_be_allowed_the_first_model() -> None:
    with pytest.raises(AccessError):
        planned("smart", models=("acme/large",), fallbacks=False)


def cost_max(name: str, **sizes: int) -> int:
    asked = request(
        name,
        size_bytes=sizes["size_bytes"],
        output_tokens_max=sizes.get("output_tokens_max"),
    )
    plan = plan_of(catalog(), asked, principal=principal())
    return plan.cost_max_nano_usd


def test_the_bound_is_that_of_the_dearest_attempt() -> None:
    # 500 tokens of prompt at 4 dollars, 100 of output and 76 of slack at 20, and 5 for rounding.
    assert cost_max("acme/large", size_bytes=1_000, output_tokens_max=100) == 5_520_005


def test_the_bound_is_that_of_the_dearest_price_a_prompt_may_turn_out_to_have() -> None:
    overrides = (
        {"when": {"prompt_tokens_over": 100}, "price": {"output": 30}},
        {"when": {"prompt_tokens_over": 200}, "price": {"output": 5}},
    )
    offer = endpoint("near", "large-1") | {"overrides": overrides}
    tiered = catalog(models={"acme/large": model(offer)}, aliases={}, routes={})
    bounds = [
        plan_of(
            tiered,
            request("acme/large", size_bytes=2 * tokens, output_tokens_max=10),
            principal=principal(),
        ).cost_max_nano_usd
        for tokens in (100, 101, 300)
    ]
    # Dollars per million are thousands of nano-dollars per token; 5 are for rounding.
    output = with_slack(10)
    assert bounds == [
        100 * 1_000 + output * 2_000 + 5,
        101 * 1_000 + output * 30_000 + 5,
        300 * 1_000 + output * 30_000 + 5,
    ]


def test_c12_the_bound_caps_the_callers_limit_at_the_models() -> None:
    at_the_limit = cost_max("acme/small", size_bytes=0, output_tokens_max=100)
    assert cost_max("acme/small", size_bytes=0, output_tokens_max=1_000_000) == at_the_limit


def test_the_bound_has_a_picture_for_every_choice() -> None:
    offer, painter = endpoint("near", "large-1"), endpoint("near", "large-1", image="0.04")
    asked = replace(request("acme/large", size_bytes=0, output_tokens_max=0), choices=3)
    bounds = [
        plan_of(
            catalog(models={"acme/large": model(it)}, aliases={}, routes={}),
            asked,
            principal=principal(),
        ).cost_max_nano_usd
        for it in (offer, painter)
    ]
    # And the rounding of its line.
    assert bounds[1] - bounds[0] == 3 * (40_000_000 + 1)


def test_without_a_limit_the_bound_takes_the_tokens_to_hold_by_default() -> None:
    assert cost_max("acme/large", size_bytes=0) == 4_096 * 20_000 + 5
    assert cost_max("acme/small", size_bytes=0) == 100 * 2_000 + 5


def test_the_bound_covers_a_prompt_of_two_bytes_a_token_but_no_more_than_the_context() -> None:
    full_context = 1_000 * 1_000 + 100 * 2_000 + 5
    assert cost_max("acme/small", size_bytes=1) == 1 * 1_000 + 100 * 2_000 + 5
    assert cost_max("acme/small", size_bytes=2_000) == full_context
    assert cost_max("acme/small", size_bytes=6_000) == full_context


def test_the_bound_is_never_below_the_bill_of_any_attempt() -> None:
    plan = plan_of(
        catalog(),
        request("smart", size_bytes=600, output_tokens_max=50),
        principal=principal(),
        request_id="r-1",
    )
    usage = Usage(uncached_input_tokens=100, cache_read_input_tokens=200, output_tokens=50)
    for attempt in plan.attempts:
        assert total_nano_usd(bill(usage, attempt.prices.base)) <= plan.cost_max_nano_usd


def test_the_trace_keeps_what_a_replay_needs_and_no_request_id() -> None:
    plan = plan_of(
        catalog(),
        request("smart", tools=True, size_bytes=4_000, output_tokens_max=7),
        principal=principal(tier="team"),
        request_id="r-1",
    )
    assert plan.trace.tier == "team"
    assert plan.trace.capabilities == ("tools",)
    # The tool has a name and no parameters: ten bytes.
    assert plan.trace.estimated_input_tokens == 1_000 + 3
    assert plan.trace.output_tokens_max == 7
    assert plan.trace.rule is None
    assert len(plan.trace.draw_key_hash) == 16
    assert "r-1" not in plan.trace.draw_key_hash


def test_a_plan_names_the_catalog_it_was_made_with() -> None:
    one = catalog()
    assert plan_of(one, request("smart"), principal=principal()).catalog_sha == one.sha


def test_a_plan_is_the_same_every_time() -> None:
    assert planned("smart") == planned("smart")


def test_the_catalog_offers_rows_with_references_to_keys() -> None:
    rows = catalog().providers
    assert rows["near"].key is not None
    assert rows["near"].key.env == "NEAR_API_KEY"
    assert rows["near"].key.secret == "tollgate/near"
    assert rows["near"].base_url == "https://provider.example/v1"
    assert rows["far"].key is None


def test_a_sections_order_does_not_reach_a_plan() -> None:
    models = {
        "b/two": model(endpoint("near", "2")),
        "a/one": model(endpoint("near", "1")),
    }
    routes = {"smart": {"description": "Two first", "try": ("b/two", "a/one")}}
    changed = catalog(models=models, routes=routes, aliases={}, providers={"near": provider()})
    plan = plan_of(changed, request("smart"), principal=principal())
    assert endpoints(plan) == ["near/2", "near/1"]
    assert routing().models.keys() == catalog().models.keys()


def test_what_a_model_can_do_and_take_in_reaches_its_targets() -> None:
    pictures = {
        "acme/m": model(endpoint("near", "m"), supports=("tools",), input=("text", "image"))
    }
    plan = plan_of(
        catalog(models=pictures, aliases={}, routes={}), request("acme/m"), principal=principal()
    )
    (attempt,) = plan.attempts
    assert attempt.target.supports == {"tools"}
    assert attempt.target.input == {"text", "image"}


def test_an_endpoint_departs_from_its_row_only_in_what_it_states() -> None:
    departing = {**endpoint("far", "L"), "dialect": {"refuses": ("temperature",)}}
    content = catalog(
        models={"acme/m": model(departing, endpoint("far", "M"))}, aliases={}, routes={}
    )
    plan = plan_of(content, request("acme/m"), principal=principal())
    first, second = (attempt.target.dialect for attempt in plan.attempts)
    assert first.refuses == ("temperature",)
    assert "temperature" not in second.refuses
    assert first.developer_role
    assert second.developer_role


def test_c16_tools_are_enough_for_structured_output() -> None:
    output = SchemaOutput(name="city", schema={"type": "object"})
    wanted = replace(request("smart"), output_format=output)
    plan = plan_of(catalog(), wanted, principal=principal())
    assert endpoints(plan) == LARGE + TOOLS
    with pytest.raises(RequestError, match="structured_output"):
        plan_of(catalog(), replace(wanted, model="acme/small"), principal=principal())
