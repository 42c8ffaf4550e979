"""Runs of the gateway's tools in chat completions: told, streamed and sent back.

Keeps C20, C37, C73.
"""

from collections.abc import Sequence
from decimal import Decimal
from time import process_time
from typing import Any

import pytest
from hypothesis import given

from tests.chat_stream import accumulated, exact, frames
from tests.unit.ingress.requests import HELLO, body, refusal, understood
from tests.unit.ingress.samples import EPISODE_ID, SERVED, chat_completions, record
from tests.unit.ingress.tool_runs import (
    AWAY,
    FOUND,
    Round,
    answers,
    events_of,
    fetch,
    history_of,
    search,
    unordered,
)
from tollgate.core.content import Reasoning, Text, ToolCall
from tollgate.core.events import StreamEvent
from tollgate.core.request import AssistantMessage, GenerationRequest, ToolMessage
from tollgate.core.response import Fold
from tollgate.core.server_tools import SERVER_TOOLS, ServerTool, ServerToolId
from tollgate.core.usage import Usage
from tollgate.ingress.base import ParsedCall
from tollgate.ingress.chat_completions.render import ChatRenderer

TOLD = {
    "index": 0,
    "id": "call_1",
    "type": "server_tool",
    "name": "web_search",
    "arguments": '{"query":"a thing"}',
    "status": "completed",
    "result": "[begin 7f] a find [end 7f]",
    "sources": [
        {"url": "https://example.com/a", "title": "A page", "published": "2026-11-22"},
    ],
}


def renderer(told: Sequence[ServerToolId] = ()) -> ChatRenderer:
    tools = tuple(ServerTool(id=tool, events=tool in told) for tool in SERVER_TOOLS)
    request = GenerationRequest(model="test/echo", messages=(), server_tools=tools)
    call = ParsedCall(request=request, stream=True, episode_id=EPISODE_ID)
    return chat_completions().renderer(call, SERVED, credits_per_usd=Decimal(1))


def streamed(events: Sequence[StreamEvent], told: Sequence[ServerToolId] = ()) -> bytes:
    writer = renderer(told)
    sent = b"".join(map(writer.feed, events))
    return sent + writer.close(record(usage=Usage()))


def message_of(rounds: Sequence[Round], *, stream: bool = False) -> dict[str, Any]:
    """The message of an answer, which a stream amounts to as well."""
    events = events_of(rounds)
    fold = Fold()
    for event in events:
        fold.accept(event)
    whole = exact(renderer().whole([fold.response()], record(usage=Usage())))
    assert accumulated(streamed(events)) == whole
    message: dict[str, Any] = whole["choices"][0]["message"]
    return message


def test_c73_a_run_stands_beside_the_answer_with_what_the_model_was_given() -> None:
    rounds = [Round((), ((search(), FOUND),)), Round((Text(text="So."),))]
    message = message_of(rounds)
    assert message["content"] == "So."
    assert message["server_tool_calls"] == [TOLD]
    assert "tool_calls" not in message


def test_c73_a_failed_run_names_its_error() -> None:
    (run,) = message_of([Round((Text(text="Hm."),), ((search(), AWAY),))])["server_tool_calls"]
    assert (run["status"], run["error"]) == ("failed", "unavailable")
    assert run["result"] == "The search is away."
    assert run["after"] == {"text": 3}
    assert "sources" not in run


def test_c73_a_stream_without_events_has_one_frame_of_its_runs() -> None:
    rounds = [Round((), ((search(), FOUND), (fetch(), AWAY))), Round((Text(text="So."),))]
    deltas = [
        choice["delta"]
        for frame in frames(streamed(events_of(rounds)))
        for choice in frame["choices"]
    ]
    assert [[*delta] for delta in deltas] == [
        ["role", "content"],
        ["content"],
        ["server_tool_calls"],
        [],
    ]


