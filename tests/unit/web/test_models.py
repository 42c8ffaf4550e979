"""Models and their endpoints: who serves what, at which price, with which parameters.

Keeps C3, C41.
"""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from tests.stores import TESTER
from tests.unit.routing.catalogs import endpoint, model
from tests.unit.web.test_api_app import Api, api
from tollgate.core.content import Text
from tollgate.core.request import GenerationRequest, Sampling, Tool, UserMessage
from tollgate.core.routing.endpoint_status import AnswerTime, CooldownPolicy
from tollgate.providers.ports.base import Target
from tollgate.providers.ports.dialect import Dialect
from tollgate.providers.ports.formats import WIRE_FORMATS, codec_of
from tollgate.providers.ports.parameters import PARAMETERS
from tollgate.routing.planning.planning_request import PlanningRequest
from tollgate.stores.ports.administration import NewKey

LARGE = "/v1/models/acme/large"
SAMPLING: dict[str, Any] = {
    "frequency_penalty": 0.1,
    "logit_bias": {1: 1.0},
    "logprobs": True,
    "min_p": 0.1,
    "presence_penalty": 0.1,
    "repetition_penalty": 1.1,
    "seed": 1,
    "stop": ("x",),
    "temperature": 0.5,
    "top_k": 3,
    "top_p": 0.5,
}
REQUEST: dict[str, Any] = {
    "parallel_tool_calls": {"parallel_tool_calls": False, "tools": (Tool(name="t"),)},
    "top_logprobs": {"sampling": Sampling(logprobs=True, top_logprobs=2)},
    "service_tier": {"service_tier": "default"},
    "prompt_cache_key": {"prompt_cache_key": "p"},
    "user": {"user": "u"},
}


async def dated(**overridden: Any) -> Api:
    """One model whose price depends on the day, with two endpoints."""
    first = {
        **endpoint("near", "n", dollars_in="2", dollars_out="8"),
        "overrides": (
            {"when": {"from": "2001-11-01"}, "price": {"input": Decimal(3)}},
            {
                "when": {"prompt_tokens_over": 200000},
                "price": {"input": Decimal(6), "output": Decimal(9)},
            },
        ),
    }
    sections = {"models": {"acme/large": model(first, endpoint("far", "f"), **overridden)}}
    return await api(**sections, aliases={"big": {"to": "acme/large"}}, routes={})


async def test_c3_models_without_a_key_are_all_and_with_one_those_it_may_use() -> None:
    call = await api()
    everything = (await call("GET", "/v1/models")).json
    assert everything["object"] == "list"
    assert [model["id"] for model in everything["data"]] == [
        "acme/large",
        "acme/small",
        "other/tools",
        "smart",
        "best",
        "gpt-4o",
    ]
    new = NewKey(workspace_id="acme", label="x", models=("acme/*", "nobody/*"))
    secret = (await call.home.stores.keys.create(new, by=TESTER)).secret
    mine = (await call("GET", "/v1/models", key=secret)).json["data"]
    assert [(entry["id"], entry["kind"], entry.get("models")) for entry in mine] == [
        ("acme/large", "model", None),
        ("acme/small", "model", None),
        ("smart", "route", ["acme/small", "acme/large"]),
        ("best", "alias", ["acme/small", "acme/large"]),
        ("gpt-4o", "alias", None),
    ]
    assert (await call("GET", "/v1/models", key="sk-tg-nobody")).status == 401
    [large] = [model for model in mine if model["id"] == "acme/large"]
    assert large["pricing"]["prompt"] == "0.000003"
    assert "tools" in large["supported_parameters"]


async def test_c3_prices_are_plain_decimals_however_small() -> None:
    call = await api(
        models={"acme/tiny": model(endpoint("near", "t", dollars_in="0.000001", dollars_out="0"))},
        aliases={},
        routes={},
    )
    pricing = (await call("GET", "/v1/models")).json["data"][0]["pricing"]
    assert (pricing["prompt"], pricing["completion"]) == ("0.000000000001", "0")


async def test_c3_endpoints_need_no_key_and_are_in_order_of_preference() -> None:
    reply = await (await dated(input=("text", "pdf"), supports=("tools", "reasoning")))(
        "GET", f"{LARGE}/endpoints"
    )
    shown = reply.json["data"]
    assert (shown["id"], shown["name"]) == ("acme/large", "A model")
    assert shown["architecture"]["input_modalities"] == ["text", "file"]
    assert shown["architecture"]["modality"] == "text+file->text"
    assert [(it["provider_name"], it["status"]) for it in shown["endpoints"]] == [
        ("near", 0),
        ("far", 0),
    ]
    near = shown["endpoints"][0]
    assert (near["context_length"], near["max_completion_tokens"]) == (100_000, 10_000)
    assert {"tools", "reasoning", "max_tokens", "seed"} <= set(near["supported_parameters"])
    assert "top_k" not in near["supported_parameters"]


