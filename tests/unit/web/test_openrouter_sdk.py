"""OpenRouter's SDK for Python reads models, answers, generations and activity.

Errors are OpenAI's: their `code` is a word, where the SDK expects a number (decision 235).

Keeps C3, C66, C67, C74.
"""

import json
from typing import Any

import httpx
import pytest
from openrouter import OpenRouter, components

from tests.asgi import Exchange, request
from tests.gateways import Always
from tests.unit.web.test_api_app import Api, api
from tollgate.web.chat_app import chat_app
from tollgate.web.http.cors import WebLimits

# The SDK builds its models at each first call, which takes seconds.
nightly = pytest.mark.nightly
ASKED: dict[str, dict[str, Any]] = {
    "chat/completions": {"messages": [{"role": "user", "content": "Hi"}]},
    "responses": {"input": "Hi"},
}


def replayed(reply: Exchange) -> OpenRouter:
    """An SDK whose server answers as the gateway did."""
    assert reply.status == 200, reply.body
    kind = {"content-type": reply.headers["content-type"]}
    transport = httpx.MockTransport(lambda _: httpx.Response(200, content=reply.body, headers=kind))
    return OpenRouter(
        api_key="sk-tg-test",
        server_url="http://replay.invalid/api/v1",
        client=httpx.Client(transport=transport),
    )


async def asked(call: Api, path: str, **fields: Any) -> Exchange:
    app = chat_app(call.home.front, Always(call.home.gateway), WebLimits())
    headers = {"authorization": f"Bearer {call.home.secret}"}
    body = json.dumps({"model": "acme/small", **ASKED[path], **fields}).encode()
    return await request(app, "POST", f"/v1/{path}", headers=headers, body=body)


@nightly
async def test_c3_the_sdk_reads_models() -> None:
    reply = await (await api())("GET", "/v1/models")
    page = replayed(reply).models.list()
    assert page is not None
    ids = {model["id"] for model in reply.json["data"]}
    assert {model.id for model in page.result.data} == ids
    assert page.next() is None


@nightly
async def test_c74_the_sdk_reads_responses_whole_and_streamed() -> None:
    call = await api()
    sdk = replayed(await asked(call, "responses"))
    whole = sdk.responses.send(model="acme/small", input="Hi")
    assert (whole.status, whole.temperature) == ("completed", 1)
    sdk = replayed(await asked(call, "responses", stream=True))
    with sdk.responses.send(model="acme/small", input="Hi", stream=True) as stream:
        events = list(stream)
    assert isinstance(events[-1], components.StreamEventsResponseCompleted)


@nightly
async def test_c66_the_sdk_reads_answers_and_their_generation() -> None:
    call = await api()
    answer = await asked(call, "chat/completions")
    messages: Any = ASKED["chat/completions"]["messages"]
    chat = replayed(answer).chat.send(model="acme/small", messages=messages)
    assert chat.id == answer.json["id"]
    reply = await call("GET", f"/v1/generation?id={chat.id}", key=call.home.secret)
    found = replayed(reply).generations.get_generation(id=chat.id).data
    assert (found.id, found.total_cost) == (chat.id, answer.json["usage"]["cost"])


@nightly
async def test_c67_the_sdk_reads_activity() -> None:
    call = await api()
    await asked(call, "chat/completions")
    reply = await call("GET", "/v1/activity", key=call.management)
    [row] = replayed(reply).analytics.get_user_activity().data
    assert (row.model, row.requests, row.prompt_tokens) == ("acme/small", 1, 10)


async def test_c3_c66_c67_replies_have_the_fields_that_the_sdk_requires() -> None:
    call = await api()
    models = (await call("GET", "/v1/models")).json
    assert (models["links"], models["total_count"]) == ({"next": None}, len(models["data"]))
    required = {"default_parameters", "links", "per_request_limits", "supported_voices"}
    assert all(required <= model.keys() for model in models["data"])
    answer = await asked(call, "chat/completions")
    assert answer.json["system_fingerprint"] is None
    path = f"/v1/generation?id={answer.json['id']}"
    shown = (await call("GET", path, key=call.home.secret)).json["data"]
    assert (shown["workspace_id"], shown["origin"], shown["is_byok"]) == ("acme", "", False)
    assert {"api_type", "router", "user_agent", "upstream_inference_cost"} <= shown.keys()
    [row] = (await call("GET", "/v1/activity", key=call.management)).json["data"]
    assert (row["model_permaslug"], row["endpoint_id"]) == ("acme/small", "")
    sums = (await call("GET", "/v1/activity?by=day", key=call.management)).json["data"]
    assert [each["model_permaslug"] for each in sums] == [None]
