"""POST /v1/route/explain: where a request would go, told to its key and at no cost.

Keeps C6, C40, C53, C80, C81.
"""

import copy
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from urllib3.filepost import encode_multipart_formdata

from tests.asgi import Exchange, request
from tests.gateways import store_is_away
from tests.memory.files import shelved
from tests.traffic import planning_request
from tests.unit.ingress.media_samples import PDF, PNG
from tests.unit.ingress.recordings import wav
from tests.unit.routing.catalogs import NOW_S, RECENTLY, catalog, endpoint, model, provider
from tests.unit.web.test_api_app import Api, api
from tollgate.cli.routing.explanation import render_explanation
from tollgate.core.records.generation import RoundsBound
from tollgate.core.request import Modality
from tollgate.ingress.formats import FORMATS
from tollgate.routing.planning.planner import Planner
from tollgate.stores.ports.administration import NewKey
from tollgate.web.models.endpoint_status import EndpointStatus
from tollgate.web.routing.explanation_shapes import explain_plan

PATH = "/v1/route/explain"
VECTORS_PATH = f"{PATH}?format=embeddings"
CHAT = {"messages": [{"role": "user", "content": "Say hello."}], "session_id": "s-1"}


TOOL = {"name": "look_up", "input_schema": {"type": "object"}}
# One request in every format.
SAME: dict[str, dict[str, Any]] = {
    "chat_completions": {"messages": [{"role": "user", "content": "Say hello."}], "max_tokens": 9},
    "completions": {"prompt": "Say hello.", "max_tokens": 9},
    "messages": {"messages": [{"role": "user", "content": "Say hello."}], "max_tokens": 9},
    "responses": {"input": "Say hello.", "max_output_tokens": 9},
}


async def ask(call: Api, name: str, path: str = PATH, **fields: Any) -> Exchange:
    headers = fields.pop("headers", None)
    body = {"model": name, **CHAT, **fields}
    return await call("POST", path, key=call.home.secret, content=body, headers=headers)


def considered(reply: Exchange) -> list[tuple[int | None, str, str | None]]:
    return [
        (each["attempt"], f"{each['provider']}/{each['upstream']}", each["removed"])
        for each in reply.json["candidates"]
    ]


async def test_c53_c83_a_candidate_says_what_a_line_of_a_batch_costs() -> None:
    terms = {"form": "openai", "percent": 50, "source": "made up", "checked": RECENTLY}
    providers = {"near": provider(batch=terms), "far": provider()}
    reply = await ask(await api(providers=providers), "acme/large")
    assert [each["batch_percent"] for each in reply.json["candidates"]] == [50, None]
    assert "50% of the price in batches" in "\n".join(render_explanation(reply.json))
    # The provider's batches run other models only.
    others = {**providers, "near": provider(batch={**terms, "models": ("small-*",)})}
    reply = await ask(await api(providers=others), "acme/large")
    assert [each["batch_percent"] for each in reply.json["candidates"]] == [None, None]
    reply = await ask(await api(providers=others), "acme/small")
    assert reply.json["candidates"][0]["batch_percent"] == 50


async def test_c53_c83_batches_of_gemini_embed_one_text_a_line() -> None:
    terms = {"form": "gemini", "percent": 50, "source": "made up", "checked": RECENTLY}
    vectors = model(
        endpoint("near", "v", dollars_out="0"), kind="embedding", vectors={"dimensions": 2}
    )
    call = await api(
        providers={"near": provider(codec="gemini", batch=terms)},
        models={"acme/vectors": vectors},
        aliases={},
        routes={},
    )
    for texts, percent in (["One."], 50), (["One.", "Two."], None):
        body = {"model": "acme/vectors", "input": texts}
        reply = await call("POST", VECTORS_PATH, key=call.home.secret, content=body)
        assert [each["batch_percent"] for each in reply.json["candidates"]] == [percent]


