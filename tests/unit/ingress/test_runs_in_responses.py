"""Runs of the gateway's tools in Responses: items of OpenAI's own types, which come back.

Keeps C37, C73, C80.
"""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from jsonschema import Draft202012Validator

from tests.references import published_schema
from tests.response_stream import accumulated_response, response_events
from tests.unit.ingress.responses_samples import ASKED, FORMAT, Replay, renderer
from tests.unit.ingress.samples import SERVED, record
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
from tollgate.core.content import ServerToolRun, Text, ToolCall
from tollgate.core.errors import RequestError
from tollgate.core.request import AssistantMessage, Message
from tollgate.core.response import Fold
from tollgate.core.server_tools import SERVER_TOOLS, RunResult
from tollgate.core.usage import Usage
from tollgate.ingress.responses.parse import parse_response_object
from tollgate.ingress.responses.stored import StoredTurns

CLOCK = ServerToolRun(id="call_3", tool="datetime", arguments='{"timezone":"UTC"}')
NOON = RunResult(content=(Text(text="Sunday, 12:00"),))
DONE = "response.output_item.done"
FULL = [
    Round((), ((search(), FOUND), (fetch(), FOUND), (CLOCK, NOON))),
    Round((Text(text="So."),), ((search("call_4"), AWAY),)),
    Round((Text(text="Done."),)),
]


def streamed(rounds: Sequence[Round]) -> bytes:
    writer = renderer()
    return b"".join(map(writer.feed, events_of(rounds))) + writer.close(record(usage=Usage()))


def frames_of(stream: bytes) -> list[dict[str, Any]]:
    frames = stream.split(b"\n\n")[:-1]
    return [json.loads(frame.partition(b"\ndata: ")[2]) for frame in frames]


def reply_to(rounds: Sequence[Round]) -> dict[str, Any]:
    """The whole response, which a stream amounts to as well."""
    fold = Fold()
    for event in events_of(rounds):
        fold.accept(event)
    whole = json.loads(renderer().whole([fold.response()], record(usage=Usage())))
    assert json.loads(json.dumps(accumulated_response(streamed(rounds)), default=float)) == whole
    reply: dict[str, Any] = whole
    return reply


def output_of(rounds: Sequence[Round]) -> list[dict[str, Any]]:
    output: list[dict[str, Any]] = reply_to(rounds)["output"]
    return output


def understood(items: list[Any]) -> list[Message]:
    asked = ASKED | {"input": [{"role": "user", "content": "Hi"}, *items]}
    return [*FORMAT.parse(json.dumps(asked).encode()).request.messages[1:]]


def test_c73_a_search_is_an_item_of_openais_type() -> None:
    item = output_of(FULL)[0]
    assert item.pop("encrypted_content")
    assert item == {
        "type": "web_search_call",
        "id": f"ws_{SERVED.generation_id}_0",
        "status": "completed",
        "action": {
            "type": "search",
            "query": "a thing",
            "queries": ["a thing"],
            "sources": [{"type": "url", "url": "https://example.com/a"}],
        },
    }


def test_c73_a_page_that_was_read_is_an_item_of_openais_type() -> None:
    item = output_of(FULL)[1]
    assert item["type"] == "web_search_call"
    assert item["action"] == {"type": "open_page", "url": "https://example.com/a"}


def test_c73_a_tool_without_a_type_of_openais_is_a_call_of_the_gateway() -> None:
    assert output_of(FULL)[2] == {
        "type": "mcp_call",
        "id": f"mcp_{SERVED.generation_id}_2",
        "status": "completed",
        "server_label": "tollgate",
        "name": "datetime",
        "arguments": '{"timezone":"UTC"}',
        "output": "Sunday, 12:00",
        "error": None,
    }


def test_c73_a_failed_run_says_so() -> None:
    assert [item["status"] for item in output_of(FULL)] == [
        *["completed"] * 4,
        "failed",
        "completed",
    ]


def test_c73_the_events_of_a_search_are_openais() -> None:
    events = response_events(streamed([Round((), ((search(), FOUND),))]))
    assert [event["type"] for event in events] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.web_search_call.in_progress",
        "response.web_search_call.searching",
        "response.web_search_call.completed",
        "response.output_item.done",
        "response.completed",
    ]


