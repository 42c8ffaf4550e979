"""What nobody here knows goes to a provider of the client's own format, and comes back, unchanged.

Keeps C22.
"""

import json
from typing import Any

import pytest

from tests.asgi import Exchange, request
from tests.gateways import Always, House, house
from tests.scripted import Scripted, ends, frame
from tests.unit.routing.catalogs import endpoint, model, provider
from tests.unknown_fields import PIXEL, Draw, events, includes
from tests.upstream.openai_chunks import chunk
from tollgate.ingress.shared.held_fields import HELD_OF_MESSAGES
from tollgate.providers.ports.formats import codec_of
from tollgate.web.chat_app import chat_app
from tollgate.web.http.cors import WebLimits

MESSAGES = "/v1/messages"
SEEDS = range(4)


HOSTS: dict[str, dict[str, Any]] = {
    "anthropic": {},
    "bedrock": {"transport": "bedrock_invoke", "region": "us-east-1", "base_url": None},
    "vertex": {"auth": "google", "project": "p", "location": "us-east5"},
}


async def claude(host: str, *frames: Any, codec: str = "anthropic", **dialect: Any) -> House:
    carrier = {"claude_carrier": host} if codec == "anthropic" else {}
    offer = endpoint("near", "m-1") | {"dialect": {**carrier, **dialect}}
    return await house(
        near=Scripted([frame(each) for each in frames]),
        codec=codec_of(codec),
        providers={"near": provider(codec=codec, **HOSTS.get(host, {}))},
        models={"acme/large": model(offer, supports=("tools",), input=("text", "image"))},
        aliases={},
        routes={},
    )


async def ask(home: House, body: Any, path: str = MESSAGES, **headers: str) -> Exchange:
    app = chat_app(home.front, Always(home.gateway), WebLimits())
    sent = {"authorization": f"Bearer {home.secret}", **headers}
    reply = await request(app, "POST", path, headers=sent, body=json.dumps(body).encode())
    assert reply.status == 200, reply.body
    return reply


def asked(draw: Draw) -> dict[str, Any]:
    """A request with unknown fields at every level."""
    new = draw.fields
    tool = {"name": "weather", "input_schema": {"type": "object"}, **new()}
    call = {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {}, **new()}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", **new()}
    result["content"] = [{"type": "text", "text": "Rain.", **new()}]
    picture = {
        "type": "base64",
        "media_type": "image/png",
        "data": PIXEL.partition(",")[2],
        **new(),
    }
    return {
        "model": "acme/large",
        "max_tokens": 100,
        "metadata": {"user_id": "u", **new()},
        "tools": [tool],
        "tool_choice": {"type": "auto", "disable_parallel_tool_use": True, **new()},
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Hi", **new()}], **new()},
            {"role": "assistant", "content": [call, {"type": "zz_new", **new()}], **new()},
            {"role": "user", "content": [result, {"type": "image", "source": picture, **new()}]},
        ],
        **new(),
    }


