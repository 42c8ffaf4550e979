"""Streamed messages on synthetic frames: every shared case, and what the format allows beside.

Keeps C25, C26, C31, C37.
"""

import json
from typing import Any

import pytest

from tests.unit.providers.decoding import decoded, folded, sse_frames
from tests.upstream import messages_events as sent
from tollgate.core.content import Part, Provenance, Reasoning, Refusal, Text, ToolCall
from tollgate.core.errors import ErrorCode, UpstreamError
from tollgate.core.events import Citation, Ended, PartStart, Started, UsageReported
from tollgate.core.response import GenerationResponse
from tollgate.core.signers import ANTHROPIC_BLOCKS, CLAUDE
from tollgate.core.usage import Usage
from tollgate.providers.codecs.anthropic.decode import MessagesDecoder
from tollgate.providers.ports.base import Frame

Event = dict[str, Any]


def frames(events: list[Event]) -> list[Frame]:
    return sse_frames([b"".join(sent.sse(event) for event in events)])


def answered(*events: Event) -> GenerationResponse:
    return folded(decoded(MessagesDecoder("acme"), frames([*events])))


def failure(*events: Event) -> UpstreamError:
    with pytest.raises(UpstreamError) as raised:
        answered(*events)
    return raised.value


def parts_of(*blocks: Event, reason: str = "end_turn") -> tuple[Part, ...]:
    return answered(*sent.answer(*blocks, reason=reason)).parts


def call(arguments: str, id_: str = "toolu_1", name: str = "weather") -> ToolCall:
    return ToolCall(id=id_, name=name, arguments=arguments)


def test_text_is_one_part_and_the_message_is_named() -> None:
    events = decoded(MessagesDecoder("acme"), frames(sent.text_answer("Hel", "lo")))
    assert events[0] == Started(upstream_id="msg_1", served_model="claude-1")
    assert folded(events).parts == (Text(text="Hello"),)
    assert events[-1] == Ended(finish="stop", raw_finish="end_turn")


def test_an_empty_text_block_is_no_part() -> None:
    assert parts_of(sent.text(), sent.words(""), sent.block_stop()) == ()


def test_q30_pings_are_absorbed_wherever_they_come() -> None:
    events = [event for event in sent.text_answer("Hi") for event in (sent.PING, event)]
    assert answered(*events, sent.PING).parts == (Text(text="Hi"),)


def test_q33_a_thought_keeps_its_signature_verbatim() -> None:
    thought = sent.block(0, type="thinking", thinking="", signature="")
    said = parts_of(
        thought,
        sent.delta(0, "thinking_delta", thinking="hm"),
        sent.delta(0, "signature_delta", signature="c2ln/+="),
        sent.block_stop(),
    )
    assert said == (
        Reasoning(text="hm", provenance=Provenance(signer=CLAUDE, signature="c2ln/+=")),
    )


def test_q36_a_thought_may_have_no_text_but_its_signature() -> None:
    thought = sent.block(0, type="thinking", thinking="", signature="")
    said = parts_of(thought, sent.delta(0, "signature_delta", signature="s"), sent.block_stop())
    assert said == (Reasoning(text="", provenance=Provenance(signer=CLAUDE, signature="s")),)


def test_q33_a_hidden_thought_is_carried() -> None:
    hidden = sent.block(0, type="redacted_thinking", data="b64")
    assert parts_of(hidden, sent.block_stop()) == (
        Reasoning(text="", provenance=Provenance(signer=CLAUDE, data="b64")),
    )


def test_c31_a_call_has_its_arguments_as_they_were_written() -> None:
    written = ['{"id": 123456789', '01234567890, "x": 1.50}']
    said = parts_of(
        sent.tool(),
        *(sent.arguments(piece) for piece in written),
        sent.block_stop(),
        reason="tool_use",
    )
    assert said == (call("".join(written)),)


def test_q15_a_call_without_arguments_has_an_empty_object() -> None:
    response = answered(
        *sent.answer(sent.tool(), sent.arguments(""), sent.block_stop(), reason="tool_use")
    )
    assert response.parts == (call("{}"),)
    assert response.finish == "tool_calls"


