"""A conversation is compacted on any model, and only its own workspace reads the result back.

Keeps C75.
"""

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.asgi import request
from tests.compacting import COMPACT, RECORD, RESPONSES, frames, open_client
from tests.gateways import FUNDS_NANO_USD, Always
from tests.scripted import answers, calls, ends
from tests.stores import funded_key
from tollgate.stores.ports.administration import NewKey
from tollgate.web.chat_app import chat_app
from tollgate.web.http.cors import WebLimits

TRIGGER = {"type": "compaction_trigger"}
LONG_AGO = [
    {"role": "developer", "content": "Be curt."},
    {"role": "user", "content": "Draw a bridge."},
    {"role": "assistant", "content": "It is drawn."},
    {"role": "user", "content": "Make it blue."},
]
CALL = {"type": "function_call", "call_id": "call_1", "name": "paint", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "call_1", "output": "painted"}
"""The output that `CALL` awaits."""
PAINT = {"type": "function", "name": "paint", "parameters": {"type": "object"}}


async def test_c75_a_conversation_becomes_the_users_messages_and_one_sealed_item() -> None:
    client = await open_client(answers(RECORD))
    reply = await client.ask(COMPACT, LONG_AGO, instructions="Help.", tools=[PAINT])
    assert reply.status == 200, reply.body
    assert reply.json["object"] == "response.compaction"
    kept = [item["content"][0]["text"] for item in reply.json["output"][:-1]]
    assert kept == ["Draw a bridge.", "Make it blue."]
    item = reply.json["output"][-1]
    assert set(item) == {"type", "id", "encrypted_content"}
    assert item["type"] == "compaction"
    assert b"bridge" not in item["encrypted_content"].encode()
    assert (reply.json["usage"]["input_tokens"], reply.json["usage"]["output_tokens"]) == (10, 2)
    sent: Any = client.home.far.requests[-1].body
    assert [each["content"] for each in sent["messages"][:5]] == [
        "Help.",
        *(each["content"] for each in LONG_AGO),
    ]
    assert sent["messages"][-1]["content"].startswith("Write the record")
    assert sent["tool_choice"] == "none"
    # The tools stay, since providers cache them before the conversation.
    assert [tool["function"]["name"] for tool in sent["tools"]] == ["paint"]


async def test_c75_it_is_held_and_billed_like_any_generation() -> None:
    client = await open_client(answers(RECORD))
    reply = await client.ask(COMPACT, LONG_AGO)
    record = client.home.record
    assert record.ingress_format == "responses_compact"
    assert record.cost_nano_usd == client.home.spent_nano_usd > 0
    assert record.held_nano_usd > record.cost_nano_usd
    assert reply.json["usage"]["cost"] == record.cost_nano_usd / 1e9


@pytest.mark.parametrize("model", ["other/tools", "acme/large"])
async def test_c75_what_comes_back_is_input_to_any_model(model: str) -> None:
    client = await open_client(answers(RECORD), answers("Blue it is."))
    compacted = await client.ask(COMPACT, LONG_AGO)
    client.model = model
    more = {"role": "user", "content": "And longer."}
    reply = await client.ask(RESPONSES, [*compacted.json["output"], more])
    assert reply.status == 200, reply.body
    requests = client.home.near.requests or client.home.far.requests
    body: Any = requests[-1].body
    texts = [message["content"] for message in body["messages"]]
    assert texts[:2] == ["Draw a bridge.", "Make it blue."]
    assert texts[2:3] == ["Be curt."]
    assert texts[3].endswith(RECORD)
    assert texts[4:] == ["And longer."]


@pytest.mark.parametrize("stream", [False, True])
async def test_c75_a_trigger_is_answered_by_exactly_one_item(stream: bool) -> None:
    client = await open_client(answers("Goal: ", "a bridge."), answers("Yes."))
    reply = await client.ask(RESPONSES, [*LONG_AGO, TRIGGER], stream=stream, store=False)
    if stream:
        events = frames(reply)
        assert [event["type"] for event in events] == [
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.output_item.done",
            "response.completed",
        ]
        done, response = events[3]["item"], events[-1]["response"]
        assert response["output"] == [done]
    else:
        response = reply.json
    assert response["status"] == "completed"
    [item] = response["output"]
    assert item["type"] == "compaction"
    # Alone, the item still has the user's messages and the instructions.
    await client.ask(RESPONSES, [item, {"role": "user", "content": "Go on."}])
    assert [each["content"] for each in client.prompt][:3] == [
        "Be curt.",
        "Draw a bridge.",
        "Make it blue.",
    ]
    assert client.prompt[3]["content"].endswith("Goal: a bridge.")


