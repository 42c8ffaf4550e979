"""The tokens of a prompt are counted at no cost, by the provider that counts or by their size.

Keeps C2, C4, C8, C40, C41, C61, C80.
"""

import base64
import json
from typing import Any

import anthropic
import httpx2
import openai
import pytest
from starlette.types import ASGIApp

from tests.asgi import Exchange, request
from tests.gateways import Always, House, house
from tests.references import client_requests
from tests.scripted import FOREVER, Scripted, frame, refuses
from tests.stores import TESTER
from tests.unit.routing.catalogs import endpoint, model, provider
from tollgate.engine.usage.token_counts import COUNT_S, COUNTS_PER_MINUTE_MAX
from tollgate.providers.ports.base import WireRequest
from tollgate.providers.ports.formats import codec_of
from tollgate.stores.ports.administration import NewKey
from tollgate.web.chat_app import chat_app
from tollgate.web.http.cors import WebLimits

MESSAGES = "/v1/messages/count_tokens"
RESPONSES = "/v1/responses/input_tokens"
HI: Any = {"model": "acme/large", "messages": [{"role": "user", "content": "Hi"}]}
INPUT: Any = {"model": "acme/large", "input": "Hi"}
TOOL: Any = {"name": "weather", "input_schema": {"type": "object"}}
MET = ("tools", "reasoning")


def app_of(home: House) -> ASGIApp:
    return chat_app(home.front, Always(home.gateway), WebLimits(body_bytes_max=6_000_000))


async def ask(home: House, body: Any, path: str = MESSAGES, **headers: str) -> Exchange:
    sent = {"x-api-key": home.secret, **headers}
    return await request(app_of(home), "POST", path, headers=sent, body=json.dumps(body).encode())


async def estimate(home: House, body: Any) -> int:
    reply = await ask(home, body)
    assert (reply.status, reply.headers["x-tollgate-token-count"]) == (200, "estimate")
    assert list(reply.json) == ["input_tokens"]
    return int(reply.json["input_tokens"])


async def counting_house(
    near: Scripted,
    codec: Any = "anthropic",
    *,
    row: Any = None,
    dialect: Any = None,
    **changes: Any,
) -> House:
    """A house whose first provider counts tokens in a format of its own."""
    counts = {"counts_tokens": True, **(dialect or {})}
    return await house(
        near=near,
        codec=codec_of(codec),
        providers={
            "near": provider(codec=codec, dialect=counts, **(row or {})),
            "far": provider(codec=codec),
        },
        **{
            "models": {
                "acme/large": model(
                    endpoint("far", "L"), endpoint("near", "large-1"), supports=MET
                ),
                "acme/small": model(endpoint("far", "S")),
            },
            "aliases": {},
            "routes": {},
            **changes,
        },
    )


def sent(home: House) -> WireRequest:
    [wire] = home.near.requests
    assert home.far.requests == []
    return wire


async def test_c80_an_estimate_grows_with_the_prompt_its_system_and_its_tools() -> None:
    home = await house()
    plain = await estimate(home, HI)
    tool = TOOL | {"description": "word " * 200}
    assert 0 < plain < 20
    assert await estimate(home, HI | {"system": "word " * 400}) >= plain + 400
    assert await estimate(home, HI | {"tools": [tool]}) >= plain + 200
    assert await estimate(home, HI | {"max_tokens": 9, "stream": True}) == plain


BETAS = "context-management-2025-06-27"
ASKED = HI | {
    "system": "Be brief.",
    "tools": [TOOL],
    "max_tokens": 9,
    "temperature": 1,
    "metadata": {"user_id": "u"},
    "context_management": {"edits": []},
}


async def test_c80_anthropic_counts_what_would_be_sent_to_it_with_its_betas() -> None:
    home = await counting_house(Scripted([frame({"input_tokens": 321})]))
    reply = await ask(home, ASKED, **{"anthropic-beta": BETAS})
    assert (reply.status, reply.json) == (200, {"input_tokens": 321})
    assert reply.headers["x-tollgate-token-count"] == "exact"
    assert reply.headers["request-id"] == reply.headers["x-request-id"]
    wire = sent(home)
    assert wire.path == "/messages/count_tokens"
    assert wire.headers["anthropic-beta"] == BETAS
    assert wire.headers["anthropic-version"] == "2023-06-01"
    assert sorted(wire.body) == ["context_management", "messages", "model", "system", "tools"]
    assert wire.body["model"] == "large-1"


