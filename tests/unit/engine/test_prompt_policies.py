"""A prompt policy leaves out every endpoint that does not state that it meets the policy.

Keeps C53, C58.
"""

from typing import Any, Final

import pytest
from msgspec.structs import replace

from tests import traffic
from tests.gateways import House, house, request_body
from tests.scripted import Scripted, answers
from tests.unit.engine.guardrails.homes import judge
from tests.unit.routing.catalogs import NOW_S, catalog, endpoint, model, provider, routing
from tollgate.core.errors import AccessError, ErrorCode, GatewayError, RequestError
from tollgate.core.principal import LimitLevel
from tollgate.core.prompt_policy import PromptPolicy, PromptUse, parse_policy
from tollgate.engine.generate import generate
from tollgate.routing.file.permissions import compile_permissions
from tollgate.routing.planning.planner import Planner
from tollgate.web.models.endpoint_status import EndpointStatus
from tollgate.web.models.model_shapes import model_endpoints
from tollgate.web.records.generation_shapes import GenerationObject
from tollgate.web.routing.explanation_shapes import explain_plan

PAGE: Final = {"source": "provider.example/privacy", "checked": "2026-11-21"}
CAREFUL: Final = {"training": "none", "retention_days": 0, **PAGE}
PROVIDERS: Final = {
    "near": provider(
        countries=("US",), prompt_use={"training": "none", "retention_days": 30, **PAGE}
    ),
    "far": provider(countries=("DE", "FR"), prompt_use=CAREFUL),
}
MODELS: Final = {"acme/both": model(endpoint("near", "n"), endpoint("far", "f"))}


async def ask(
    policy: str | None = None,
    *,
    team: str | None = None,
    sections: Any = None,
    **preferences: Any,
) -> House:
    """Serve one request with a key of this policy."""
    home = await house(
        near=Scripted(answers("Hello")),
        far=Scripted(answers("Hello")),
        **{"providers": PROVIDERS, "models": MODELS, **(sections or {})},
    )
    level = LimitLevel(level="team", id="search", prompt_policy=team)
    principal = replace(home.principal, key_policy=policy, levels=(level,) if team else ())
    body = request_body("acme/both", **({"provider": preferences} if preferences else {}))
    call = replace(
        home.call("acme/both", stream=False),
        parsed=home.ingress.parse(body),
        principal=principal,
    )
    await generate(home.gateway, call, home.sink(call, home.reply()))
    return home


async def refused(policy: str | None = None, **fields: Any) -> GatewayError:
    with pytest.raises(GatewayError) as found:
        await ask(policy, **fields)
    return found.value


async def test_c58_without_a_policy_the_first_endpoint_serves() -> None:
    assert (await ask()).record.provider == "near"


@pytest.mark.parametrize("policy", ["eu", "DE,FR", "no_retention", "eu,no_training,no_retention"])
async def test_c58_a_key_reaches_only_endpoints_that_meet_its_policy(policy: str) -> None:
    home = await ask(policy)
    assert home.record.provider == "far"
    assert home.near.requests == []
    assert home.record.trace.prompt_policies == (parse_policy(policy, "key"),)
    shown = GenerationObject.of(home.record).trace.prompt_policies
    assert shown[0].owner == "key"


async def test_c58_policies_of_team_key_request_and_gateway_all_apply() -> None:
    assert (await ask("no_training", team="eu")).record.provider == "far"
    assert (await ask(zdr=True)).record.provider == "far"
    assert (await ask(regions=["de", "FR"])).record.provider == "far"
    gateway = {"defaults": {"prompt_policy": {"regions": ("eu",), "training": "none"}}}
    assert (await ask(sections=gateway)).record.provider == "far"
    error = await refused("US", sections=gateway)
    assert isinstance(error, AccessError)


async def test_c58_a_refusal_names_what_was_left_out_and_why() -> None:
    error = await refused("eu,no_training", team="US")
    assert (type(error), error.code) == (AccessError, ErrorCode.MODEL_NOT_ALLOWED)
    of_key = "is not known to stay in eu, as the prompt policy of the key demands"
    of_team = "is not known to stay in US, as the prompt policy of the team demands"
    assert f"near/n {of_key}; far/f {of_team}" in error.message


async def test_c58_a_request_that_no_endpoint_may_serve_is_refused_with_its_field() -> None:
    error = await refused(regions=["CH"])
    assert (type(error), error.param) == (RequestError, "provider")


@pytest.mark.parametrize("demand", ["eu", "no_training", "no_retention"])
async def test_c58_what_a_provider_does_not_state_counts_as_no(demand: str) -> None:
    silent = {"near": provider(), "far": provider(prompt_use=PAGE)}
    error = await refused(demand, sections={"providers": silent})
    assert error.code is ErrorCode.MODEL_NOT_ALLOWED