async def test_c75_a_session_is_compacted_again_and_again() -> None:
    client = await open_client(answers("First."), answers("Second."), answers("Third."))
    items: list[Any] = LONG_AGO
    for number in range(3):
        more = {"role": "user", "content": f"More {number}."}
        reply = await client.ask(RESPONSES, [*items, more, TRIGGER])
        items = reply.json["output"]
    reply = await client.ask(RESPONSES, [*items, {"role": "user", "content": "Last."}])
    texts = [each["content"] for each in client.prompt]
    assert [text for text in texts if len(text) < 20] == [
        "Be curt.",
        "Draw a bridge.",
        "Make it blue.",
        "More 0.",
        "More 1.",
        "More 2.",
        "Last.",
    ]
    # Each record replaces the record before it.
    assert [text.splitlines()[-1] for text in texts if len(text) > 20] == ["Third."]


async def test_c75_an_item_of_another_workspace_or_a_changed_one_is_refused() -> None:
    client = await open_client(answers(RECORD))
    item = (await client.ask(RESPONSES, [*LONG_AGO, TRIGGER])).json["output"][0]
    sealed = item["encrypted_content"]
    key = NewKey(workspace_id="other", label="agent")
    stranger, _ = await funded_key(client.home.stores, FUNDS_NANO_USD, key)
    changed = sealed[:-8] + ("A" if sealed[-8] != "A" else "B") + sealed[-7:]
    for secret, content in (
        (stranger, sealed),
        (client.secret, changed),
        (client.secret, "tollgate2."),
        (client.secret, "tollgate2.AAAA"),
        (client.secret, "gAAAAB"),
    ):
        other = replace(client, secret=secret)
        reply = await other.ask(RESPONSES, [{**item, "encrypted_content": content}])
        assert (reply.status, reply.error["code"]) == (400, "invalid_request")
        assert reply.error["param"] == "input[0].encrypted_content"
        assert b"bridge" not in reply.body
    assert len(client.home.far.requests) == 1


@pytest.mark.parametrize(
    ("input_", "param"),
    [
        ([TRIGGER, *LONG_AGO], "input[0]"),
        ([TRIGGER], "input"),
        ([{"type": "compaction"}], "input[0].encrypted_content"),
        ([{"type": "compaction", "encrypted_content": 5}], "input[0].encrypted_content"),
        (None, "input"),
        (5, "input"),
    ],
)
async def test_c75_bad_input_names_its_field(input_: Any, param: str) -> None:
    client = await open_client(answers(RECORD))
    for path in (RESPONSES, COMPACT):
        reply = await client.ask(path, input_)
        assert (reply.status, reply.error["param"]) == (400, param)
    assert client.home.far.requests == []


async def test_c75_a_trigger_spelled_with_escapes_is_refused_and_not_answered() -> None:
    client = await open_client(answers(RECORD))
    body = json.dumps({"model": client.model, "input": [*LONG_AGO, TRIGGER]})
    app = chat_app(
        client.home.front,
        Always(client.home.gateway),
        WebLimits(),
        seals=client.seals,
    )
    reply = await request(
        app,
        "POST",
        RESPONSES,
        headers={"authorization": f"Bearer {client.secret}"},
        body=body.replace("compaction", r"\u0063ompaction").encode(),
    )
    assert (reply.status, reply.error["param"]) == (400, "input[4]")


async def test_c75_a_call_that_awaits_its_output_survives() -> None:
    client = await open_client(answers(RECORD), answers("Painted."))
    thought = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Paint it."}]}
    items = [*LONG_AGO, thought, CALL]
    reply = await client.ask(COMPACT, items, tools=[PAINT])
    assert all("tool_calls" not in message for message in client.prompt)
    reply = await client.ask(RESPONSES, [*reply.json["output"], OUTPUT], tools=[PAINT])
    assert reply.status == 200, reply.body
    assert client.prompt[-3]["content"].endswith(RECORD)
    assert client.prompt[-2]["tool_calls"][0]["id"] == "call_1"
    assert client.prompt[-1] == {"role": "tool", "tool_call_id": "call_1", "content": "painted"}