async def test_c3_prices_are_those_of_now_with_every_change_that_is_planned() -> None:
    call = await dated()
    near = (await call("GET", f"{LARGE}/endpoints")).json["data"]["endpoints"][0]
    assert (near["pricing"]["prompt"], near["pricing"]["completion"]) == ("0.000003", "0.000008")
    [from_a_day, over_a_size] = near["pricing_overrides"]
    assert from_a_day["since"] == "2001-11-01"
    assert (over_a_size["prompt_tokens_over"], over_a_size["pricing"]["completion"]) == (
        200_000,
        "0.000009",
    )
    assert (await call("GET", LARGE)).json["pricing"] == near["pricing"]


async def test_c3_an_endpoint_that_rests_after_failures_says_so() -> None:
    call = await dated()
    policy = CooldownPolicy()
    for _ in range(policy.after_failures):
        await call.home.stores.cooldowns.count_failure("far/f", policy)
    listed = (await call("GET", f"{LARGE}/endpoints")).json["data"]["endpoints"]
    assert [it["status"] for it in listed] == [0, -1]


async def test_c3_an_endpoint_that_was_measured_says_how_fast_it_is() -> None:
    call = await dated()
    times = AnswerTime(first_token_ms=420, output_tokens=50, output_ms=3_000)
    call.home.stores.cooldowns.add_answer("far/f", times)
    await call.home.stores.cooldowns.write_speed("far/f")
    near, far = (await call("GET", f"{LARGE}/endpoints")).json["data"]["endpoints"]
    assert (far["latency_ms"], far["tokens_per_s"]) == (420, 16.7)
    assert not {"latency_ms", "tokens_per_s"} & near.keys()


async def test_c3_one_model_is_shown_as_in_the_list() -> None:
    call = await api()
    [listed] = [it for it in (await call("GET", "/v1/models")).json["data"] if "large" in it["id"]]
    assert (await call("GET", LARGE)).json == listed
    assert listed["top_provider"] == {
        "context_length": 100_000,
        "max_completion_tokens": 10_000,
        "is_moderated": False,
    }
    assert (listed["canonical_slug"], listed["owned_by"]) == ("acme/large", "acme")


async def test_c3_an_alias_is_an_entry_with_the_fields_of_its_model() -> None:
    call = await dated()
    alias, large = [(await call("GET", path)).json for path in ("/v1/models/big", LARGE)]
    assert (alias["id"], alias["kind"], alias["canonical_slug"]) == ("big", "alias", "acme/large")
    assert {**alias, "id": "acme/large", "kind": "model"} == large
    assert alias in (await call("GET", "/v1/models")).json["data"]


async def test_c3_a_route_is_an_entry_with_what_its_models_can() -> None:
    small = model(endpoint("near", "s", dollars_in="1"), context=5_000, max_output=500)
    large = model(
        endpoint("far", "l", dollars_in="9"), input=("text", "pdf"), released=date(2026, 3, 1)
    )
    call = await api(
        models={"acme/small": small, "acme/large": large},
        aliases={"auto": {"to": "team/chat/auto"}},
        routes={"team/chat/auto": {"description": "Both", "try": ("acme/small", "acme/large")}},
    )
    shown = (await call("GET", "/v1/models/team/chat/auto")).json
    assert (shown["id"], shown["object"], shown["kind"]) == ("team/chat/auto", "model", "route")
    assert shown["models"] == ["acme/small", "acme/large"]
    assert shown["description"] == "Both"
    assert (shown["context_length"], shown["max_completion_tokens"]) == (100_000, 10_000)
    assert shown["architecture"]["input_modalities"] == ["text", "file"]
    assert shown["pricing"]["prompt"] == "0.000001"
    alias = (await call("GET", "/v1/models/auto")).json
    assert {**alias, "id": "team/chat/auto", "kind": "route"} == shown


