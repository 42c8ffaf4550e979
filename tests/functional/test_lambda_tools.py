"""Tools through the deployed path: offered, called in a stream, answered in a second turn.

Keeps C10, C15, C31.
"""

import json
from typing import Any

import pytest
from openai import AsyncOpenAI

from tests.deployment import Deployment, Workspace
from tests.upstream import Received
from tests.upstream.speakers import BEDROCK, OPENAI, SPEAKERS, Call, Speaker

pytestmark = pytest.mark.asyncio(loop_scope="session")
each_speaker = pytest.mark.parametrize("speaker", SPEAKERS, ids=lambda speaker: speaker.name)

CALLS = [
    Call(id="call_1", name="weather", pieces=['{"city":', ' "Paris"', "}"]),
    Call(id="call_2", name="clock", pieces=['{"zone": "Eur', 'ope/Paris"}']),
]
PARAMETERS = {"weather": "city", "clock": "zone"}


def tool(name: str) -> Any:
    """A strict tool, which is what the SDK's own accumulator wants."""
    field = PARAMETERS[name]
    return {
        "type": "function",
        "function": {
            "name": name,
            "description": f"Tells the {name}",
            "strict": True,
            "parameters": {
                "type": "object",
                "properties": {field: {"type": "string"}},
                "required": [field],
                "additionalProperties": False,
            },
        },
    }


TOOLS = [tool("weather"), tool("clock")]
QUESTION: Any = {"role": "user", "content": "What is it like in Paris?"}


@each_speaker
async def test_c31_parallel_calls_stream_and_the_sdk_accumulates_them(
    deployment: Deployment, client: AsyncOpenAI, speaker: Speaker
) -> None:
    deployment.upstreams.of(speaker).enqueue(speaker.script(speaker.calls(CALLS)))
    async with client.chat.completions.stream(
        model=speaker.model, messages=[QUESTION], tools=TOOLS
    ) as stream:
        events = [event.type async for event in stream]
        final = await stream.get_final_completion()
    choice = final.choices[0]
    assert choice.finish_reason == "tool_calls"
    assert choice.message.content is None or choice.message.content == ""
    called = choice.message.tool_calls or []
    assert [(call.id, call.function.name) for call in called] == [
        (call.id, call.name) for call in CALLS
    ]
    assert [call.function.arguments for call in called] == [call.arguments for call in CALLS]
    assert "tool_calls.function.arguments.delta" in events


@each_speaker
async def test_c15_a_caller_without_parallel_calls_gets_one_and_its_record_counts_the_other(
    deployment: Deployment, workspace: Workspace, client: AsyncOpenAI, speaker: Speaker
) -> None:
    deployment.upstreams.of(speaker).enqueue(speaker.script(speaker.calls(CALLS)))
    async with client.chat.completions.stream(
        model=speaker.model, messages=[QUESTION], tools=TOOLS, parallel_tool_calls=False
    ) as stream:
        final = await stream.get_final_completion()
    choice = final.choices[0]
    assert choice.finish_reason == "tool_calls"
    called = choice.message.tool_calls or []
    assert [(call.id, call.function.arguments) for call in called] == [
        (CALLS[0].id, CALLS[0].arguments)
    ]
    record = await deployment.record(workspace, final.id)
    assert (record.withheld_calls, record.outcome) == (1, "ok")


@each_speaker
async def test_c31_indexes_are_dense_and_id_type_and_name_come_once(
    deployment: Deployment, client: AsyncOpenAI, speaker: Speaker
) -> None:
    deployment.upstreams.of(speaker).enqueue(speaker.script(speaker.calls(CALLS)))
    stream = await client.chat.completions.create(
        model=speaker.model, messages=[QUESTION], tools=TOOLS, stream=True
    )
    pieces = [
        piece
        async for chunk in stream
        for choice in chunk.choices
        for piece in choice.delta.tool_calls or ()
    ]
    assert sorted({piece.index for piece in pieces}) == [0, 1]
    for call, index in zip(CALLS, (0, 1), strict=True):
        mine = [piece for piece in pieces if piece.index == index]
        assert [piece.id for piece in mine if piece.id] == [call.id]
        assert [piece.type for piece in mine if piece.type] == ["function"]
        functions = [piece.function for piece in mine if piece.function]
        assert [function.name for function in functions if function.name] == [call.name]
        assert "".join(function.arguments or "" for function in functions) == call.arguments


@each_speaker
async def test_c10_c15_results_reach_the_provider_in_the_second_turn(
    deployment: Deployment, workspace: Workspace, client: AsyncOpenAI, speaker: Speaker
) -> None:
    upstream = deployment.upstreams.of(speaker)
    upstream.enqueue(speaker.script(speaker.calls(CALLS)))
    upstream.enqueue(speaker.script(speaker.text(["It", " is", " mild."])))
    first = await client.chat.completions.create(
        model=speaker.model,
        messages=[{"role": "system", "content": "Be brief."}, QUESTION],
        tools=TOOLS,
        tool_choice="required",
        parallel_tool_calls=True,
    )
    message = first.choices[0].message
    second = await client.chat.completions.create(
        model=speaker.model,
        messages=[
            {"role": "system", "content": "Be brief."},
            QUESTION,
            message.model_dump(exclude_none=True),  # type: ignore[list-item]  # as people send it back
            {"role": "tool", "tool_call_id": "call_1", "content": "18 degrees"},
            {"role": "tool", "tool_call_id": "call_2", "content": "noon"},
        ],
        tools=TOOLS,
    )
    assert second.choices[0].message.content == "It is mild."
    SEEN[speaker.name](*upstream.received)