async def test_c80_what_is_counted_is_what_a_generation_sends() -> None:
    home = await counting_house(Scripted([frame({"input_tokens": 1})]))
    await ask(home, ASKED)
    generating = await counting_house(Scripted(refuses(400)))
    body = ASKED | {"provider": {"only": ["near"]}}
    await ask(generating, body, "/v1/messages")
    generated = sent(generating).body
    assert {name: generated[name] for name in sent(home).body} == sent(home).body


PLACE = {"auth": "google", "project": "p", "location": "us-east5"}


async def test_c80_claude_on_vertex_is_counted_at_vertexs_own_path() -> None:
    near = Scripted([frame({"input_tokens": 5})])
    home = await counting_house(near, row=PLACE, dialect={"claude_carrier": "vertex"})
    assert (await ask(home, ASKED)).json == {"input_tokens": 5}
    assert sent(home).path == (
        "/v1/projects/p/locations/us-east5/publishers/anthropic/models/count-tokens:rawPredict"
    )
    assert sorted(sent(home).body) == ["messages", "model", "system", "tools"]


async def test_c80_vertex_counts_by_a_models_name_without_its_version() -> None:
    near = Scripted([frame({"input_tokens": 5})])
    home = await house(
        near=near,
        codec=codec_of("anthropic"),
        providers={"near": provider(codec="anthropic", **PLACE)},
        models={
            "acme/large": model(
                endpoint("near", "claude-x@20261001")
                | {"dialect": {"claude_carrier": "vertex", "counts_tokens": True}}
            )
        },
        aliases={},
        routes={},
    )
    await ask(home, HI)
    assert sent(home).body["model"] == "claude-x"


AWS = {"transport": "bedrock_invoke", "region": "us-east-1", "base_url": None}


async def test_c80_claude_by_invoke_model_is_counted_by_bedrock_under_the_models_own_id() -> None:
    near = Scripted([frame({"inputTokens": 7})])
    home = await counting_house(near, row=AWS, dialect={"claude_carrier": "bedrock"})
    assert (await ask(home, ASKED)).json == {"input_tokens": 7}
    assert sent(home).path == "/model/large-1/count-tokens"
    body: Any = sent(home).body
    counted = json.loads(base64.b64decode(body["input"]["invokeModel"]["body"]))
    assert counted["max_tokens"] == 9
    assert counted["messages"] == [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}]


async def test_c80_converse_is_counted_by_bedrock_without_the_fields_of_an_answer() -> None:
    near = Scripted([frame({"inputTokens": 375})])
    row = AWS | {"transport": "bedrock_runtime"}
    home = await counting_house(near, "bedrock", row=row)
    assert (await ask(home, ASKED)).json == {"input_tokens": 375}
    body: Any = sent(home).body
    assert sorted(body["input"]["converse"]) == ["messages", "system", "toolConfig"]
    assert sent(home).headers == {"accept": "application/json"}


@pytest.mark.parametrize(
    ("upstream", "path"),
    [
        ("us.anthropic.claude-x-v1:0", "/model/anthropic.claude-x-v1%3A0/count-tokens"),
        ("anthropic.claude-x", "/model/anthropic.claude-x/count-tokens"),
        ("arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/x", None),
    ],
)
async def test_c80_bedrock_counts_by_a_model_and_never_by_a_profile(
    upstream: str, path: str | None
) -> None:
    near = Scripted([frame({"inputTokens": 3})])
    dialect = {"counts_tokens": True}
    home = await house(
        near=near,
        codec=codec_of("bedrock"),
        providers={
            "near": provider(**AWS | {"codec": "bedrock", "transport": "bedrock_runtime"}),
        },
        models={"acme/large": model(endpoint("near", upstream) | {"dialect": dialect})},
        aliases={},
        routes={},
    )
    reply = await ask(home, HI)
    assert reply.headers["x-tollgate-token-count"] == ("exact" if path else "estimate")
    assert [wire.path for wire in near.requests] == ([path] if path else [])