def test_parallel_calls_are_parts_of_their_own_after_the_text() -> None:
    said = parts_of(
        sent.text(), sent.words("Both."), sent.block_stop(),
        sent.tool(1), sent.arguments('{"a":1}', 1), sent.block_stop(1),
        sent.tool(2, "toolu_2", "now"), sent.block_stop(2),
        reason="tool_use",
    )  # fmt: skip
    assert said == (Text(text="Both."), call('{"a":1}'), call("{}", "toolu_2", "now"))


def test_q19_parts_are_counted_without_gaps() -> None:
    events = decoded(
        MessagesDecoder("acme"),
        frames(sent.answer(sent.text(), sent.block_stop(), sent.tool(1), sent.block_stop(1))),
    )
    assert [event.index for event in events if isinstance(event, PartStart)] == [0]


def test_blocks_may_interleave() -> None:
    said = parts_of(
        sent.tool(0), sent.tool(1, "toolu_2", "now"),
        sent.arguments("{", 0), sent.arguments("{}", 1), sent.arguments("}", 0),
        sent.block_stop(1), sent.block_stop(0),
        reason="tool_use",
    )  # fmt: skip
    assert said == (call("{}"), call("{}", "toolu_2", "now"))


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("pause_turn", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "content_filter"),
        ("a word of its own", "stop"),
    ],
)
def test_c25_every_stop_reason_has_its_finish_and_is_told(reason: str, finish: str) -> None:
    response = answered(*sent.answer(sent.text(), sent.words("x"), reason=reason))
    assert (response.finish, response.raw_finish) == (finish, reason)


@pytest.mark.parametrize("is_streamed", [True, False])
def test_c80_the_sequence_that_ended_the_answer_is_told(is_streamed: bool) -> None:
    ended = {"stop_reason": "stop_sequence", "stop_sequence": "END"}
    events = sent.answer(sent.text(), sent.words("x"))
    events[-2] |= {"delta": ended}
    whole = {**sent.start()["message"], "content": [{"type": "text", "text": "x"}], **ended}
    response = answered(*events if is_streamed else [whole])
    assert (response.finish, response.stop_sequence) == ("stop", "END")


def test_an_answer_with_calls_never_just_stops() -> None:
    response = answered(*sent.answer(sent.tool(), sent.block_stop()))
    assert (response.finish, response.raw_finish) == ("tool_calls", "end_turn")


def test_a_later_report_without_a_reason_takes_none_back() -> None:
    late = sent.message_delta(None, input_tokens=None, output_tokens=4)
    sent_so = frames([sent.start(), sent.message_delta("max_tokens"), late, sent.STOP])
    events = decoded(MessagesDecoder("acme"), sent_so)
    assert events[-1] == Ended(finish="length", raw_finish="max_tokens")
    [*_, last] = [event for event in events if isinstance(event, UsageReported)]
    assert last.raw == {"input_tokens": 9, "output_tokens": 4}


def test_c25_the_tier_that_served_is_told() -> None:
    started = answered(sent.start(service_tier="priority"), *sent.answer()[1:]).started
    assert started.service_tier == "priority"


def test_a_refusal_says_why() -> None:
    stop = sent.message_delta("refusal")
    stop["delta"]["stop_details"] = {"type": "refusal", "category": "bio", "explanation": "No."}
    response = answered(sent.start(), stop, sent.STOP)
    assert response.parts == (Refusal(text="No."),)
    assert response.finish == "content_filter"


def test_c26_cached_tokens_come_beside_the_input() -> None:
    usage = answered(
        sent.start(
            cache_read_input_tokens=100,
            cache_creation_input_tokens=30,
            cache_creation={"ephemeral_5m_input_tokens": 20, "ephemeral_1h_input_tokens": 10},
        ),
        sent.message_delta(output_tokens_details={"thinking_tokens": 2}),
        sent.STOP,
    ).usage
    assert usage == Usage(
        uncached_input_tokens=9,
        cache_read_input_tokens=100,
        cache_write_5m_input_tokens=20,
        cache_write_1h_input_tokens=10,
        output_tokens=3,
        reasoning_tokens=2,
    )
    assert usage.input_tokens == 139