def test_c73_events_add_the_progress_of_the_tools_that_were_asked_for_it() -> None:
    rounds = [Round((), ((search(), FOUND), (fetch(), AWAY)))]
    told = [
        event
        for frame in frames(streamed(events_of(rounds), told=["web_search"]))
        for choice in frame["choices"]
        for event in choice["delta"].get("server_tool_events", ())
    ]
    common = {"id": "call_1", "type": "server_tool", "tool": "web_search"}
    assert told == [
        {"index": 0, **common, "status": "started", "arguments": '{"query":"a thing"}'},
        {"index": 1, **common, "status": "completed", "sources": TOLD["sources"]},
    ]


@given(answers(SERVER_TOOLS))
def test_c73_an_answer_with_runs_survives_the_client(rounds: list[Round]) -> None:
    message = message_of(rounds)
    for detail in message.get("reasoning_details", ()):
        detail.pop("model", None)
    ids = [run.id for each in rounds for run, _ in each.runs]
    back = understood(messages=[*HELLO, message]).request.messages[1:]
    assert unordered(back) == history_of(rounds, ids)


def test_c73_the_callers_calls_of_a_round_stand_beside_the_runs() -> None:
    call = ToolCall(id="own_1", name="get_weather", arguments="{}")
    message = message_of([Round((Reasoning(text="Hm."), call), ((search(), FOUND),))])
    result = {"role": "tool", "tool_call_id": "own_1", "content": "rain"}
    answer, run, own = understood(messages=[*HELLO, message, result]).request.messages[1:]
    assert isinstance(answer, AssistantMessage)
    assert [part.id for part in answer.content if isinstance(part, ToolCall)] == ["call_1", "own_1"]
    assert isinstance(run, ToolMessage)
    assert isinstance(own, ToolMessage)
    assert (run.call_id, own.call_id) == ("call_1", "own_1")


def test_c73_a_result_of_a_run_cannot_be_sent_a_second_time() -> None:
    message = message_of([Round((), ((search(), FOUND),))])
    result = {"role": "tool", "tool_call_id": "call_1", "content": "forged"}
    assert refusal(body(messages=[*HELLO, message, result])).param == "messages[2].tool_call_id"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"name": "shell"}, "name"),
        ({"id": ""}, "id"),
        ({"arguments": {}}, "arguments"),
        ({"result": 5}, "result"),
        ({"after": {"text": -1}}, "after.text"),
        ({"status": "running"}, "status"),
    ],
)
def test_c73_a_run_of_another_shape_is_refused(change: dict[str, Any], field: str) -> None:
    message = {"role": "assistant", "content": "", "server_tool_calls": [{**TOLD, **change}]}
    refused = refusal(body(messages=[*HELLO, message]))
    assert refused.param == f"messages[1].server_tool_calls[0].{field}"


def test_c73_runs_come_back_by_the_hundred_and_no_further() -> None:
    runs = [{**TOLD, "id": f"c{n}", "after": {"text": n}} for n in range(512)]
    said = {"role": "assistant", "content": "a" * 4_000_000, "server_tool_calls": runs}
    began_s = process_time()
    assert len(understood(messages=[*HELLO, said]).request.messages) == 1 + 512 * 2 + 1
    assert process_time() - began_s < 1
    said["server_tool_calls"] = [*runs, TOLD]
    assert refusal(body(messages=[*HELLO, said])).param == "messages[1].server_tool_calls"


def test_c73_runs_among_thousands_of_texts_are_read_as_fast() -> None:
    runs = [{**TOLD, "id": f"c{n}", "after": {"text": 2 * n}} for n in range(512)]
    texts = [{"type": "text", "text": "a"} for _ in range(4096)]
    said = {"role": "assistant", "content": texts, "server_tool_calls": runs}
    began_s = process_time()
    messages = understood(messages=[*HELLO, said]).request.messages
    assert process_time() - began_s < 0.5
    parts = [part for message in messages for part in message.content if isinstance(part, Text)]
    assert [part.text for part in parts].count("a") == 4096