async def test_c58_an_endpoint_may_state_another_use_than_its_provider() -> None:
    stored = {**endpoint("far", "f"), "prompt_use": {"retention_days": 30, **PAGE}}
    error = await refused("no_training", sections={"models": {"acme/both": model(stored)}})
    assert error.code is ErrorCode.MODEL_NOT_ALLOWED


def test_c58_a_bedrock_profile_counts_by_its_geography() -> None:
    rows = {"bedrock": {"codec": "bedrock", "transport": "bedrock_runtime", "region": "eu-west-1"}}
    for upstream, is_inside in (("eu.m", True), ("m", True), ("us.m", False), ("global.m", False)):
        small = catalog(
            providers=rows,
            models={"acme/m": model(endpoint("bedrock", upstream))},
            aliases={},
            routes={},
        )
        wanted = replace(
            traffic.planning_request("acme/m", 0), prompt_policies=(PromptPolicy(regions=("eu",)),)
        )
        assert (Planner(small).survey(wanted, now_s=NOW_S).plan is not None) is is_inside


def test_c53_c58_an_explanation_proves_what_is_left_out() -> None:
    small = catalog(providers=PROVIDERS, models=MODELS, aliases={}, routes={})
    policy = PromptPolicy(owner="key", no_retention=True)
    wanted = replace(traffic.planning_request("acme/both", 0, tier=None), prompt_policies=(policy,))
    survey = Planner(small).survey(wanted, now_s=NOW_S)
    shown = explain_plan(survey, wanted, small.sha, time_s=1.0, status=EndpointStatus())
    assert [each.removed for each in shown.candidates] == [
        "is not known to discard prompts, as the prompt policy of the key demands",
        None,
    ]


def test_c58_a_replay_takes_the_policy_of_the_new_catalog() -> None:
    strict = {"prompt_policy": {"retention": "none"}}
    before = catalog(providers=PROVIDERS, models=MODELS, aliases={}, routes={}, defaults=strict)
    after = catalog(providers=PROVIDERS, models=MODELS, aliases={}, routes={})
    wanted = traffic.planning_request("acme/both", 0, tier=None)
    plan = Planner(before).plan(wanted, now_s=NOW_S)
    assert [each.owner for each in plan.trace.prompt_policies] == ["gateway"]
    again = Planner(after).plan(type(wanted).recorded(plan.trace), now_s=NOW_S)
    assert again.attempts[0].target.provider == "near"


def test_c58_permissions_leave_out_what_the_gateways_policy_refuses() -> None:
    rows = {
        name: {"codec": "bedrock", "transport": "bedrock_runtime", "region": region}
        for name, region in (("ours", "eu-west-1"), ("theirs", "us-east-1"))
    }
    models = {"acme/m": model(endpoint("ours", "m"), endpoint("theirs", "m"))}
    sections: dict[str, Any] = {"providers": rows, "models": models, "aliases": {}, "routes": {}}
    assert len(compile_permissions(routing(**sections)).models) == 2
    inside = routing(**sections, defaults={"prompt_policy": {"regions": ("eu",)}})
    [arn] = compile_permissions(inside).models
    assert ":eu-west-1:" in arn


def test_c58_models_show_what_their_providers_state() -> None:
    small = catalog(providers=PROVIDERS, models=MODELS, aliases={}, routes={})
    shown = model_endpoints(small, "acme/both", EndpointStatus(), now_s=NOW_S).endpoints
    assert [(each.training, each.retention_days) for each in shown] == [("none", 30), ("none", 0)]


@pytest.mark.parametrize(
    ("policy", "team", "preferences"),
    [("DE,FR", None, {}), (None, "eu", {}), (None, None, {"regions": ["eu"]})],
)
async def test_c58_a_model_that_judges_is_under_the_same_policies(
    policy: str | None, team: str | None, preferences: dict[str, Any]
) -> None:
    """Its endpoint is in the US, and a guardrail that cannot judge refuses."""
    judged = {
        "guardrails": {"judge": {"stages": ("input",), **judge()}},
        "models": {**MODELS, "acme/judge": model(endpoint("near", "judge-1"))},
    }
    error = await refused(policy, team=team, sections=judged, **preferences)
    assert (error.code, "judge could not judge" in error.message) == (
        ErrorCode.PROVIDER_UNAVAILABLE,
        True,
    )


@pytest.mark.parametrize("text", ["europe", "eu,", "", "eu,no_train", "XX", "UK"])
def test_c58_an_unknown_region_is_no_policy(text: str) -> None:
    with pytest.raises(ValueError, match="is neither eu nor"):
        parse_policy(text, "key")


def test_c58_a_place_outside_the_countries_is_refused() -> None:
    policy = parse_policy(" eu , ch ", "key")
    assert policy is not None
    assert policy.refuse(PromptUse(), "", ("DE", "CH")) is None
    assert policy.refuse(PromptUse(), "", ("DE", "US")) is not None