async def test_c80_ai_studio_counts_the_whole_request() -> None:
    home = await counting_house(Scripted([frame({"totalTokens": 31})]), "gemini")
    assert (await ask(home, ASKED)).json == {"input_tokens": 31}
    assert sent(home).path == "/v1beta/models/large-1:countTokens"
    body: Any = sent(home).body
    counted = body["generateContentRequest"]
    assert counted["model"] == "models/large-1"
    assert {"contents", "systemInstruction", "tools"} < counted.keys()


async def test_c80_vertex_counts_the_parts_of_the_prompt() -> None:
    home = await counting_house(Scripted([frame({"totalTokens": 32})]), "gemini", row=PLACE)
    assert (await ask(home, ASKED)).json == {"input_tokens": 32}
    assert sent(home).path == (
        "/v1/projects/p/locations/us-east5/publishers/google/models/large-1:countTokens"
    )
    assert {"contents", "systemInstruction", "tools"} < sent(home).body.keys()
    assert "toolConfig" not in sent(home).body


@pytest.mark.parametrize("asked", [INPUT | {"instructions": "Be brief.", "store": False}, HI])
async def test_c80_openai_counts_for_both_formats(asked: Any) -> None:
    near = Scripted([frame({"object": "response.input_tokens", "input_tokens": 12})])
    home = await counting_house(near, "openai_responses")
    path = MESSAGES if asked is HI else RESPONSES
    reply = await ask(home, asked, path)
    shape = {} if asked is HI else {"object": "response.input_tokens"}
    assert reply.json == {**shape, "input_tokens": 12}
    assert reply.headers["x-tollgate-token-count"] == "exact"
    assert sent(home).path == "/responses/input_tokens"
    assert sorted(sent(home).body) == ["input", "model"]


async def test_c80_responses_are_counted_by_size_where_no_provider_counts() -> None:
    home = await house()
    reply = await ask(home, INPUT, RESPONSES)
    assert (reply.status, reply.headers["x-tollgate-token-count"]) == (200, "estimate")
    assert reply.json["object"] == "response.input_tokens"
    assert home.near.requests == home.far.requests == []


@pytest.mark.parametrize(
    ("answer", "failure"),
    [
        (refuses(429), "provider_rate_limit"),
        (refuses(403), "provider_auth"),
        (refuses(404), "provider_unavailable"),
        ([frame({"tokens": 1})], "provider_unavailable"),
        ([frame({"input_tokens": -1})], "provider_unavailable"),
        ([], "provider_unavailable"),
        ([FOREVER], "provider_timeout"),
    ],
)
async def test_c80_a_provider_that_fails_or_is_slow_leaves_the_estimate(
    answer: Any, failure: str
) -> None:
    home = await counting_house(Scripted(answer))
    began_s = home.gateway.clock.now_s()
    reply = await ask(home, HI)
    assert (reply.status, reply.headers["x-tollgate-token-count"]) == (200, "estimate")
    assert reply.headers["x-tollgate-token-count-failure"] == failure
    assert reply.json["input_tokens"] > 0
    assert home.gateway.clock.now_s() - began_s <= COUNT_S
    assert home.near.open_count == 0
    assert home.journal.defects == []


async def test_c61_a_key_that_counts_too_often_gets_the_estimate_until_the_next_minute() -> None:
    home = await counting_house(Scripted([frame({"input_tokens": 1})]))
    app = app_of(home)

    async def how() -> str:
        headers = {"x-api-key": home.secret}
        reply = await request(app, "POST", MESSAGES, headers=headers, body=json.dumps(HI).encode())
        return reply.headers["x-tollgate-token-count"]

    told = [await how() for _ in range(COUNTS_PER_MINUTE_MAX + 1)]
    assert told == ["exact"] * COUNTS_PER_MINUTE_MAX + ["estimate"]
    await home.gateway.clock.sleep(60)
    assert await how() == "exact"


async def test_c80_a_count_holds_and_records_nothing() -> None:
    home = await counting_house(Scripted([frame({"input_tokens": 1})]))
    await ask(home, HI)
    assert home.stores.books.records == {}
    assert home.held_nano_usd == home.spent_nano_usd == 0