def answered(draw: Draw) -> list[dict[str, Any]]:
    """A streamed answer with unknown fields at every level, unknown events, blocks and deltas."""
    new = draw.fields
    message = {"type": "message", "role": "assistant", "id": "msg_1", "content": [], **new()}
    usage = {"input_tokens": 9, "output_tokens": 3}
    text = {"type": "text", "text": "", **new()}
    call = {"type": "tool_use", "id": "toolu_2", "name": "weather", "input": {}, **new()}
    begin, more, stop = ("content_block_start", "content_block_delta", "content_block_stop")
    return [
        {"type": "message_start", "message": {**message, "usage": usage}, **new()},
        {"type": begin, "index": 0, "content_block": text, **new()},
        {"type": more, "index": 0, "delta": {"type": "text_delta", "text": "It ", **new()}},
        {"type": "zz_event", **new()},
        {"type": more, "index": 0, "delta": {"type": "zz_delta", **new()}},
        {"type": more, "index": 0, "delta": {"type": "text_delta", "text": "rains."}, **new()},
        {"type": stop, "index": 0, **new()},
        {"type": begin, "index": 1, "content_block": call, **new()},
        {"type": more, "index": 1, "delta": {"type": "input_json_delta", "partial_json": "{}"}},
        {"type": stop, "index": 1},
        {"type": begin, "index": 2, "content_block": {"type": "zz_block", **new()}},
        {"type": more, "index": 2, "delta": {"type": "zz_delta", **new()}},
        {"type": stop, "index": 2},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "tool_use", "stop_sequence": None, **new()},
            "usage": usage,
            **new(),
        },
        {"type": "message_stop", **new()},
    ]


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("seed", SEEDS)
async def test_c22_unknown_fields_of_messages_reach_claude_and_come_back(
    host: str, seed: int
) -> None:
    body, answer = asked(Draw(seed)), answered(Draw(-seed))
    home = await claude(host, *answer)
    reply = await ask(home, {**body, "stream": True})
    [sent] = home.near.requests
    del body["model"]
    assert includes(sent.body, body)
    assert "x-tollgate-adapted" not in reply.headers
    # The gateway's own model, ids and bill take the place of the provider's.
    del answer[0]["message"]["id"], answer[0]["message"]["usage"], answer[-2]["usage"]
    shown = events(reply)
    assert len(shown) == len(answer)
    for whole, part in zip(shown, answer, strict=True):
        assert includes(whole, part), (whole, part)
    record = home.record
    assert "messages[].content[]" in " ".join(record.forwarded)
    assert "zz_event" in record.forwarded


@pytest.mark.parametrize("seed", SEEDS)
async def test_c22_unknown_fields_are_in_a_whole_message(seed: int) -> None:
    answer = answered(Draw(seed))
    home = await claude("anthropic", *answer)
    message = (await ask(home, asked(Draw(seed)))).json
    start, stop = answer[0]["message"], answer[-2]
    del start["id"], start["usage"], start["content"], stop["usage"], stop["type"]
    assert includes(message, start)
    assert includes(message, stop.pop("delta"))
    assert includes(message, stop)
    # The deltas have the text, and the name of a block is not in its delta.
    text, call, other = (answer[place]["content_block"] for place in (1, 7, 10))
    assert includes(message["content"], [{**text, "text": "It rains."}, call, other])


async def elsewhere() -> House:
    return await house(providers={"near": provider(), "far": provider()})


async def test_c22_elsewhere_unknown_fields_are_named() -> None:
    home = await elsewhere()
    body = {
        "model": "acme/large",
        "max_tokens": 9,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Hi", "zz_b": 1}]}],
        "zz_a": 1,
    }
    reply = await ask(home, body)
    assert reply.headers["x-tollgate-adapted"] == "zz_a, messages[].content[].zz_b"
    assert "zz_" not in json.dumps(home.near.requests[0].body)
    assert home.record.forwarded == ()


BETA = "dangerous-tool-use-2026-09-03"
SAFEGUARDS = [{"type": "dangerous_tool_use", "classifier_context": {"version": 1}}]
RESULTS = [{"type": "dangerous_tool_use", "status": {"type": "evaluated", "tool_uses": {}}}]
PLAIN = {"model": "acme/large", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]}


def says_hello(**delta: Any) -> list[dict[str, Any]]:
    usage = {"input_tokens": 9, "output_tokens": 3}
    text = {"type": "text_delta", "text": "Hello"}
    return [
        {"type": "message_start", "message": {"type": "message", "content": [], "usage": usage}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": text},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn", **delta}, "usage": usage},
        {"type": "message_stop"},
    ]


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("host", HOSTS)
async def test_c22_safeguards_reach_claude_and_their_results_come_back(
    host: str, stream: bool
) -> None:
    home = await claude(host, *says_hello(safeguard_results=RESULTS))
    body = {**PLAIN, "safeguards": SAFEGUARDS, "stream": stream}
    reply = await ask(home, body, **{"anthropic-beta": BETA})
    [sent] = home.near.requests
    betas = sent.body["anthropic_beta"] if host == "bedrock" else [sent.headers["anthropic-beta"]]
    assert (sent.body["safeguards"], betas) == (SAFEGUARDS, [BETA])
    assert (events(reply)[-2]["delta"] if stream else reply.json)["safeguard_results"] == RESULTS
    assert "x-tollgate-adapted" not in reply.headers