@pytest.mark.parametrize(
    ("job_region", "percent", "lack"),
    [
        (None, None, "needs an S3 bucket and TOLLGATE_BEDROCK_BATCH_ROLE"),
        ("eu-west-1", None, "needs a bucket in us-east-1, but the gateway's is in eu-west-1"),
        ("us-east-1", 50, None),
    ],
)
async def test_c53_c83_a_candidate_says_what_batches_at_bedrock_lack(
    job_region: str | None, percent: int | None, lack: str | None
) -> None:
    near = {"codec": "bedrock", "transport": "bedrock_runtime", "region": "us-east-1"}
    terms = {"form": "bedrock", "percent": 50, "source": "made up", "checked": RECENTLY}
    call = await api(providers={"near": {**near, "batch": terms}, "far": provider()})
    call = replace(call, changes={"job_region": job_region})
    reply = await ask(call, "acme/large")
    first, second = reply.json["candidates"]
    assert (first["batch_percent"], first["batch_lack"]) == (percent, lack)
    assert (second["batch_percent"], second["batch_lack"]) == (None, None)
    tools = [{"type": "function", "function": {"name": "look_up"}}]
    asked = await ask(call, "acme/large", tools=tools)
    assert asked.json["candidates"][0]["batch_percent"] is None
    expected = f"in batches {lack}" if lack else "50% of the price in batches"
    assert expected in "\n".join(render_explanation(reply.json))


async def test_c53_a_chat_request_is_told_its_candidates_and_what_removed_each() -> None:
    call = await api()
    tools = [{"type": "function", "function": {"name": "look_up"}}]
    reply = await ask(call, "best", tools=tools, provider={"ignore": ["near"]})
    assert reply.status == 200
    assert considered(reply) == [
        (None, "near/small-1", "does not support tools"),
        (None, "near/large-1", "is in provider.ignore"),
        (1, "far/L", None),
        (2, "far/T", None),
    ]
    told = reply.json
    assert (told["requested"], told["route"], told["rule"]) == ("best", "smart", None)
    assert (told["catalog_sha"], told["error"]) == (call.home.catalog.sha, None)
    assert told["hold"] == max(each["cost_max"] for each in told["candidates"] if each["attempt"])


@pytest.mark.parametrize("name", SAME)
async def test_c53_c80_c81_a_request_of_any_format_is_told_the_same(name: str) -> None:
    call = await api()
    path = f"{PATH}?format={name}"
    body = {"model": "best", "session_id": "s-1", **SAME[name]}
    reply = await call("POST", path, key=call.home.secret, content=body)
    assert reply.status == 200
    chat = await ask(call, "best", **SAME["chat_completions"])
    assert considered(reply) == considered(chat)


async def test_c53_c80_tools_and_betas_of_a_message_are_read() -> None:
    call = await api()
    body = {"model": "best", **SAME["messages"], "tools": [TOOL]}
    path = f"{PATH}?format=messages"
    headers = {"anthropic-beta": "novelty-2026-01-01", "x-claude-code-session-id": "s-1"}
    reply = await call("POST", path, key=call.home.secret, content=body, headers=headers)
    assert considered(reply)[0] == (None, "near/small-1", "does not support tools")
    drawn = (await ask(call, "best")).json["drawn_by"]
    assert reply.json["drawn_by"] == drawn


async def test_c53_it_costs_nothing_and_writes_nothing() -> None:
    call = await api()
    before = copy.deepcopy(call.home.stores.books)
    await ask(call, "smart")
    assert call.home.stores.books == before
    assert (call.home.near.requests, call.home.far.requests, call.home.trace) == ([], [], [])


async def test_c53_what_is_told_is_what_the_engine_does() -> None:
    call = await api()
    told = (await ask(call, "smart")).json
    await call.home.serve("smart")
    record = call.home.record
    assert (record.model, record.provider) == ("acme/small", "near")
    assert told["candidates"][0]["model"] == record.model
    assert told["hold"] == pytest.approx(record.held_nano_usd / 1e9, rel=0.01)


async def test_c53_a_simulated_failure_shows_the_chain_of_attempts() -> None:
    call = await api()
    reply = await ask(call, "smart", f"{PATH}?simulate=429@near&simulate=timeout@acme/large")
    simulation = reply.json["simulation"]
    assert simulation["faults"] == ["429@near", "timeout@acme/large"]
    assert [(each["provider"], each["error"]) for each in simulation["attempts"]] == [
        ("near", "provider_rate_limit"),
        ("near", "provider_rate_limit"),
        ("far", "provider_timeout"),
        ("far", None),
    ]
    assert simulation["error"] is None