async def test_c80_a_key_without_money_counts_too() -> None:
    near = Scripted([frame({"input_tokens": 1})])
    home = await counting_house(near, funds_nano_usd=1)
    assert (await ask(home, HI)).json == {"input_tokens": 1}


async def test_c80_a_prompt_beyond_the_context_is_counted() -> None:
    home = await counting_house(Scripted([frame({"input_tokens": 250_000})]))
    long = {"messages": [{"role": "user", "content": "word " * 500_000}]}
    assert (await ask(home, HI | long)).json == {"input_tokens": 250_000}


@pytest.mark.parametrize(
    ("change", "status", "type_", "param"),
    [
        ({"messages": []}, 400, "invalid_request_error", "messages"),
        ({"max_tokens": 0}, 400, "invalid_request_error", "max_tokens"),
        ({"model": "nothing"}, 404, "not_found_error", "model"),
    ],
)
async def test_c40_c80_a_fault_is_in_anthropics_envelope(
    change: Any, status: int, type_: str, param: str
) -> None:
    reply = await ask(await house(), HI | change)
    assert (reply.status, reply.error["type"]) == (status, type_)
    assert (reply.json["type"], reply.error["param"]) == ("error", param)


@pytest.mark.parametrize(("path", "body"), [(MESSAGES, HI), (RESPONSES, INPUT)])
async def test_c61_a_model_that_a_key_may_not_use_is_not_counted(path: str, body: Any) -> None:
    near = Scripted([frame({"input_tokens": 1})])
    key = NewKey(workspace_id="acme", label="k", models=("acme/small",))
    home = await counting_house(near, key=key)
    reply = await ask(home, body, path)
    assert (reply.status, reply.error["code"]) == (403, "model_not_allowed")
    assert near.requests == []


async def test_c2_c40_without_a_key_it_is_401_in_anthropics_envelope() -> None:
    reply = await request(app_of(await house()), "POST", MESSAGES, body=json.dumps(HI).encode())
    assert (reply.status, reply.error["type"]) == (401, "authentication_error")


@pytest.mark.parametrize("role", ["read", "management"])
async def test_c91_only_a_key_for_inference_reaches_a_provider(role: Any) -> None:
    home = await house()
    made = await home.stores.keys.create(
        NewKey(workspace_id="acme", label="other", role=role), by=TESTER
    )
    reply = await ask(home, HI, **{"x-api-key": made.secret})
    assert (reply.status, reply.error["code"]) == (403, "permission_denied")


@pytest.mark.parametrize("path", [MESSAGES, RESPONSES])
async def test_c41_another_method_is_405(path: str) -> None:
    reply = await request(app_of(await house()), "GET", path)
    assert (reply.status, reply.headers["allow"]) == (405, "OPTIONS, POST")


async def test_c8_a_body_over_the_limit_is_413() -> None:
    long = {"messages": [{"role": "user", "content": "word " * 1_500_000}]}
    reply = await ask(await house(), HI | long)
    assert (reply.status, reply.error["type"]) == (413, "request_too_large")


ASKED_BY_PATH = {MESSAGES: HI, RESPONSES: INPUT}


async def test_c7_c80_the_official_clients_read_the_count() -> None:
    home = await house()
    answers = {path: (await ask(home, body, path)).body for path, body in ASKED_BY_PATH.items()}

    def replay(asked: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, content=answers[asked.url.path])

    client = httpx2.Client(transport=httpx2.MockTransport(replay))
    claude = anthropic.Anthropic(
        api_key="sk-tg-test", base_url="http://replay.invalid", http_client=client
    )
    counted = claude.messages.count_tokens(model="m", messages=[{"role": "user", "content": "Hi"}])
    assert counted.input_tokens > 0
    gpt = openai.OpenAI(
        api_key="sk-tg-test", base_url="http://replay.invalid/v1", http_client=client
    )
    found = gpt.responses.input_tokens.count(model="m", input="Hi")
    assert (found.object, found.input_tokens > 0) == ("response.input_tokens", True)


async def test_c80_recorded_requests_of_clients_are_taken() -> None:
    home = await house()
    for _, body in client_requests("/count_tokens"):
        assert await estimate(home, body | {"model": "acme/large"}) > 0