@pytest.mark.parametrize("stream", [True, False])
async def test_c22_safeguards_that_no_provider_answers_are_named_with_their_beta(
    stream: bool,
) -> None:
    """Claude Code turns server review off after the first answer without results.

    https://docs.litellm.ai/docs/claude_code_auto_mode (2026-10-14): `/status` then says so. A
    verdict in an answer of another format must therefore never look like one of Claude's.
    """
    forged = chunk({"content": "Hello"}) | {"safeguard_results": RESULTS}
    home = await house(
        near=Scripted([frame(forged), *ends()]),
        providers={"near": provider(dialect={"unknown_fields": True}), "far": provider()},
    )
    body = {**PLAIN, "safeguards": SAFEGUARDS, "stream": stream}
    reply = await ask(home, body, **{"anthropic-beta": BETA})
    assert reply.headers["x-tollgate-adapted"] == f"anthropic-beta:{BETA}, safeguards"
    assert "safeguard" not in json.dumps(home.near.requests[0].body)
    assert b"Hello" in reply.body
    assert b"safeguard_results" not in reply.body


async def test_c22_a_host_without_the_beta_gets_neither_beta_nor_field() -> None:
    home = await claude("vertex", *says_hello(), claude={"betas": ("context-1m",)})
    body = {**PLAIN, "safeguards": SAFEGUARDS, "zz_other": 1}
    reply = await ask(home, body, **{"anthropic-beta": BETA})
    assert sorted(reply.headers["x-tollgate-adapted"].split(", ")) == sorted(
        [f"anthropic-beta:{BETA}", "safeguards", "zz_other"]
    )
    [sent] = home.near.requests
    assert "safeguards" not in sent.body
    # The unknown field may belong to the beta that is left out.
    assert "zz_other" not in sent.body


@pytest.mark.parametrize("name", sorted(HELD_OF_MESSAGES))
async def test_c22_a_field_that_changes_the_bill_is_never_forwarded(name: str) -> None:
    home = await claude("anthropic", *says_hello())
    reply = await ask(home, {**PLAIN, name: "fast", "zz_other": 1})
    assert reply.headers["x-tollgate-adapted"] == name
    body = home.near.requests[0].body
    assert (name in body, body["zz_other"]) == (False, 1)


async def test_c22_a_provider_cannot_replace_the_bill_or_the_model() -> None:
    answer = says_hello(usage={"cost": 9}, stop_reason="end_turn")
    answer[0]["message"] |= {"model": "upstream", "id": "theirs", "cost": 9, "credits_used": 9}
    answer[-2]["cost"] = 9
    message = (await ask(await claude("anthropic", *answer), PLAIN)).json
    assert message["model"] == "acme/large"
    assert message["id"].startswith("msg_5")
    assert 9 not in (message["usage"]["cost"], message.get("cost"), message["credits_used"])


async def test_c22_unknown_content_of_an_answer_is_limited_in_size() -> None:
    answer = says_hello(zz_small="x", zz_large="x" * 1_000_000)
    message = (await ask(await claude("anthropic", *answer), PLAIN)).json
    assert ("zz_small" in message, message["content"][0]["text"]) == (False, "Hello")


@pytest.mark.parametrize(("fields", "billed"), [({}, 5_000), ({"zz_new": 1}, 99_000)])
async def test_c22_c65_the_models_context_bounds_the_prompt_of_an_unknown_field(
    fields: dict[str, Any], billed: int
) -> None:
    answer = says_hello()
    answer[0]["message"]["usage"] = answer[-2]["usage"] = {
        "input_tokens": 99_000,
        "output_tokens": 3,
    }
    home = await claude("anthropic", *answer)
    await ask(home, {**PLAIN, **fields})
    counted = home.record.usage.uncached_input_tokens or 0
    assert counted <= billed if not fields else counted == billed
