"""What nobody here knows goes to OpenAI's Responses, and comes back, unchanged.

Keeps C22.
"""

import json
from typing import Any

import pytest

from tests.asgi import Exchange, request
from tests.gateways import Always, House, house
from tests.scripted import Scripted, frame
from tests.unit.routing.catalogs import endpoint, model, provider
from tests.unknown_fields import PIXEL, Draw, events, includes
from tollgate.ingress.shared.held_fields import HELD_OF_RESPONSES
from tollgate.providers.ports.formats import codec_of
from tollgate.web.chat_app import chat_app
from tollgate.web.http.cors import WebLimits

SEEDS = range(4)
PLAIN = {"model": "acme/large", "input": "Hi"}
USAGE = {"input_tokens": 9, "output_tokens": 3}
NEW_ITEM = {"type": "zz_call", "id": "zz_1", "status": "completed", "zz_works": [1]}


async def openai(*frames: Any, **dialect: Any) -> House:
    accepts = dict.fromkeys(("developer_role", "text_tools", "unknown_fields"), True)
    offer = endpoint("near", "m-1") | {"dialect": {**accepts, **dialect}}
    return await house(
        near=Scripted([frame(each) for each in frames or says_hello()]),
        codec=codec_of("openai_responses"),
        providers={"near": provider(codec="openai_responses")},
        models={
            "acme/large": model(
                offer,
                supports=("tools", "structured_output", "reasoning"),
                input=("text", "image"),
            )
        },
        aliases={},
        routes={},
    )


async def ask(home: House, body: Any, path: str = "/v1/responses") -> Exchange:
    app = chat_app(home.front, Always(home.gateway), WebLimits())
    sent = {"authorization": f"Bearer {home.secret}"}
    reply = await request(app, "POST", path, headers=sent, body=json.dumps(body).encode())
    assert reply.status == 200, reply.body
    return reply


def asked(draw: Draw) -> dict[str, Any]:
    """A request with unknown fields at every level."""
    new = draw.fields
    function = {"type": "function", "name": "weather", "parameters": {"type": "object"}, **new()}
    call = {"type": "function_call", "call_id": "call_1", "name": "weather", "arguments": "{}"}
    text = {"type": "input_text", "text": "Hi", **new()}
    picture = {"type": "input_image", "image_url": PIXEL, "detail": "low"}
    said = {"type": "output_text", "text": "Wait.", **new()}
    format_ = {"type": "json_schema", "name": "a", "schema": {"type": "object"}, **new()}
    return {
        "model": "acme/large",
        "text": {"format": format_, "verbosity": "low", **new()},
        "reasoning": {"effort": "low", **new()},
        "tools": [function, {"type": "custom", "name": "write", **new()}],
        "input": [
            {"role": "developer", "content": [text], **new()},
            {"role": "user", "content": [text, {**picture, **new()}], **new()},
            {"role": "assistant", "content": [said], **new()},
            {"role": "assistant", "content": "So.", **new()},
            {**call, **new()},
            {"type": "function_call_output", "call_id": "call_1", "output": [text], **new()},
            {"type": "zz_item", "id": "zz_2", "call_id": "c", **new()},
        ],
        **new(),
    }


def answered(draw: Draw) -> list[dict[str, Any]]:
    """A streamed answer with unknown fields at every level, unknown events and items."""
    new = draw.fields
    part = {"type": "output_text", "text": "It rains.", **new()}
    message = {"type": "message", "id": "msg_1", "role": "assistant", "content": [part], **new()}
    called = {"type": "function_call", "call_id": "call_2", "name": "weather", **new()}
    other = {"type": "zz_call", "id": "zz_1", **new()}
    begun = {"id": "resp_1", "status": "in_progress", "output": [], **new()}
    output = [message, other, {**called, "arguments": "{}"}]
    ended = {**begun, "status": "completed", "output": output, "usage": USAGE}
    added, done, at = "response.output_item.added", "response.output_item.done", "output_index"
    delta = {"type": "response.output_text.delta", at: 0, "delta": "It rains.", **new()}
    return [
        {"type": "response.created", "response": begun, **new()},
        {"type": added, at: 0, "item": {**message, "content": []}, **new()},
        {"type": "response.content_part.added", at: 0, "part": {**part, "text": ""}, **new()},
        {**delta, "content_index": 0},
        {"type": "response.output_text.done", at: 0, "text": "It rains.", **new()},
        {"type": "response.content_part.done", at: 0, "part": part, **new()},
        {"type": done, at: 0, "item": message, **new()},
        {"type": added, at: 1, "item": {**other, "zz_open": True}, **new()},
        {"type": "response.zz_call.delta", at: 1, "item_id": "zz_1", "delta": {}, **new()},
        {"type": done, at: 1, "item": other, **new()},
        {"type": added, at: 2, "item": {**called, "arguments": ""}, **new()},
        {"type": "response.function_call_arguments.delta", at: 2, "delta": "{}", **new()},
        {"type": "response.function_call_arguments.done", at: 2, "arguments": "{}", **new()},
        {"type": done, at: 2, "item": {**called, "arguments": "{}"}, **new()},
        {"type": "response.zz_event", "sequence_number": 99, **new()},
        {"type": "response.completed", "response": ended, **new()},
    ]


def says_hello(*items: Any) -> list[dict[str, Any]]:
    part = {"type": "output_text", "text": "Hello"}
    message = {"type": "message", "role": "assistant", "content": [part]}
    output = [message, *items]
    return [
        {"type": "response.created", "response": {"status": "in_progress"}},
        *(
            {"type": "response.output_item.done", "output_index": place, "item": item}
            for place, item in enumerate(output)
        ),
        {
            "type": "response.completed",
            "response": {"status": "completed", "output": output, "usage": USAGE},
        },
    ]