def seen_by_openai(first: Received, second: Received) -> None:
    assert first.path == "/v1/chat/completions"
    assert first.json["tool_choice"] == "required"
    assert [offered["function"]["name"] for offered in first.json["tools"]] == ["weather", "clock"]
    history = second.json["messages"]
    assert [turn["role"] for turn in history] == ["system", "user", "assistant", "tool", "tool"]
    assert [call["id"] for call in history[2]["tool_calls"]] == ["call_1", "call_2"]
    assert [json.loads(call["function"]["arguments"]) for call in history[2]["tool_calls"]] == [
        {"city": "Paris"},
        {"zone": "Europe/Paris"},
    ]
    assert [(turn["tool_call_id"], turn["content"]) for turn in history[3:]] == [
        ("call_1", "18 degrees"),
        ("call_2", "noon"),
    ]


def seen_by_bedrock(first: Received, second: Received) -> None:
    assert first.path == "/model/us.bedrock.one-v1%3A0/converse-stream"
    assert first.headers["authorization"].startswith("AWS4-HMAC-SHA256 Credential=ASIACHAT")
    assert first.headers["x-amz-security-token"] == "emulated-session"
    assert first.json["toolConfig"]["toolChoice"] == {"any": {}}
    assert second.json["system"] == [{"text": "Be brief."}]
    question, calls, results = second.json["messages"]
    assert [question["role"], calls["role"], results["role"]] == ["user", "assistant", "user"]
    assert [block["toolUse"] for block in calls["content"]] == [
        {"toolUseId": "call_1", "name": "weather", "input": {"city": "Paris"}},
        {"toolUseId": "call_2", "name": "clock", "input": {"zone": "Europe/Paris"}},
    ]
    assert [block["toolResult"]["toolUseId"] for block in results["content"]] == [
        "call_1",
        "call_2",
    ]


SEEN = {OPENAI.name: seen_by_openai, BEDROCK.name: seen_by_bedrock}


async def test_c15_a_model_without_tools_refuses_them_before_anything_is_spent(
    deployment: Deployment, workspace: Workspace
) -> None:
    body = {"model": "keyless/one", "messages": [QUESTION], "tools": TOOLS}
    answer = await deployment.ask("POST", "/v1/chat/completions", workspace.inference, body=body)
    assert answer.status == 400
    assert answer.json["error"]["code"] == "invalid_request"
    await deployment.assert_books_closed(workspace, 0)


async def test_the_simulator_calls_tools_and_reads_their_results(client: AsyncOpenAI) -> None:
    first = await client.chat.completions.create(
        model="test/tools", messages=[QUESTION], tools=TOOLS
    )
    message = first.choices[0].message
    called = message.tool_calls or []
    assert [json.loads(call.function.arguments) for call in called if call.type == "function"] == [
        {"city": "text"},
        {"zone": "text"},
    ]
    second = await client.chat.completions.create(
        model="test/tools",
        messages=[
            QUESTION,
            message.model_dump(exclude_none=True),  # type: ignore[list-item]  # as people send it back
            {"role": "tool", "tool_call_id": called[0].id, "content": "mild"},
            {"role": "tool", "tool_call_id": called[1].id, "content": "noon"},
        ],
        tools=TOOLS,
    )
    assert second.choices[0].message.content == "The tool answered: noon"


NOTE: Any = {"type": "custom", "custom": {"name": "note", "format": {"type": "text"}}}


async def test_c15_a_tool_of_free_text_is_called_streamed_and_whole(client: AsyncOpenAI) -> None:
    asked: Any = {"model": "test/tools", "messages": [QUESTION], "tools": [NOTE]}
    whole = await client.chat.completions.create(**asked)
    message = whole.choices[0].message
    (call,) = message.tool_calls or []
    assert call.type == "custom"
    assert (call.custom.name, call.custom.input) == ("note", "text")
    pieces: list[Any] = []
    async for chunk in await client.chat.completions.create(**asked, stream=True):
        for choice in chunk.choices:
            pieces += [piece.model_dump() for piece in choice.delta.tool_calls or []]
    assert [piece["type"] for piece in pieces] == ["custom", *[None] * (len(pieces) - 1)]
    assert "".join(piece["custom"]["input"] for piece in pieces) == "text"
    result: Any = {"role": "tool", "tool_call_id": call.id, "content": "noted"}
    named = {"type": "custom", "custom": {"name": "note"}}
    allowed: Any = {"mode": "auto", "tools": [named]}
    second = await client.chat.completions.create(
        model="test/tools",
        messages=[QUESTION, message.model_dump(exclude_none=True), result],
        tools=[NOTE],
        tool_choice={"type": "allowed_tools", "allowed_tools": allowed},
    )
    assert second.choices[0].message.content == "The tool answered: noted"