async def test_c3_created_is_the_day_of_release_or_the_first_of_a_price() -> None:
    models = {
        "acme/new": model(endpoint("near", "n"), released=date(2026, 3, 1)),
        "acme/old": model(endpoint("near", "o")),
    }
    routes = {"both": {"description": "Both", "try": ("acme/old", "acme/new")}}
    call = await api(models=models, aliases={}, routes=routes)
    listed = (await call("GET", "/v1/models")).json["data"]
    released, checked, latest = [datetime.fromtimestamp(it["created"], UTC).date() for it in listed]
    assert released == date(2026, 3, 1)
    assert checked == date(2026, 11, 21)
    assert latest == checked


@pytest.mark.parametrize(
    ("globs", "tier", "names"),
    [
        (("smart",), None, {"smart"}),
        (("best",), None, {"best"}),
        (("acme/small",), None, {"acme/small", "smart", "gpt-4o", "best"}),
        (None, "free", {"other/tools", "smart", "best"}),
        (("acme/*",), "free", set()),
        (None, "gone", set()),
    ],
)
async def test_c3_a_key_lists_the_names_that_planning_lets_it_use(
    globs: tuple[str, ...] | None, tier: str | None, names: set[str]
) -> None:
    call = await api(key_tiers={"free": {"models": ("other/*",)}})
    new = NewKey(workspace_id="acme", label="x", models=globs, tier=tier)
    created = await call.home.stores.keys.create(new, by=TESTER)
    listed = (await call("GET", "/v1/models", key=created.secret)).json["data"]
    assert {it["id"] for it in listed} == names
    principal = await call.home.stores.keys.authenticate(created.secret)
    for name in ("acme/large", "acme/small", "other/tools", "smart", "gpt-4o", "best"):
        request = GenerationRequest(model=name, messages=())
        wanted = PlanningRequest.of(request, principal=principal, request_id="r")
        survey = call.home.gateway.planner.survey(wanted, now_s=0)
        assert (survey.plan is not None) == (name in names)
        reply = await call("GET", f"/v1/models/{name}", key=created.secret)
        assert reply.status == (200 if name in names else 404)


async def test_c3_the_endpoints_of_a_route_are_those_of_its_models() -> None:
    call = await api(
        aliases={}, routes={"team/smart": {"description": "One", "try": ("acme/large",)}}
    )
    reply = await call("GET", "/v1/models/team/smart/endpoints")
    assert (reply.status, reply.error["code"]) == (404, "model_not_found")
    assert "team/smart?" not in reply.error["message"]


@pytest.mark.parametrize(
    "path", ["/v1/models/acme-large", "/v1/models/acme/larg", "/v1/models/acme/larg/endpoints"]
)
async def test_c41_an_unknown_model_is_404_with_the_nearest_names(path: str) -> None:
    reply = await (await api())("GET", path)
    assert (reply.status, reply.error["code"]) == (404, "model_not_found")
    assert "acme/large" in reply.error["message"]


async def test_c3_a_key_is_told_nothing_of_models_that_it_may_not_use() -> None:
    call = await api()
    new = NewKey(workspace_id="acme", label="x", models=("acme/small",))
    secret = (await call.home.stores.keys.create(new, by=TESTER)).secret
    for path in (LARGE, f"{LARGE}/endpoints"):
        reply = await call("GET", path, key=secret)
        assert (reply.status, reply.error["code"]) == (404, "model_not_found")
        assert "acme/large?" not in reply.error["message"]
    assert (await call("GET", "/v1/models/acme/small", key=secret)).status == 200


@pytest.mark.parametrize("name", [name for name, each in WIRE_FORMATS.items() if each.codec])
def test_c3_the_parameters_of_a_format_are_those_that_its_codec_sends(name: str) -> None:
    codec = codec_of(name)
    dialect = Dialect(refuses=())
    target = Target(provider="p", model="a/b", upstream_model="m", dialect=dialect)
    sent = set()
    for parameter in PARAMETERS:
        changes = REQUEST.get(parameter)
        if changes is None:
            changes = {"sampling": Sampling(**{parameter: SAMPLING[parameter]})}
        asked = GenerationRequest(
            model="a/b", messages=(UserMessage(content=(Text(text="Hi"),)),), **changes
        )
        if asked.needs - WIRE_FORMATS[name].carries:
            continue
        if not {parameter, "logprobs"} & set(codec.encode(asked, target).adapted):
            sent.add(parameter)
    assert sent == WIRE_FORMATS[name].parameters


VERSION = {"anthropic-version": "2023-06-01"}


async def claude_list(api: Api, query: str = "") -> dict[str, Any]:
    reply = await api("GET", f"/v1/models{query}", headers=VERSION)
    assert reply.status == 200
    return dict(reply.json)