async def test_c75_tools_that_the_input_added_survive() -> None:
    client = await open_client(answers(RECORD), answers("Yes."))
    added = {"type": "additional_tools", "tools": [PAINT]}
    reply = await client.ask(RESPONSES, [added, *LONG_AGO, CALL, OUTPUT, TRIGGER])
    await client.ask(RESPONSES, [*reply.json["output"], {"role": "user", "content": "Go on."}])
    body: Any = client.home.far.requests[-1].body
    assert [tool["function"]["name"] for tool in body["tools"]] == ["paint"]


async def test_c75_an_answer_without_a_record_costs_nothing() -> None:
    client = await open_client([*calls("paint"), *ends("tool_calls")])
    reply = await client.ask(RESPONSES, [*LONG_AGO, TRIGGER], tools=[PAINT])
    assert (reply.status, reply.error["code"]) == (502, "provider_unavailable")
    assert client.home.record.outcome == "error"
    assert client.home.spent_nano_usd == 0


async def test_c75_a_repeated_key_gets_the_same_item_and_no_second_bill() -> None:
    client = await open_client(answers(RECORD))
    first = await client.ask(RESPONSES, [*LONG_AGO, TRIGGER], claim="k")
    again = await client.ask(RESPONSES, [*LONG_AGO, TRIGGER], claim="k")
    assert again.json["output"] == first.json["output"]
    assert again.headers["x-idempotent-replay"] == "true"
    assert len(client.home.far.requests) == 1


async def test_c75_a_stored_conversation_continues_from_its_item_alone() -> None:
    client = await open_client(
        answers("It is drawn."), answers(RECORD), answers("Yes."), response_days=7
    )
    first = await client.ask(RESPONSES, "Draw a bridge.")
    second = await client.ask(RESPONSES, [TRIGGER], previous_response_id=first.json["id"])
    assert second.json["store"] is True
    await client.ask(RESPONSES, "Go on.", previous_response_id=second.json["id"])
    texts = [each["content"] for each in client.prompt]
    assert (texts[0], texts[2]) == ("Draw a bridge.", "Go on.")
    assert texts[1].endswith(RECORD)
    compacted = await client.ask(COMPACT, None, previous_response_id=first.json["id"])
    assert compacted.status == 200, compacted.body


def of_codex(kind: str, **fields: Any) -> dict[str, Any]:
    """Return an item as Codex 0.171.0 sends it, with metadata of its own."""
    passed = {"turn_id": "01a21e19-24d8-77d1-baf0-22e1b4a6c1a1"}
    return {"type": kind, "internal_chat_message_metadata_passthrough": passed, **fields}


def said(role: str, text: str) -> dict[str, Any]:
    content = [{"type": "input_text", "text": text}]
    return of_codex("message", id="msg_01a21e19", role=role, content=content)


async def test_c75_the_request_of_codex_is_answered_as_codex_reads_it() -> None:
    client = await open_client(answers(RECORD), answers("Done."))
    instructions, task = said("developer", "You are a coding agent."), said("user", "Write one.")
    called = {"id": "fc_1", "name": "exec_command", "arguments": "{}", "call_id": "call_1"}
    history = [
        instructions,
        said("user", "<environment_context>\n</environment_context>"),
        task,
        of_codex("function_call", **called),
        of_codex("function_call_output", id="fco_1", call_id="call_1", output="Chunk ID: 1"),
    ]
    fields: dict[str, Any] = {
        "stream": True,
        "tools": [{**PAINT, "name": "exec_command", "strict": False}],
        "tool_choice": "auto",
        "parallel_tool_calls": True,
        "reasoning": {"summary": "auto"},
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "prompt_cache_key": "01a21e19-2361-72b3-b23b-baf219647c57",
        "client_metadata": {"turn_id": "01a21e19-24d8-77d1-baf0-22e1b4a6c1a1"},
    }
    events = frames(await client.ask(RESPONSES, [*history, TRIGGER], **fields))
    [item] = [each["item"] for each in events if each["type"] == "response.output_item.done"]
    assert (item["type"], events[-1]["type"]) == ("compaction", "response.completed")
    assert events[-1]["response"]["usage"]["total_tokens"] == 12
    # Codex keeps the users' messages, states its instructions again and adds the item.
    await client.ask(RESPONSES, [instructions, task, item], **fields)
    texts = [each["content"] for each in client.prompt]
    assert texts[:2] == ["You are a coding agent.", "Write one."]
    assert texts[2].startswith("<environment_context>")
    assert texts[3].endswith(RECORD)
    assert len(texts) == 4