def test_c65_what_it_searched_for_by_itself_is_counted() -> None:
    usage = answered(
        sent.start(server_tool_use={"web_search_requests": 0, "web_fetch_requests": 0}),
        sent.message_delta(server_tool_use={"web_search_requests": 2, "web_fetch_requests": 1}),
        sent.STOP,
    ).usage
    assert usage.web_searches == 2


def test_null_is_not_zero() -> None:
    usage = answered(sent.start(cache_read_input_tokens=None), *sent.answer()[1:]).usage
    assert usage.cache_read_input_tokens is None
    assert usage.cache_write_5m_input_tokens is None


def test_q27_what_the_end_restates_wins_and_the_rest_stays() -> None:
    created = {"ephemeral_5m_input_tokens": 5, "ephemeral_1h_input_tokens": 7}
    events = decoded(
        MessagesDecoder("acme"),
        frames(
            [
                sent.start(cache_creation_input_tokens=12, cache_creation=created),
                sent.message_delta(input_tokens=61, cache_creation_input_tokens=13),
                sent.STOP,
            ]
        ),
    )
    last = [event for event in events if isinstance(event, UsageReported)][-1]
    assert last.usage.uncached_input_tokens == 61
    assert last.usage.cache_write_5m_input_tokens == 6
    assert last.usage.cache_write_1h_input_tokens == 7
    assert isinstance(last.raw, dict)
    assert last.raw["cache_creation"] == created


def test_a_citation_notes_the_text_of_its_block() -> None:
    cited = {"type": "web_search_result_location", "url": "https://a.example", "title": "A"}
    response = answered(
        *sent.answer(
            sent.text(),
            sent.delta(0, "citations_delta", citation={**cited, "cited_text": "x"}),
            sent.words("12345"),
            sent.block_stop(),
        )
    )
    note = Citation(url="https://a.example", title="A", start=0, end=5)
    assert response.notes == {0: (note,)}


def test_what_anthropics_own_tools_did_is_carried_whole() -> None:
    used = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {}}
    found = {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": [{"a": 1}]}
    said = parts_of(
        sent.block(0, **used),
        sent.arguments('{"query":'), sent.arguments(' "x"}'), sent.block_stop(),
        sent.block(1, **found), sent.block_stop(1),
        reason="pause_turn",
    )  # fmt: skip
    carried = [part.provenance for part in said if isinstance(part, Reasoning)]
    assert [each and each.signer for each in carried] == [ANTHROPIC_BLOCKS] * 2
    assert [json.loads(str(each and each.data)) for each in carried] == [
        {**used, "input": {"query": "x"}},
        found,
    ]


def test_c75_anthropics_own_compaction_is_carried_whole() -> None:
    said = parts_of(
        sent.block(0, type="compaction", content=None),
        sent.delta(0, "compaction_delta", content="Goal: ", encrypted_content=None),
        sent.delta(0, "compaction_delta", content="a bridge.", encrypted_content="c2VhbA=="),
        sent.block_stop(),
        sent.text(1), sent.words("Hi", 1), sent.block_stop(1),
    )  # fmt: skip
    [carried] = [part.provenance for part in said if isinstance(part, Reasoning)]
    assert carried is not None
    assert carried.signer == ANTHROPIC_BLOCKS
    assert json.loads(str(carried.data)) == {
        "type": "compaction",
        "content": "Goal: a bridge.",
        "encrypted_content": "c2VhbA==",
    }


def test_c75_anthropics_own_compaction_is_counted_beside_its_totals() -> None:
    iterations = [
        {"type": "compaction", "input_tokens": 500, "output_tokens": 40},
        {"type": "compaction", "input_tokens": -900, "output_tokens": "x"},
        {"type": "message", "input_tokens": 9, "output_tokens": 3},
    ]
    usage = answered(sent.start(), sent.message_delta(iterations=iterations), sent.STOP).usage
    assert (usage.uncached_input_tokens, usage.output_tokens) == (509, 43)


def test_d4_a_whole_message_is_the_stream_it_could_have_been() -> None:
    content = [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "text", "text": "Hi"},
        {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"id": 10**20}},
    ]
    message = {**sent.start()["message"], "content": content, "stop_reason": "tool_use"}
    frame = Frame(data=json.dumps(message).encode())
    response = folded(decoded(MessagesDecoder("acme"), [frame]))
    assert response.parts == (
        Reasoning(text="hm", provenance=Provenance(signer=CLAUDE, signature="s")),
        Text(text="Hi"),
        call('{"id":100000000000000000000}'),
    )
    assert response.finish == "tool_calls"
    assert response.usage.uncached_input_tokens == 9


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("invalid_request_error", ErrorCode.INVALID_REQUEST),
        ("authentication_error", ErrorCode.PROVIDER_AUTH),
        ("billing_error", ErrorCode.PROVIDER_AUTH),
        ("permission_error", ErrorCode.PROVIDER_AUTH),
        ("not_found_error", ErrorCode.PROVIDER_UNAVAILABLE),
        ("request_too_large", ErrorCode.INVALID_REQUEST),
        ("rate_limit_error", ErrorCode.PROVIDER_RATE_LIMIT),
        ("api_error", ErrorCode.PROVIDER_UNAVAILABLE),
        ("timeout_error", ErrorCode.PROVIDER_TIMEOUT),
        ("overloaded_error", ErrorCode.PROVIDER_OVERLOADED),
        ("a new one", ErrorCode.PROVIDER_UNAVAILABLE),
    ],
)
def test_q31_an_error_in_the_stream_means_what_it_says(kind: str, code: ErrorCode) -> None:
    assert failure(*sent.text_answer("Hi")[:3], sent.error(kind)).code is code