def told(tree: Any) -> Any:
    """A part of an answer without what the gateway states itself."""
    own = {"id", "usage", "output_index", "sequence_number"}
    match tree:
        case dict():
            named = tree if str(tree.get("type")).startswith("zz_") else {}
            return {
                name: told(value)
                for name, value in tree.items()
                if name not in own or name in named
            }
        case list():
            return [told(item) for item in tree]
        case _:
            return tree


@pytest.mark.parametrize("seed", SEEDS)
async def test_c22_unknown_fields_of_responses_reach_openai_and_come_back(seed: int) -> None:
    body, answer = asked(Draw(seed)), answered(Draw(-seed))
    home = await openai(*answer)
    reply = await ask(home, {**body, "stream": True})
    [sent] = home.near.requests
    del body["model"]
    assert includes(sent.body, body), (sent.body, body)
    assert "x-tollgate-adapted" not in reply.headers
    shown = events(reply)
    assert [each["sequence_number"] for each in shown] == list(range(len(shown)))
    waiting = [each for each in shown if each["type"] != "response.in_progress"]
    for part in answer:
        whole = next(each for each in waiting if each["type"] == part["type"])
        waiting.remove(whole)
        assert includes(whole, told(part)), (whole, part)
    assert waiting == []
    record = home.record
    assert "input[].content[]" in " ".join(record.forwarded)
    assert "response.created" in " ".join(record.forwarded)


@pytest.mark.parametrize("seed", SEEDS)
async def test_c22_unknown_fields_are_in_a_whole_response(seed: int) -> None:
    answer = answered(Draw(seed))
    whole = (await ask(await openai(*answer), asked(Draw(seed)))).json
    assert includes(whole, told(answer[-1]["response"]))


async def test_c22_an_item_of_unknown_type_does_not_end_a_paid_answer() -> None:
    home = await openai(*says_hello(NEW_ITEM), unknown_fields=False)
    first = (await ask(home, PLAIN)).json
    assert first["output"][1] == NEW_ITEM
    assert home.record.outcome == "ok"
    assert (home.record.usage.output_tokens, home.record.cost_nano_usd > 0) == (3, True)
    await ask(home, {**PLAIN, "input": [{"role": "user", "content": "Hi"}, *first["output"]]})
    assert home.near.requests[1].body["input"][-1] == NEW_ITEM


async def test_c22_chat_sends_an_item_of_unknown_type_back() -> None:
    home = await openai(*says_hello(NEW_ITEM))
    question = {"role": "user", "content": "Hi"}
    body = {"model": "acme/large", "messages": [question]}
    message = (await ask(home, body, "/v1/chat/completions")).json["choices"][0]["message"]
    await ask(home, {**body, "messages": [question, message, question]}, "/v1/chat/completions")
    assert NEW_ITEM in home.near.requests[1].body["input"]


@pytest.mark.parametrize(
    "item",
    [
        {"type": "zz_item", "zz": {"file_id": "file-1"}},
        {"type": "zz_item", "zz": [{"container": {"id": "cntr_1"}}]},
    ],
)
async def test_c22_an_item_that_may_name_a_stored_thing_is_left_out(item: Any) -> None:
    home = await openai()
    question = {"role": "user", "content": "Hi"}
    reply = await ask(home, {**PLAIN, "input": [question, item]})
    assert reply.headers["x-tollgate-adapted"] == "input[]:zz_item"
    assert home.near.requests[0].body["input"] == [question]


@pytest.mark.parametrize(
    "item",
    [
        {"type": "item_reference", "id": "msg_1"},
        {"type": "mcp_approval_response", "approve": True},
        {"type": "zz_item", "zz_file_id": "file-1"},
    ],
)
async def test_c22_a_made_up_detail_brings_no_item_that_the_gateway_refuses(item: Any) -> None:
    home = await openai()
    detail = {
        "type": "reasoning.encrypted",
        "index": 0,
        "format": "openai-items-v1",
        "data": json.dumps(item),
    }
    said = {"role": "assistant", "content": "So.", "reasoning_details": [detail]}
    question = {"role": "user", "content": "Hi"}
    body = {"model": "acme/large", "messages": [question, said, question]}
    await ask(home, body, "/v1/chat/completions")
    assert len(home.near.requests[0].body["input"]) == 3


async def test_c22_a_row_without_the_option_gets_no_unknown_field_of_responses() -> None:
    home = await openai(unknown_fields=False)
    content = [{"type": "input_text", "text": "Hi", "zz_b": 1}]
    body = {**PLAIN, "input": [{"role": "user", "content": content}], "zz_a": 1}
    reply = await ask(home, body)
    assert reply.headers["x-tollgate-adapted"] == "zz_a, input[].content[].zz_b"
    assert "zz_" not in json.dumps(home.near.requests[0].body)


@pytest.mark.parametrize("name", sorted(HELD_OF_RESPONSES))
async def test_c22_a_held_field_of_responses_is_never_forwarded(name: str) -> None:
    home = await openai()
    reply = await ask(home, {**PLAIN, name: "x", "zz_other": 1})
    assert reply.headers["x-tollgate-adapted"] == name
    body = home.near.requests[0].body
    assert (name in body, body["zz_other"]) == (False, 1)


async def test_c22_a_provider_cannot_replace_the_bill_or_the_model_of_responses() -> None:
    answer = says_hello()
    answer[-1]["response"] |= {"model": "theirs", "id": "theirs", "cost": 9, "credits_used": 9}
    whole = (await ask(await openai(*answer), PLAIN)).json
    assert whole["model"] == "acme/large"
    assert whole["id"].startswith("resp_5")
    assert 9 not in (whole["usage"]["cost"], whole.get("cost"), whole["credits_used"])