async def test_c51_an_endpoint_that_rests_is_tried_last_and_says_until_when() -> None:
    call = await api()
    policy = call.home.catalog.defaults.cooldown.policy
    for _ in range(policy.after_failures):
        await call.home.stores.cooldowns.count_failure("near/large-1", policy)
    reply = await ask(call, "acme/large")
    assert considered(reply) == [(2, "near/large-1", None), (1, "far/L", None)]
    assert reply.json["candidates"][0]["resting_until"] is not None
    assert not reply.json["candidates"][0]["probes"]
    await call.home.gateway.clock.sleep(policy.rest_s)
    reply = await ask(call, "acme/large")
    assert considered(reply) == [(1, "near/large-1", None), (2, "far/L", None)]
    assert [each["probes"] for each in reply.json["candidates"]] == [True, False]
    # An explanation does not begin the probe; a request does.
    assert await call.home.stores.cooldowns.begin_probe("near/large-1", policy)


async def test_c53_a_key_hears_what_it_may_not_use() -> None:
    call = await api(key=NewKey(workspace_id="acme", label="few", models=("other/*",)))
    reply = await ask(call, "smart")
    assert [removed for _, _, removed in considered(reply)][:2] == ["is not for this key"] * 2
    assert considered(reply)[-1] == (1, "far/T", None)
    reply = await ask(call, "acme/small")
    assert (reply.status, reply.json["error"]["code"]) == (200, "model_not_allowed")
    assert (reply.json["hold"], reply.json["next_on"]) == (None, [])


async def test_c52_without_fallbacks_the_first_model_is_all_there_is() -> None:
    reply = await ask(await api(), "smart", headers={"x-disable-fallback": "true"})
    assert [attempt for attempt, _, _ in considered(reply)] == [1, None, None, None]


@pytest.mark.parametrize(
    ("name", "path", "status", "param"),
    [
        ("smrt", PATH, 404, "model"),
        ("smart", f"{PATH}?simulate=nothing", 400, "simulate"),
        ("smart", f"{PATH}?simulate=429@nobody", 400, "simulate"),
        (7, PATH, 400, "model"),
        ("smart", f"{PATH}?format=chat", 400, "format"),
        ("smart", f"{PATH}?format=messages", 400, "max_tokens"),
        ("smart", f"{PATH}?format=responses", 400, "input"),
    ],
)
async def test_c40_what_cannot_be_explained_is_an_error_in_the_envelope(
    name: Any, path: str, status: int, param: str
) -> None:
    reply = await ask(await api(), name, path)
    assert (reply.status, reply.error["param"]) == (status, param)


async def test_c40_more_faults_than_anybody_reads_are_refused() -> None:
    call = await api()
    reply = await ask(call, "smart", f"{PATH}?{'&'.join(['simulate=429@near'] * 17)}")
    assert (reply.status, reply.error["code"]) == (400, "invalid_request")


async def test_c62_a_key_that_cannot_be_checked_is_refused() -> None:
    call = await api()

    class Away:
        async def authenticate(self, secret: str) -> None:
            raise store_is_away()

    call.changes["keys"] = Away()
    assert (await ask(call, "smart")).status == 503


async def test_c6_the_document_has_every_field_of_a_request() -> None:
    document = (await (await api())("GET", "/v1/openapi.json")).json
    operation = document["paths"][PATH]["post"]
    content = operation["requestBody"]["content"]["application/json"]
    requests = [each.models.request().__name__ for each in FORMATS]
    assert content["schema"] == {
        "anyOf": [{"$ref": f"#/components/schemas/{name}"} for name in requests]
    }
    format_ = next(each for each in operation["parameters"] if each["name"] == "format")
    kinds = [each.name for each in FORMATS if each.name not in SAME]
    assert format_["schema"]["enum"] == [*SAME, *kinds]
    fields = document["components"]["schemas"]["ChatRequest"]["properties"]
    assert {"model", "messages", "tools", "provider", "session_id"} <= set(fields)


