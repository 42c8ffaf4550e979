"""Runs of the gateway's tools in Messages: blocks of Anthropic's own types, which come back.

Keeps C37, C73, C80.
"""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from jsonschema import Draft202012Validator

from tests.message_stream import accumulated, events
from tests.references import published_schema
from tests.unit.ingress.samples import SERVED, record
from tests.unit.ingress.test_messages_render import FORMAT, renderer
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
from tollgate.core.content import Reasoning, ServerToolRun, Text, ToolCall
from tollgate.core.errors import RequestError
from tollgate.core.request import AssistantMessage, Message
from tollgate.core.response import Fold
from tollgate.core.server_tools import SERVER_TOOLS, RunResult
from tollgate.core.usage import Usage

ID = f"srvtoolu_tollgate_{SERVED.generation_id}"
CLOCK = ServerToolRun(id="call_3", tool="datetime", arguments='{"timezone":"UTC"}')
NOON = RunResult(content=(Text(text="Sunday, 12:00"),))
FULL = [
    Round((), ((search(), FOUND), (fetch(), FOUND), (CLOCK, NOON))),
    Round((Text(text="So."),), ((search("call_4"), AWAY),)),
    Round((Text(text="Done."),)),
]


def streamed(rounds: Sequence[Round]) -> bytes:
    writer = renderer()
    return b"".join(map(writer.feed, events_of(rounds))) + writer.close(record(usage=Usage()))


def message_of(rounds: Sequence[Round]) -> dict[str, Any]:
    """The whole message, which a stream amounts to as well."""
    fold = Fold()
    for event in events_of(rounds):
        fold.accept(event)
    whole = json.loads(renderer().whole([fold.response()], record(usage=Usage())))
    assert json.loads(json.dumps(accumulated(streamed(rounds)), default=float)) == whole
    message: dict[str, Any] = whole
    return message


def understood(content: list[Any], *results: Any) -> list[Message]:
    turns = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": content}]
    if results:
        turns.append({"role": "user", "content": list(results)})
    body = {"model": "m", "max_tokens": 5, "messages": turns}
    return [*FORMAT.parse(json.dumps(body).encode()).request.messages[1:]]


def test_c73_a_search_has_the_blocks_of_anthropics_own() -> None:
    use, result = message_of(FULL)["content"][:2]
    assert use == {
        "type": "server_tool_use",
        "id": f"{ID}_0",
        "name": "web_search",
        "input": {"query": "a thing"},
        "caller": {"type": "direct"},
    }
    (found,) = result["content"]
    assert found.pop("encrypted_content")
    assert result == {
        "type": "web_search_tool_result",
        "tool_use_id": f"{ID}_0",
        "caller": {"type": "direct"},
        "content": [
            {
                "type": "web_search_result",
                "url": "https://example.com/a",
                "title": "A page",
                "page_age": "2026-11-22",
            }
        ],
    }


def test_c73_a_page_that_was_read_has_the_blocks_of_anthropics_own() -> None:
    use, result = message_of(FULL)["content"][2:4]
    assert (use["name"], use["input"]) == ("web_fetch", {"url": "https://example.com/a"})
    assert result["content"] == {
        "type": "web_fetch_result",
        "url": "https://example.com/a",
        "retrieved_at": "2026-09-21T14:13:20Z",
        "content": {
            "type": "document",
            "source": {
                "type": "text",
                "media_type": "text/plain",
                "data": "[begin 7f] a find [end 7f]",
            },
            "title": "A page",
        },
    }


def test_c73_a_tool_without_a_type_of_anthropics_is_carried_unseen() -> None:
    carrier = message_of(FULL)["content"][4]
    assert (carrier["type"], carrier["thinking"]) == ("thinking", "")
    (answer, _) = understood([carrier])
    assert isinstance(answer, AssistantMessage)
    assert answer.content == (
        ToolCall(id=f"{ID}_2", name="datetime", arguments='{"timezone":"UTC"}'),
    )


@pytest.mark.parametrize(
    ("run", "error", "told"),
    [
        (search(), "invalid_input", "invalid_tool_input"),
        (search(), "too_many_requests", "too_many_requests"),
        (search(), "url_not_allowed", "unavailable"),
        (fetch(), "url_not_allowed", "url_not_allowed"),
        (fetch(), "query_too_long", "unavailable"),
    ],
)
def test_c73_a_failed_run_has_a_code_that_clients_know(
    run: ServerToolRun, error: str, told: str
) -> None:
    (_, result) = message_of([Round((), ((run, RunResult(error=error)),))])["content"]
    kind = f"{run.tool}_tool_result_error"
    assert result["content"] == {"type": kind, "error_code": told}


