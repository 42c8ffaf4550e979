"""What nobody here knows goes to a server of chat completions, and comes back, unchanged.

Keeps C22.
"""

import json
from typing import Any

import pytest

from tests.asgi import Exchange, request
from tests.gateways import Always, House, house
from tests.scripted import Scripted, answers, frame
from tests.unit.routing.catalogs import endpoint, model, provider
from tests.unknown_fields import PIXEL, Draw, events, includes
from tests.upstream.openai_chunks import call_delta, chunk, usage
from tollgate.ingress.shared.held_fields import HELD_OF_CHAT
from tollgate.web.chat_app import chat_app
from tollgate.web.http.cors import WebLimits

SEEDS = range(4)
PLAIN = {"model": "acme/large", "messages": [{"role": "user", "content": "Hi"}]}


async def server(*frames: Any, **dialect: Any) -> House:
    offer = endpoint("near", "m-1") | {"dialect": {"unknown_fields": True, **dialect}}
    return await house(
        near=Scripted([frame(each) for each in frames] or answers("Hello")),
        providers={"near": provider()},
        models={
            "acme/large": model(
                offer, supports=("tools", "structured_output"), input=("text", "image")
            )
        },
        aliases={},
        routes={},
    )


async def ask(home: House, body: Any) -> Exchange:
    app = chat_app(home.front, Always(home.gateway), WebLimits())
    sent = {"authorization": f"Bearer {home.secret}"}
    content = json.dumps(body).encode()
    reply = await request(app, "POST", "/v1/chat/completions", headers=sent, body=content)
    assert reply.status == 200, reply.body
    return reply


def asked(draw: Draw) -> dict[str, Any]:
    """A request with unknown fields at every level."""
    new = draw.fields
    schema = {"name": "a", "schema": {"type": "object"}, **new()}
    function = {"name": "weather", "parameters": {"type": "object"}, **new()}
    called = {"name": "weather", "arguments": "{}", **new()}
    call = {"id": "call_1", "type": "function", "function": called, **new()}
    picture = {"type": "image_url", "image_url": {"url": PIXEL, **new()}, **new()}
    text = {"type": "text", "text": "Hi", **new()}
    return {
        "model": "acme/large",
        "stream_options": {"include_usage": True, **new()},
        "response_format": {"type": "json_schema", "json_schema": schema, **new()},
        "tools": [{"type": "function", "function": function, **new()}],
        "messages": [
            {"role": "system", "content": [text], **new()},
            {"role": "user", "content": [text, picture], **new()},
            {"role": "assistant", "content": [text], "tool_calls": [call], **new()},
            {"role": "tool", "tool_call_id": "call_1", "content": [text], **new()},
        ],
        **new(),
    }


def answered(draw: Draw) -> list[dict[str, Any]]:
    """A streamed answer with unknown fields at every level of its chunks."""
    new = draw.fields
    called = call_delta(id_="call-1", name="weather", arguments="{}", type_="function")
    called["function"] |= new()
    chunks = [
        chunk({"role": "assistant", "content": ""}),
        chunk({"content": "It ", **new()}),
        chunk({"content": "rains.", **new()}),
        chunk({"tool_calls": [called | new()]}),
        chunk({}, finish="tool_calls"),
    ]
    for each in chunks:
        each["choices"][0] |= new()
    return [*(each | new() for each in chunks), chunk(usage=usage(10, 2)) | new()]


def merged(*trees: Any) -> Any:
    """What objects have together; a later value counts."""
    whole: dict[str, Any] = {}
    for tree in trees:
        whole |= tree
    return whole


def unknown(tree: Any) -> dict[str, Any]:
    return {name: value for name, value in tree.items() if name.startswith("zz_")}


def levels(chunks: list[Any]) -> list[list[Any]]:
    """The chunks, their choices and their deltas."""
    choices = [choice for each in chunks for choice in each["choices"]]
    return [chunks, choices, [choice["delta"] for choice in choices]]


@pytest.mark.parametrize("seed", SEEDS)
async def test_c22_unknown_fields_of_chat_reach_the_server_and_come_back(seed: int) -> None:
    body, answer = asked(Draw(seed)), answered(Draw(-seed))
    home = await server(*answer)
    reply = await ask(home, {**body, "stream": True})
    [sent] = home.near.requests
    del body["model"]
    assert includes(sent.body, body)
    assert "x-tollgate-adapted" not in reply.headers
    shown = events(reply)
    for levels_shown, levels_sent in zip(levels(shown), levels(answer), strict=True):
        assert merged(*map(unknown, levels_shown)) == merged(*map(unknown, levels_sent))
    [piece] = answer[3]["choices"][0]["delta"]["tool_calls"]
    calls = [
        each["choices"][0]["delta"]["tool_calls"]
        for each in shown
        if each["choices"] and "tool_calls" in each["choices"][0]["delta"]
    ]
    assert includes(calls[0], [{**unknown(piece), "function": unknown(piece["function"])}])
    assert "messages[].content[]" in " ".join(home.record.forwarded)
    assert "choices" in home.record.forwarded


