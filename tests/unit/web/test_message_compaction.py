"""For clients of Messages, the gateway compacts what Claude would compact by itself.

Keeps C75.
"""

import json
from base64 import b64encode
from typing import Any

import pytest

from tests.asgi import Exchange, request
from tests.compacting import RECORD
from tests.gateways import Always, House, house
from tests.scripted import Scripted, answers, frame
from tests.unit.routing.catalogs import provider
from tests.upstream import messages_events
from tollgate.ingress.messages.parse import parse_request
from tollgate.providers.ports.formats import codec_of
from tollgate.web.chat_app import chat_app
from tollgate.web.http.cors import WebLimits

LONG: list[dict[str, Any]] = [
    {"role": "user", "content": "Draw a bridge."},
    {"role": "assistant", "content": "word " * 2_000},
    {"role": "user", "content": "Is it blue?"},
]
TRIGGER = {"type": "input_tokens", "value": 1_000}
BLOCK = {"type": "compaction", "content": RECORD}


def edits(**fields: Any) -> dict[str, Any]:
    return {"edits": [{"type": "compact_20260112", "trigger": TRIGGER} | fields]}


async def ask(home: House, messages: list[Any], **fields: Any) -> Exchange:
    body = {
        "model": "other/tools",
        "max_tokens": 99,
        "system": "Be curt.",
        "messages": messages,
        "context_management": edits(),
    }
    return await request(
        chat_app(home.front, Always(home.gateway), WebLimits()),
        "POST",
        "/v1/messages",
        headers={"x-api-key": home.secret, "anthropic-beta": "compact-2026-01-12"},
        body=json.dumps(body | fields).encode(),
    )


def events_of(reply: Exchange) -> list[dict[str, Any]]:
    frames = [piece.split(b"data: ")[1] for piece in reply.body.split(b"\n\n") if piece]
    return [json.loads(each) for each in frames]


def texts(home: House, number: int) -> list[str]:
    body: Any = home.far.requests[number].body
    return [each["content"] for each in body["messages"]]


@pytest.mark.parametrize("stream", [False, True])
async def test_c75_a_long_conversation_of_messages_is_compacted_before_its_answer(
    stream: bool,
) -> None:
    home = await house(far=Scripted(answers(RECORD), answers("It is."), answers("As the sea.")))
    reply = await ask(home, LONG, stream=stream)
    assert reply.status == 200, reply.body
    if stream:
        events = events_of(reply)
        starts = [each for each in events if each["type"] == "content_block_start"]
        assert [each["content_block"]["type"] for each in starts] == ["compaction", "text"]
        deltas = [each["delta"] for each in events if each["type"] == "content_block_delta"]
        assert (deltas[0]["type"], deltas[0]["content"]) == ("compaction_delta", RECORD)
        answered = [BLOCK, {"type": "text", "text": "It is."}]
    else:
        answered = reply.json["content"]
        assert answered == [BLOCK, {"type": "text", "text": "It is."}]
        assert reply.json["stop_reason"] == "end_turn"
        assert "context_management" not in reply.headers["x-tollgate-adapted"]
    assert texts(home, 0)[:2] == ["Be curt.", "Draw a bridge."]
    assert texts(home, 0)[-1].startswith("Write the record")
    system, record, newest = texts(home, 1)
    assert (system, newest) == ("Be curt.", "Is it blue?")
    assert record.endswith(RECORD)
    # Two generations, each with its bill.
    costs = [each.cost_nano_usd for each in home.stores.books.records.values()]
    assert len(costs) == 2
    assert all(costs)
    assert sum(costs) == home.spent_nano_usd
    # The block replaces what the client still sends before it.
    more = {"role": "user", "content": "How blue?"}
    again = await ask(home, [*LONG, {"role": "assistant", "content": answered}, more])
    assert [each["type"] for each in again.json["content"]] == ["text"]
    assert texts(home, 2) == ["Be curt.", record, "It is.", "How blue?"]


async def test_c75_a_pause_after_the_compaction_is_the_whole_answer() -> None:
    home = await house(far=Scripted(answers(RECORD), answers("It is.")))
    paused = edits(pause_after_compaction=True, instructions="Say what was drawn.")
    reply = await ask(home, LONG, context_management=paused)
    assert reply.json["content"] == [BLOCK]
    assert reply.json["stop_reason"] == "compaction"
    assert texts(home, 0)[-2:] == ["Is it blue?", "Say what was drawn."]
    assert len(home.stores.books.records) == 1
    continued = [{"role": "assistant", "content": [BLOCK]}, LONG[-1]]
    await ask(home, continued, context_management=paused)
    assert texts(home, 1)[2:] == ["Is it blue?"]


async def test_c75_short_conversations_of_messages_are_not_compacted() -> None:
    home = await house(far=Scripted(answers("It is.")))
    many = edits(trigger={"type": "input_tokens", "value": 50_000})
    reply = await ask(home, LONG, context_management=many)
    assert [each["type"] for each in reply.json["content"]] == ["text"]


async def test_c75_a_record_that_fails_fails_the_message_and_costs_nothing() -> None:
    home = await house(far=Scripted(answers(" ")))
    reply = await ask(home, LONG)
    assert reply.status == 502
    assert home.spent_nano_usd == 0


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"trigger": {"type": "input_tokens"}}, "trigger"),
        ({"trigger": {"type": "tool_uses", "value": 5}}, "trigger"),
        ({"trigger": {"type": "input_tokens", "value": True}}, "trigger"),
        ({"pause_after_compaction": "yes"}, "pause_after_compaction"),
        ({"instructions": 5}, "instructions"),
    ],
)
async def test_c75_a_bad_edit_names_its_field(fields: dict[str, Any], param: str) -> None:
    home = await house()
    reply = await ask(home, LONG, context_management=edits(**fields))
    assert reply.status == 400
    assert reply.json["error"]["param"] == f"context_management.edits[0].{param}"


async def test_c75_claude_compacts_long_conversations_by_itself() -> None:
    home = await house(
        near=Scripted([frame(event) for event in messages_events.text_answer("It is.")]),
        codec=codec_of("anthropic"),
        providers={slug: provider(codec="anthropic") for slug in ("near", "far")},
    )
    reply = await ask(home, LONG, model="acme/large")
    assert reply.json["content"] == [{"type": "text", "text": "It is."}]
    upstream: Any = home.near.requests[0].body
    assert upstream["context_management"] == edits()
    assert len(upstream["messages"]) == len(LONG)


def test_c75_a_picture_before_a_compaction_does_not_count_for_the_size_of_the_prompt() -> None:
    data = b64encode(b"\x89PNG\r\n\x1a\n" + bytes(90_000)).decode()
    source = {"type": "base64", "media_type": "image/png", "data": data}
    picture = {"role": "user", "content": [{"type": "image", "source": source}]}
    messages = [picture, {"role": "assistant", "content": [BLOCK]}, LONG[-1]]
    body = {"model": "m", "max_tokens": 9, "messages": messages}
    assert parse_request(json.dumps(body).encode()).request.size_bytes < 1_000
