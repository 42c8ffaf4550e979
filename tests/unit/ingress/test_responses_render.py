"""Answers in OpenAI's Responses format: a stream, once accumulated, is the whole response.

Keeps C5, C26, C37, C40, C74, C80, C94.
"""

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from jsonschema import Draft202012Validator
from msgspec.structs import replace

from tests.open_responses import check_response, check_stream
from tests.references import published_schema
from tests.response_stream import accumulated_response, response_events
from tests.strategies import event_streams, usages
from tests.unit.ingress.responses_samples import (
    ASKED,
    FORMAT,
    Replay,
    life,
    renderer,
    storing_renderer,
)
from tests.unit.ingress.samples import SERVED, record
from tollgate.core.content import Provenance, Reasoning, Refusal, Text, ToolCall
from tollgate.core.events import (
    Citation,
    Ended,
    LogProbs,
    PartNote,
    PartStart,
    Started,
    StreamEvent,
    UsageReported,
)
from tollgate.core.request import AssistantContent, AssistantMessage, ToolMessage
from tollgate.core.response import Fold
from tollgate.core.signers import CLAUDE, GEMINI, OPENAI
from tollgate.core.usage import Usage
from tollgate.ingress.responses.reasoning_item import owns
from tollgate.ingress.responses.wire.response_events import ResponseEvent
from tollgate.ingress.responses.wire.response_reply import ResponseObject


def both(said: list[StreamEvent], usage: Usage, **asked: Any) -> tuple[bytes, bytes]:
    """The stream of some events, and the whole response that they fold into."""
    writer, fold = renderer(**asked), Fold()
    stream = b""
    for event in said:
        stream += writer.feed(event)
        fold.accept(event)
    written = record(usage=usage)
    return stream + writer.close(written), renderer(**asked).whole([fold.response()], written)


def exact(body: bytes) -> Any:
    return json.loads(body, parse_float=Decimal)


def answered(*parts: list[StreamEvent], end: Ended | None = None, **asked: Any) -> Any:
    said: list[StreamEvent] = [Started(), *(event for part in parts for event in part)]
    stream, whole = both([*said, end or Ended(finish="stop")], Usage(), **asked)
    assert accumulated_response(stream) == exact(whole)
    return exact(whole)


def returned(output: list[Any], **asked: Any) -> tuple[AssistantContent, ...]:
    """The parts of the answer whose items a client sends back; its runs apart."""
    turn = [{"role": "user", "content": "Hi"}, *output]
    _, *answers = FORMAT.parse(
        json.dumps(ASKED | asked | {"input": turn}, default=str).encode()
    ).request.messages
    runs = {item["id"] for item in output if item["type"] in ("web_search_call", "mcp_call")}
    parts: list[AssistantContent] = []
    for answer in answers:
        if isinstance(answer, ToolMessage):
            assert answer.call_id in runs
            continue
        assert isinstance(answer, AssistantMessage)
        parts += answer.content
    return tuple(part for part in parts if not (isinstance(part, ToolCall) and part.id in runs))


@given(said=event_streams(), usage=usages)
def test_c37_a_stream_accumulates_to_the_whole_response(
    said: list[StreamEvent], usage: Usage
) -> None:
    stream, whole = both(said, usage)
    assert accumulated_response(stream) == exact(whole)


@given(said=event_streams(), usage=usages)
def test_c80_what_is_written_is_what_is_published(said: list[StreamEvent], usage: Usage) -> None:
    stream, whole = both(said, usage)
    ResponseObject.model_validate_json(whole)
    for event in stream.split(b"\n\n")[:-1]:
        ResponseEvent.model_validate_json(event.partition(b"\ndata: ")[2])


@given(said=event_streams(), usage=usages)
def test_c74_what_is_written_is_what_open_responses_requires(
    said: list[StreamEvent], usage: Usage
) -> None:
    stream, whole = both(said, usage)
    check_response(json.loads(whole))
    check_stream(stream)


@pytest.mark.parametrize(
    ("stated", "begun", "ended"),
    [({}, "auto", "default"), ({"service_tier": "flex"}, "flex", "default")],
)
def test_c74_a_tier_is_what_was_requested_until_the_provider_states_one(
    stated: dict[str, str], begun: str, ended: str
) -> None:
    stream, _ = both([Started(), Ended(finish="stop")], Usage(), **stated)
    created, *_, completed = response_events(stream)
    assert created["response"]["service_tier"] == begun
    assert completed["response"]["service_tier"] == ended
    assert (created["response"]["completed_at"], created["response"]["usage"]) == (None, None)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(said=event_streams(), usage=usages)
def test_c80_replies_validate_against_openais_schema(said: list[StreamEvent], usage: Usage) -> None:
    whole_schema = Draft202012Validator(published_schema("openai.responses.response"))
    event_schema = Draft202012Validator(published_schema("openai.responses.stream_event"))
    stream, whole = both(said, usage)
    whole_schema.validate(json.loads(whole))
    for event in stream.split(b"\n\n")[:-1]:
        event_schema.validate(json.loads(event.partition(b"\ndata: ")[2]))