async def test_c80_a_client_of_anthropics_gets_its_list_in_pages() -> None:
    served = await api()
    everything = [each["id"] for each in (await served("GET", "/v1/models")).json["data"]]
    whole = await claude_list(served)
    assert [each["id"] for each in whole["data"]] == everything
    assert set(whole["data"][0]) == {
        "type",
        "id",
        "display_name",
        "created_at",
        "max_input_tokens",
        "max_tokens",
    }
    assert (whole["has_more"], whole["first_id"], whole["last_id"]) == (
        False,
        everything[0],
        everything[-1],
    )
    walked: list[str] = []
    page = await claude_list(served, "?limit=2")
    while page["has_more"]:
        assert len(page["data"]) == 2
        walked += [each["id"] for each in page["data"]]
        page = await claude_list(served, f"?limit=2&after_id={page['last_id']}")
    walked += [each["id"] for each in page["data"]]
    assert walked == everything
    back = await claude_list(served, f"?limit=1&before_id={everything[2]}")
    assert ([each["id"] for each in back["data"]], back["has_more"]) == ([everything[1]], True)


async def test_c80_one_model_in_anthropics_shape_and_an_unknown_page() -> None:
    served = await api()
    one = (await served("GET", LARGE, headers=VERSION)).json
    assert (one["type"], one["id"]) == ("model", "acme/large")
    unknown = await served("GET", "/v1/models?after_id=nothing", headers=VERSION)
    assert (unknown.status, unknown.error["param"]) == (400, "after_id")
    assert (await served("GET", "/v1/models?limit=0", headers=VERSION)).status == 400


@pytest.mark.parametrize(
    ("path", "key", "status", "type_", "code"),
    [
        ("/v1/models/nothing", None, 404, "not_found_error", "model_not_found"),
        ("/v1/models", "sk-tg-x", 401, "authentication_error", "invalid_api_key"),
        ("/v1/models?limit=0", None, 400, "invalid_request_error", "invalid_request"),
        ("/v1/nothing", None, 404, "not_found_error", "not_found"),
    ],
)
async def test_c40_a_client_of_anthropics_is_refused_in_its_envelope(
    path: str, key: str | None, status: int, type_: str, code: str
) -> None:
    refused = await (await api())("GET", path, key=key, headers=VERSION)
    assert (refused.status, refused.json["type"]) == (status, "error")
    assert (refused.json["error"]["type"], refused.json["error"]["code"]) == (type_, code)
    assert refused.json["request_id"] == refused.headers["x-request-id"]


# Without one of them Codex drops the whole list.
NEEDED_BY_CODEX = {
    "slug",
    "display_name",
    "supported_reasoning_levels",
    "shell_type",
    "visibility",
    "supported_in_api",
    "priority",
    "base_instructions",
    "support_verbosity",
    "truncation_policy",
    "experimental_supported_tools",
}


async def test_c80_codex_gets_the_models_with_tools_beside_the_list() -> None:
    served = await dated(supports=("tools", "reasoning"), input=("text", "image", "pdf"))
    plain = (await served("GET", "/v1/models")).json
    assert "models" not in plain
    reply = (await served("GET", "/v1/models?client_version=0.169.0")).json
    assert reply["data"] == plain["data"]
    assert [each["slug"] for each in reply["models"]] == ["acme/large", "big"]
    first = reply["models"][0]
    assert first.keys() >= NEEDED_BY_CODEX
    assert first["input_modalities"] == ["text", "image"]
    assert [each["effort"] for each in first["supported_reasoning_levels"]] == [
        "low",
        "medium",
        "high",
    ]


async def test_c80_a_model_without_tools_is_none_of_codexs() -> None:
    served = await dated(supports=())
    assert (await served("GET", "/v1/models?client_version=0.169.0")).json["models"] == []


async def test_c2_c3_a_key_in_either_header_lists_what_it_may_use() -> None:
    served = await api()
    new = NewKey(workspace_id="acme", label="narrow", models=("acme/large",))
    secret = (await served.home.stores.keys.create(new, by=TESTER)).secret
    for headers in ({"x-api-key": secret}, {"authorization": f"Bearer {secret}"}):
        listed = (await served("GET", "/v1/models", headers=headers)).json["data"]
        assert [each["id"] for each in listed if each["kind"] == "model"] == ["acme/large"]
    assert (await served("GET", "/v1/models", headers={"x-api-key": "sk-tg-no"})).status == 401