def test_c73_usage_counts_the_runs_that_succeeded() -> None:
    counts = {"web_search_requests": 1, "web_fetch_requests": 1}
    assert message_of(FULL)["usage"]["server_tool_use"] == counts
    assert "server_tool_use" not in message_of([Round((Text(text="Hi"),))])["usage"]


def test_c80_runs_validate_against_anthropics_schemas() -> None:
    Draft202012Validator(published_schema("anthropic.messages.response")).validate(message_of(FULL))
    schema = Draft202012Validator(published_schema("anthropic.messages.stream_event"))
    for event in events(streamed(FULL)):
        schema.validate(json.loads(json.dumps(event, default=float)))


@given(answers(SERVER_TOOLS))
def test_c73_an_answer_with_runs_survives_the_client(rounds: list[Round]) -> None:
    """A format without a place for it has no words of a failure, and of no finds."""
    kept = [
        Round(each.said, tuple((run, _kept(run, result)) for run, result in each.runs))
        for each in rounds
    ]
    ids = [f"{ID}_{n}" for n in range(sum(len(each.runs) for each in rounds))]
    assert unordered(understood(message_of(rounds)["content"])) == history_of(kept, ids)


def _kept(run: ServerToolRun, result: RunResult) -> RunResult:
    if run.tool not in ("web_search", "web_fetch"):
        return result
    if result.error is not None:
        return RunResult(content=(Text(text="The tool failed: unavailable."),), error="unavailable")
    if run.tool == "web_search" and not result.sources:
        return RunResult(content=(Text(text="Nothing was found."),))
    return result


def test_c73_what_a_client_kept_of_a_search_is_its_result() -> None:
    use, result = message_of(FULL)["content"][:2]
    del result["content"][0]["encrypted_content"]
    assert understood([use, result])[1].content == (Text(text="A page https://example.com/a"),)


def test_c73_a_run_without_its_result_has_failed() -> None:
    (_, failed) = understood(message_of(FULL)["content"][:1])
    assert failed.content == (Text(text="The tool failed: unavailable."),)


def test_c73_a_block_of_anthropics_own_tools_goes_back_to_claude_alone() -> None:
    foreign = [
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
    ]
    (answer,) = understood(foreign)
    assert all(isinstance(part, Reasoning) for part in answer.content)


@pytest.mark.parametrize(
    ("block", "field"),
    [
        ({"type": "server_tool_use", "id": f"{ID}_0", "name": "shell", "input": {}}, "name"),
        ({"type": "server_tool_use", "id": f"{ID}_0", "name": "web_fetch", "input": []}, "input"),
        ({"type": "web_search_tool_result", "tool_use_id": f"{ID}_0"}, "tool_use_id"),
    ],
)
def test_c73_a_run_of_another_shape_is_refused(block: dict[str, Any], field: str) -> None:
    with pytest.raises(RequestError) as refused:
        understood([block])
    assert refused.value.param == f"messages[1].content[0].{field}"


def test_c73_a_result_of_a_run_cannot_be_sent_a_second_time() -> None:
    forged = {"type": "tool_result", "tool_use_id": f"{ID}_0", "content": "forged"}
    with pytest.raises(RequestError) as refused:
        understood(message_of(FULL)["content"], forged)
    assert refused.value.param == "messages[2].content[0].tool_use_id"


def test_c73_a_changed_carrier_is_dropped() -> None:
    for signature in ("tollgate-run1.!", "tollgate-run1.", "tollgate-run1.e30="):
        carrier = {"type": "thinking", "thinking": "", "signature": signature}
        assert understood([carrier, {"type": "text", "text": "Hi"}]) == understood(
            [{"type": "text", "text": "Hi"}]
        )


def test_c73_the_callers_calls_of_a_round_stand_beside_the_runs() -> None:
    call = ToolCall(id="own_1", name="get_weather", arguments="{}")
    content = message_of([Round((call,), ((search(), FOUND),))])["content"]
    result = {"type": "tool_result", "tool_use_id": "own_1", "content": "rain"}
    answer, run, own = understood(content, result)
    assert [part.id for part in answer.content if isinstance(part, ToolCall)] == [
        "own_1",
        f"{ID}_0",
    ]
    assert [getattr(each, "call_id", None) for each in (run, own)] == [f"{ID}_0", "own_1"]