def test_an_exception_of_bedrocks_means_what_its_class_says() -> None:
    exception = Frame(data=b'{"message":"x"}', event="exception", exception="throttlingException")
    with pytest.raises(UpstreamError) as raised:
        decoded(MessagesDecoder("acme"), [exception])
    assert raised.value.code is ErrorCode.PROVIDER_RATE_LIMIT


@pytest.mark.parametrize("kept", range(4))
def test_a_stream_that_is_cut_short_is_an_error(kept: int) -> None:
    error = failure(*sent.text_answer("Hi")[:kept])
    assert error.code is ErrorCode.PROVIDER_UNAVAILABLE


def test_a_stream_that_has_said_why_it_stops_is_complete() -> None:
    assert answered(*sent.text_answer("Hi")[:-1]).finish == "stop"


@pytest.mark.parametrize(
    "events",
    [
        [sent.text()],
        [sent.start(), sent.start()],
        [sent.start(), sent.words("x")],
        [sent.start(), sent.text(), sent.text()],
        [sent.start(), sent.text(), sent.arguments("{}")],
        [sent.start(), sent.tool(), sent.words("x")],
        [sent.start(), sent.block(0, type="tool_use", id="a")],
        [sent.start(), {"type": "content_block_delta", "index": 0, "delta": {"type": "new"}}],
        [sent.start(), {"type": "a_new_event"}],
        [sent.start(), sent.block(0, type="image", source={"type": "url", "url": "x"})],
        [sent.start(), sent.block(0, type="a_new_block")],
        [sent.start(), sent.STOP],
        [*sent.text_answer("Hi"), sent.text(1)],
        [*sent.text_answer("Hi"), sent.error("api_error")],
    ],
)
def test_what_the_format_does_not_allow_is_an_error(events: list[Event]) -> None:
    assert failure(*events).code is ErrorCode.PROVIDER_UNAVAILABLE


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"null", b"<html>", b'{"type":1}'])
def test_a_frame_that_cannot_be_read_is_an_error(data: bytes) -> None:
    with pytest.raises(UpstreamError):
        decoded(MessagesDecoder("acme"), [Frame(data=data)])


def test_a_stream_that_closes_in_the_middle_of_an_input_is_an_error() -> None:
    searched = sent.block(0, type="server_tool_use", id="srv_1", name="web_search", input={})
    told = failure(
        sent.start(), searched, sent.arguments('{"query'), sent.message_delta("end_turn")
    )
    assert told.code is ErrorCode.PROVIDER_UNAVAILABLE