@given(said=event_streams())
def test_c80_what_a_client_sends_back_is_what_was_said(said: list[StreamEvent]) -> None:
    fold = Fold()
    for event in said:
        fold.accept(event)
    ids = [part.id for part in fold.parts if isinstance(part, ToolCall)]
    # Thoughts of one id are one item, where one without text adds nothing: see below.
    ids += [id_ for part in fold.parts if (id_ := _openais_id(part))]
    assume(len(ids) == len(set(ids)))
    back = returned(exact(both(said, Usage())[1])["output"])
    assert [part for part in back if isinstance(part, ToolCall)] == [
        part if part.arguments.strip() else replace(part, arguments=part.arguments + "{}")
        for part in fold.parts
        if isinstance(part, ToolCall)
    ]
    assert [part for part in back if isinstance(part, Reasoning)] == [
        part
        for part in fold.parts
        if isinstance(part, Reasoning) and (part.text or part.provenance)
    ]
    for kind in (Text, Refusal):
        said_texts = [part.text for part in fold.parts if isinstance(part, kind)]
        assert "".join(part.text for part in back if isinstance(part, kind)) == "".join(said_texts)


def _openais_id(part: object) -> str | None:
    provenance = part.provenance if isinstance(part, Reasoning) else None
    return provenance.id if provenance is not None and owns(provenance) else None


@pytest.mark.parametrize("texts", [("", ""), ("", "x"), ("x", "")])
def test_c80_an_empty_thought_beside_another_of_its_id_adds_nothing(texts: tuple[str, str]) -> None:
    own = Reasoning(text="", provenance=Provenance(signer=OPENAI, id="rs_1", is_summary=True))
    lives = [life(index, own, *([text] if text else [])) for index, text in enumerate(texts)]
    back = returned(answered(*lives)["output"])
    assert back == (replace(own, text="".join(texts)),)


def test_c5_a_response_has_the_id_of_its_request_and_the_model_that_served() -> None:
    said = answered(life(0, Text(text=""), "Hel", "lo"), metadata={"team": "a"}, temperature=0.5)
    assert said["id"] == f"resp_{SERVED.generation_id}"
    assert (said["object"], said["status"], said["model"]) == ("response", "completed", "test/echo")
    assert said["output"][0]["content"][0]["text"] == "Hello"
    assert said["metadata"] == {"team": "a"}
    assert said["temperature"] == Decimal("0.5")
    assert said["store"] is False
    assert said["usage"]["cost"] == Decimal("1.234567891")
    assert (said["model_used"], said["provider_used"]) == ("test/echo", "simulator")


def test_c80_events_come_in_openais_order() -> None:
    said: list[StreamEvent] = [Started(), *life(0, Text(text=""), "Hi"), Ended(finish="stop")]
    assert [event["type"] for event in response_events(both(said, Usage())[0])] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]


@pytest.mark.parametrize(
    ("finish", "status", "reason"),
    [
        ("stop", "completed", None),
        ("tool_calls", "completed", None),
        ("length", "incomplete", "max_output_tokens"),
        ("content_filter", "incomplete", "content_filter"),
    ],
)
def test_c80_every_finish_has_its_status(finish: Any, status: str, reason: str | None) -> None:
    said = answered(life(0, Text(text=""), "Hi"), end=Ended(finish=finish))
    assert said["status"] == status
    assert said["incomplete_details"] == (reason and {"reason": reason})
    cut_short = "incomplete" if finish == "length" else "completed"
    assert said["output"][-1]["status"] == cut_short


def test_c80_texts_that_follow_each_other_are_one_message_whose_sources_still_point_right() -> None:
    note = PartNote(index=1, note=Citation(url="https://a.example", title="A", start=0, end=2))
    started, delta, ended = life(1, Text(text=""), "you")
    said = answered(life(0, Text(text=""), "Hi "), [started, delta, note, ended])
    (item,) = said["output"]
    (piece,) = item["content"]
    assert piece["text"] == "Hi you"
    source = piece["annotations"][0]
    assert (source["start_index"], source["end_index"]) == (3, 5)


def test_c80_a_refusal_is_a_piece_of_its_own() -> None:
    said = answered(life(0, Text(text=""), "Hm."), life(1, Refusal(text=""), "No."))
    (item,) = said["output"]
    assert item["content"][1] == {"type": "refusal", "refusal": "No."}


def test_c80_log_probabilities_stand_beside_their_text() -> None:
    note = PartNote(index=0, note=LogProbs(entries=({"token": "Hi", "logprob": -1.5},)))
    started, delta, ended = life(0, Text(text=""), "Hi")
    said = answered([started, delta, note, ended])
    (probability,) = said["output"][0]["content"][0]["logprobs"]
    assert probability == {
        "token": "Hi",
        "logprob": Decimal("-1.5"),
        "bytes": [72, 105],
        "top_logprobs": [],
    }