def test_c73_a_run_is_told_as_it_ends_not_with_the_next_item() -> None:
    writer = renderer()
    one_round = [Round((Text(text="So."),), ((search(), FOUND), (CLOCK, NOON)))]
    so_far = b"".join(map(writer.feed, events_of(one_round)[:-1]))
    done = [event["output_index"] for event in frames_of(so_far) if event["type"] == DONE]
    assert done == [0, 2, 1]
    assert DONE.encode() not in writer.close(record(usage=Usage()))


def test_c80_runs_validate_against_openais_schemas() -> None:
    whole = Draft202012Validator(published_schema("openai.responses.response"))
    event = Draft202012Validator(published_schema("openai.responses.stream_event"))
    whole.validate(reply_to(FULL))
    for each in frames_of(streamed(FULL)):
        event.validate(each)


def test_c80_the_sdk_of_openai_reads_runs() -> None:
    client = Replay(streamed(FULL), "text/event-stream").client
    with client.responses.stream(model="m", input="Hi") as stream:
        final = stream.get_final_response()
    assert [item.type for item in final.output] == [item["type"] for item in output_of(FULL)]
    sent_back = [item.to_dict(mode="json") for item in final.output]
    assert understood(sent_back) == understood(output_of(FULL))


@given(answers(SERVER_TOOLS))
def test_c73_an_answer_with_runs_survives_the_client(rounds: list[Round]) -> None:
    output = output_of(rounds)
    ids = [item["id"] for item in output if item["type"] in ("web_search_call", "mcp_call")]
    assert unordered(understood(output)) == history_of(rounds, ids)


def test_c73_a_search_that_was_not_run_here_is_left_out() -> None:
    foreign = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {}}
    for sealed in (None, "b3BlbmFp", "tollgate-run1.!", "tollgate-run1.e30=", "tollgate-run1."):
        item = foreign | ({"encrypted_content": sealed} if sealed else {})
        asked = ASKED | {"input": [{"role": "user", "content": "Hi"}, item]}
        call = FORMAT.parse(json.dumps(asked).encode())
        assert len(call.request.messages) == 1
        assert call.ignored == ("input[]:web_search_call",)


@pytest.mark.parametrize(
    ("change", "field"),
    [({"server_label": "else"}, "server_label"), ({"name": "shell"}, "name"), ({"id": ""}, "id")],
)
def test_c73_a_run_of_another_shape_is_refused(change: dict[str, Any], field: str) -> None:
    run = output_of(FULL)[2] | change
    with pytest.raises(RequestError) as refused:
        understood([run])
    assert refused.value.param == f"input[1].{field}"


def test_c73_the_callers_calls_of_a_round_stand_beside_the_runs() -> None:
    call = ToolCall(id="own_1", name="get_weather", arguments="{}")
    output = output_of([Round((call,), ((search(), FOUND),))])
    said = {"type": "function_call_output", "call_id": "own_1", "output": "rain"}
    later = {"role": "assistant", "content": "Well."}
    answer, run, own = understood([*output, said])
    assert isinstance(answer, AssistantMessage)
    assert [part.id for part in answer.content if isinstance(part, ToolCall)] == [
        "own_1",
        f"ws_{SERVED.generation_id}_1",
    ]
    assert [run, own, *understood([*output, said, later])[3:]] == [
        *understood([*output, said])[1:],
        *understood([later]),
    ]


def test_c80_a_stored_response_has_its_runs_for_the_next_turn() -> None:
    output = output_of(FULL)
    asked = ASKED | {"previous_response_id": "resp_1"}
    turns = StoredTurns(earlier=tuple(output))
    stored = parse_response_object(asked, {}, size_bytes=1, turns=turns).request.messages
    assert [*stored[:-1]] == understood(output)
    search = output[0]
    referring = ASKED | {"input": [{"role": "user", "content": "Hi"}, {"id": search["id"]}]}
    known = StoredTurns(referenced={search["id"]: search})
    referred = parse_response_object(referring, {}, size_bytes=1, turns=known).request.messages
    assert [*referred[1:]] == understood([search])