@pytest.mark.parametrize("seed", SEEDS)
async def test_c22_unknown_fields_are_in_a_whole_completion(seed: int) -> None:
    answer = answered(Draw(seed))
    whole = (await ask(await server(*answer), asked(Draw(seed)))).json
    choices = [each["choices"][0] for each in answer if each["choices"]]
    assert includes(whole, merged(*map(unknown, answer)))
    assert includes(whole["choices"][0], merged(*map(unknown, choices)))
    message = whole["choices"][0]["message"]
    assert includes(message, merged(*(unknown(each["delta"]) for each in choices)))
    [piece] = choices[3]["delta"]["tool_calls"]
    [call] = message["tool_calls"]
    assert includes(call, {**unknown(piece), "function": unknown(piece["function"])})
    assert "index" not in call


async def test_c22_a_repeated_field_is_sent_once_and_the_choices_are_told_apart() -> None:
    def says(choice: int, text: str) -> dict[str, Any]:
        each = chunk({"content": text})
        each["choices"][0] |= {"index": choice, "zz_choice": choice}
        return each | {"zz_constant": 1}

    parts = [says(place % 2, word) for place, word in enumerate("abcdefghij")]
    ends = [chunk({}, finish="stop"), chunk({}, finish="stop"), chunk(usage=usage(10, 2))]
    ends[1]["choices"][0]["index"] = 1
    home = await server(*parts, *ends, native_choices=True)
    shown = events(await ask(home, {**PLAIN, "n": 2, "stream": True}))
    stated = [each["choices"][0] for each in shown if "zz_constant" in each]
    assert [(each["index"], each["zz_choice"]) for each in stated] == [(0, 0), (1, 1)]


async def test_c22_a_row_without_the_option_gets_no_unknown_field() -> None:
    answer = [chunk({"content": "Hello", "zz_c": 1}, finish="stop"), chunk(usage=usage(10, 2))]
    home = await server(*answer, unknown_fields=False)
    message = {"role": "user", "content": [{"type": "text", "text": "Hi", "zz_b": 1}]}
    reply = await ask(home, {**PLAIN, "messages": [message], "zz_a": 1})
    assert reply.headers["x-tollgate-adapted"] == "zz_a, messages[].content[].zz_b"
    assert "zz_" not in json.dumps(home.near.requests[0].body)
    assert "zz_c" not in reply.body.decode()
    assert home.record.forwarded == ()


@pytest.mark.parametrize("name", sorted(HELD_OF_CHAT))
async def test_c22_a_held_field_of_chat_is_never_forwarded(name: str) -> None:
    home = await server()
    reply = await ask(home, {**PLAIN, name: "x", "zz_other": 1})
    assert reply.headers["x-tollgate-adapted"] == name
    body = home.near.requests[0].body
    assert (name in body, body["zz_other"]) == (False, 1)


@pytest.mark.parametrize(
    "fields",
    [
        {"zz_file_id": "file-1"},
        {"zz_deep": [{"conversation": {"id": "conv_1"}}]},
        {"zz_deep": {"zz_more": {"vector_store_ids": ["vs_1"]}}},
    ],
)
async def test_c22_a_field_that_may_name_a_stored_thing_is_never_forwarded(fields: Any) -> None:
    home = await server()
    part = {"type": "text", "text": "Hi", **fields}
    body = {**PLAIN, "messages": [{"role": "user", "content": [part]}], **fields, "zz_other": 1}
    reply = await ask(home, body)
    [name] = fields
    assert reply.headers["x-tollgate-adapted"] == f"{name}, messages[].content[].{name}"
    sent = home.near.requests[0].body
    assert (name in json.dumps(sent), sent["zz_other"]) == (False, 1)


async def test_c22_a_server_cannot_replace_the_bill_or_the_model() -> None:
    answer = chunk({"content": "Hello"}, finish="stop") | {"cost": 9, "credits_used": 9}
    home = await server(answer | {"model": "theirs", "id": "theirs"}, chunk(usage=usage(10, 2)))
    whole = (await ask(home, PLAIN)).json
    assert whole["model"] == "acme/large"
    assert whole["id"].startswith("gen-")
    assert 9 not in (whole["usage"]["cost"], whole.get("cost"), whole["credits_used"])


async def test_c22_an_object_that_the_gateway_does_not_send_has_no_unknown_fields() -> None:
    home = await server(stream_usage=False)
    reply = await ask(home, {**PLAIN, "stream_options": {"zz_a": 1}})
    assert reply.headers["x-tollgate-adapted"] == "stream_options.zz_a"
    assert "stream_options" not in home.near.requests[0].body