async def test_c53_c81_a_request_for_embeddings_is_explained_too() -> None:
    call = await api()
    reply = await call(
        "POST",
        f"{PATH}?format=embeddings",
        key=call.home.secret,
        content={"model": "acme/large", "input": ["a", "b"]},
    )
    assert reply.status == 200
    assert {each["removed"] for each in reply.json["candidates"]} == {
        "is of kind chat (POST /chat/completions)"
    }
    assert reply.json["error"]["param"] == "model"
    refused = await call(
        "POST",
        f"{PATH}?format=embeddings",
        key=call.home.secret,
        content={"model": "acme/large", "input": []},
    )
    assert (refused.status, refused.error["param"]) == (400, "input")
    ranked = {"model": "acme/large", "query": "q", "documents": ["a"]}
    told = await call("POST", f"{PATH}?format=rerank", key=call.home.secret, content=ranked)
    assert told.json["error"]["param"] == "model"


async def test_c53_c82_a_recording_is_explained_by_its_length() -> None:
    call = await api()
    body, type_ = encode_multipart_formdata({"model": "smart", "file": ("a.wav", wav(16_000))})
    sent = {"authorization": f"Bearer {call.home.secret}", "content-type": type_}
    path = f"{PATH}?format=transcriptions"
    reply = await request(call.app, "POST", path, headers=sent, body=body)
    # The route is of models that chat.
    assert (reply.status, reply.json["candidates"][0]["removed"]) == (
        200,
        "is of kind chat (POST /chat/completions)",
    )
    assert (reply.json["prompt_tokens"], reply.json["prompt_tokens_max"]) == (10, 40)


async def test_c41_a_form_where_json_is_due_is_refused() -> None:
    call = await api()
    body, type_ = encode_multipart_formdata({"name": "a"})
    sent = {"authorization": f"Bearer {call.management}", "content-type": type_}
    reply = await request(call.app, "POST", "/v1/keys", headers=sent, body=body)
    assert (reply.status, reply.error["code"]) == (400, "invalid_request")


@pytest.mark.parametrize(
    ("file_id", "removed"),
    [("cat", "does not take image input"), ("report", "does not take pdf input")],
)
async def test_c11_c53_an_uploaded_file_is_planned_with_as_what_it_is(
    file_id: str, removed: str
) -> None:
    files = shelved("acme", cat=("image/png", PNG), report=("application/pdf", PDF))
    call = replace(await api(), changes={"named_files": files})
    part = {"type": "file", "file": {"file_id": file_id}}
    reply = await ask(call, "best", messages=[{"role": "user", "content": [part]}])
    assert reply.status == 200
    assert {why for _, _, why in considered(reply)} == {removed}
    assert files.read_places == []
    part["file"] = {"file_id": "unknown"}
    reply = await ask(call, "best", messages=[{"role": "user", "content": [part]}])
    assert (reply.status, reply.error["code"]) == (400, "file_not_found")


def test_c73_the_bounds_of_rounds_are_explained() -> None:
    bound = RoundsBound(rounds_max=6, result_tokens=9_000, fees_nano_usd=40_000_000)
    wanted = planning_request("acme/large", 0, rounds=bound)
    survey = Planner(catalog()).survey(wanted, now_s=NOW_S)

    answer = explain_plan(survey, wanted, "a" * 64, time_s=60, status=EndpointStatus())

    told = answer.model_dump(mode="json")
    assert (told["rounds"]["rounds_max"], told["rounds"]["result_tokens"]) == (6, 9_000)
    assert render_explanation(told)[-1] == (
        "That covers 6 rounds with 9,000 tokens of results, and $0.0400 for tool runs."
    )


@pytest.mark.parametrize("modalities", [frozenset({"text"}), frozenset({"text", "pdf"})])
def test_c72_an_explanation_tells_that_documents_are_not_in_what_it_says_is_held(
    modalities: frozenset[Modality],
) -> None:
    reading = catalog(plugins={"pdf": {"price": {"images": Decimal("0.004")}}})
    wanted = planning_request("acme/large", 0, modalities=modalities)
    survey = Planner(reading).survey(wanted, now_s=NOW_S)

    answer = explain_plan(survey, wanted, "a" * 64, time_s=60, status=EndpointStatus())

    told = render_explanation(answer.model_dump(mode="json"))
    warned = "Documents are not read here: a real request also holds the cost of their pages."
    assert (warned in told) == ("pdf" in modalities)