def test_c80_openais_own_reasoning_is_one_item_that_stands_as_it_is() -> None:
    own = Provenance(signer=OPENAI, id="rs_1")
    said = answered(
        life(0, Reasoning(text="", provenance=replace(own, is_summary=True)), "One."),
        life(1, Reasoning(text="", provenance=replace(own, is_summary=True)), "Two."),
        life(2, Reasoning(text="", provenance=replace(own, data="gAAA"))),
        life(3, Text(text=""), "Hi"),
    )
    assert said["output"][0] == {
        "type": "reasoning",
        "id": "rs_1",
        "status": "completed",
        "summary": [
            {"type": "summary_text", "text": "One."},
            {"type": "summary_text", "text": "Two."},
        ],
        "encrypted_content": "gAAA",
    }
    assert len(said["output"]) == 2


def test_c80_openais_reasoning_in_a_stored_response_is_found_by_its_id_and_survives() -> None:
    own = Provenance(signer=OPENAI, id="rs_1")
    parts = (
        Reasoning(text="One.", provenance=replace(own, is_summary=True)),
        Reasoning(text="Two.", provenance=replace(own, is_summary=True)),
        Reasoning(text="", provenance=replace(own, data="gAAA")),
    )
    fold = Fold()
    for event in (
        Started(),
        *(
            each
            for place, part in enumerate(parts)
            for each in life(place, replace(part, text=""), part.text)
        ),
        Ended(finish="stop"),
    ):
        fold.accept(event)
    whole = exact(storing_renderer().whole([fold.response()], record(usage=Usage())))
    assert whole["store"] is True
    [item] = whole["output"]
    assert item["id"] == f"rs_{SERVED.generation_id}_0"
    assert returned([item]) == parts


@pytest.mark.parametrize("signer", [CLAUDE, GEMINI, "acme-v1"])
def test_c80_what_another_signer_needs_back_survives_the_client(signer: str) -> None:
    proof = Provenance(signer=signer, signature="c2ln")
    output = answered(life(0, Reasoning(text=""), "Hm.", ended=proof))["output"]
    assert output[0]["content"] == [{"type": "reasoning_text", "text": "Hm."}]
    assert returned(output) == (Reasoning(text="Hm.", provenance=proof),)


def test_c80_the_signature_of_a_call_survives_the_client() -> None:
    proof = Provenance(signer=GEMINI, signature="c2ln")
    called = ToolCall(id="call_1", name="now", arguments="")
    output = answered(life(0, called, "{}", ended=proof))["output"]
    assert [item["type"] for item in output] == ["function_call", "reasoning"]
    assert returned(output) == (replace(called, arguments="{}", provenance=proof),)


def test_c80_a_tool_of_free_text_is_called_with_its_text() -> None:
    called = ToolCall(id="call_1", name="apply_patch", arguments="", is_text=True)
    (item,) = answered(life(0, called, "*** Begin", " Patch"))["output"]
    assert (item["type"], item["input"]) == ("custom_tool_call", "*** Begin Patch")
    assert returned([item]) == (replace(called, arguments="*** Begin Patch"),)


NAMESPACE = {
    "type": "namespace",
    "name": "agents",
    "description": "Agents.",
    "tools": [{"type": "function", "name": "spawn", "parameters": {}, "strict": False}],
}


def test_c80_a_tool_within_a_namespace_has_its_own_name_again() -> None:
    called = ToolCall(id="call_1", name="agents__spawn", arguments="")
    (item,) = answered(life(0, called, "{}"), tools=[NAMESPACE])["output"]
    assert (item["namespace"], item["name"]) == ("agents", "spawn")
    assert returned([item], tools=[NAMESPACE]) == (replace(called, arguments="{}"),)


@given(said=event_streams(), usage=usages)
def test_c80_openais_sdk_accumulates_what_it_reads_whole(
    said: list[StreamEvent], usage: Usage
) -> None:
    ids = [
        event.part.id
        for event in said
        if isinstance(event, PartStart) and isinstance(event.part, ToolCall)
    ]
    assume(len(ids) == len(set(ids)))
    stream, whole = both(said, usage)
    replay = Replay(stream, "text/event-stream").client
    with replay.responses.stream(model="m", input="Hi") as events:
        for _ in events:
            pass
        if json.loads(whole)["status"] == "completed":
            final = events.get_final_response()
            read = Replay(whole, "application/json").client.responses.create(model="m", input="Hi")
            assert final.output_text == read.output_text
            assert [item.type for item in final.output] == [item.type for item in read.output]


def test_c32_the_first_sign_of_life_is_no_event_and_later_ones_are() -> None:
    assert FORMAT.early_keep_alive.startswith(b":")
    said: list[StreamEvent] = [Started(), *life(0, Text(text=""), "Hi"), Ended(finish="stop")]
    stream = both(said, Usage())[0]
    begun, separator, rest = stream.partition(b"event: response.output_item.added")
    body = FORMAT.early_keep_alive + begun + FORMAT.keep_alive + separator + rest
    with Replay(body, "text/event-stream").client.responses.stream(model="m", input="Hi") as events:
        assert events.get_final_response().output_text == "Hi"


def test_c26_a_report_of_usage_is_no_event() -> None:
    assert renderer().feed(UsageReported(usage=Usage(output_tokens=3))) == b""
