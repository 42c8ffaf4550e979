"""ConverseStream becomes events; every frame here is synthetic.

Keeps C37.
"""

import base64
import json
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.providers.decoding import decoded, folded, pieces
from tests.upstream import converse_events as converse
from tollgate.aws.eventstream import EventStreamDecoder
from tollgate.core.content import Provenance, Reasoning, Text, ToolCall
from tollgate.core.errors import ErrorCode, UpstreamError
from tollgate.core.events import Citation, Ended, PartEnd, StreamEvent, UsageReported
from tollgate.core.response import GenerationResponse
from tollgate.core.signers import BEDROCK
from tollgate.core.usage import Usage
from tollgate.providers.codecs.bedrock.decode import ConverseDecoder
from tollgate.providers.ports.base import Frame

END = [converse.message_stop(), converse.metadata()]


def events_of(chunks: Iterable[bytes]) -> list[StreamEvent]:
    framing = EventStreamDecoder()
    messages = [message for chunk in chunks for message in framing.feed(chunk)] + framing.end()
    frames = [
        Frame(data=message.payload, event=message.event, exception=message.exception)
        for message in messages
    ]
    return decoded(ConverseDecoder("aws", signer=BEDROCK), frames)


def answer(*chunks: bytes) -> GenerationResponse:
    return folded(events_of(chunks))


def failure(*chunks: bytes) -> UpstreamError:
    with pytest.raises(UpstreamError) as raised:
        events_of(chunks)
    return raised.value


def test_q28_text_comes_without_a_block_start_and_padding_is_noise() -> None:
    response = answer(*converse.text_stream())
    assert response.parts == (Text(text="Hello world"),)
    assert (response.finish, response.raw_finish) == ("stop", "end_turn")


def test_q28_an_empty_text_block_is_no_part() -> None:
    response = answer(
        converse.message_start(),
        converse.text_delta("", 0),
        converse.block_stop(0),
        converse.text_delta("Hi", 1),
        converse.block_stop(1),
        *END,
    )
    assert response.parts == (Text(text="Hi"),)


def test_a_text_that_begins_before_the_last_one_was_stopped_ends_it() -> None:
    events = events_of(
        [
            converse.message_start(),
            converse.text_delta("Hello", 0),
            converse.text_delta("Bye", 1),
            converse.block_stop(0),
            converse.block_stop(1),
            *END,
        ]
    )
    assert [event.index for event in events if isinstance(event, PartEnd)] == [0, 1]
    assert folded(events).parts == (Text(text="Hello"), Text(text="Bye"))


def test_q33_reasoning_keeps_its_signature_and_hidden_blocks() -> None:
    hidden = base64.b64encode(b"opaque bytes").decode()
    response = answer(
        converse.message_start(),
        converse.reasoning_delta(0, text="Let me "),
        converse.reasoning_delta(0, text="think."),
        converse.reasoning_delta(0, signature="c2ln"),
        converse.block_stop(0),
        converse.reasoning_delta(1, redactedContent=hidden),
        converse.block_stop(1),
        converse.text_delta("So.", 2),
        converse.block_stop(2),
        *END,
    )
    assert response.parts == (
        Reasoning(text="Let me think.", provenance=Provenance(signer=BEDROCK, signature="c2ln")),
        Reasoning(text="", provenance=Provenance(signer=BEDROCK, data="opaque bytes")),
        Text(text="So."),
    )


def test_q33_a_signature_without_text_is_kept() -> None:
    response = answer(
        converse.reasoning_delta(0, text=""),
        converse.reasoning_delta(0, signature="c2ln"),
        converse.block_stop(0),
        *END,
    )
    assert response.parts == (
        Reasoning(text="", provenance=Provenance(signer=BEDROCK, signature="c2ln")),
    )


def test_tool() -> None:
    response = answer(
        converse.message_start(),
        converse.text_delta("Wait."),
        converse.block_stop(0),
        converse.tool_start(1, "tooluse_1", "weather"),
        converse.tool_delta(1, '{"city":'),
        converse.tool_delta(1, '"Paris"}'),
        converse.block_stop(1),
        converse.message_stop("tool_use"),
        converse.metadata(),
    )
    assert response.parts == (
        Text(text="Wait."),
        ToolCall(id="tooluse_1", name="weather", arguments='{"city":"Paris"}'),
    )
    assert response.finish == "tool_calls"


def test_parallel_tools() -> None:
    response = answer(
        converse.tool_start(0, "a", "add"),
        converse.tool_delta(0, "{}"),
        converse.block_stop(0),
        converse.tool_start(1, "b", "mul"),
        converse.tool_delta(1, '{"x":1}'),
        converse.block_stop(1),
        converse.message_stop("tool_use"),
    )
    assert response.parts == (
        ToolCall(id="a", name="add", arguments="{}"),
        ToolCall(id="b", name="mul", arguments='{"x":1}'),
    )


@pytest.mark.parametrize("delta", [[], [converse.tool_delta(0, "")]])
def test_q15_tool_no_args_has_the_empty_object_for_arguments(delta: list[bytes]) -> None:
    response = answer(
        converse.tool_start(0, "a", "now"),
        *delta,
        converse.block_stop(0),
        converse.message_stop("tool_use"),
    )
    assert response.parts == (ToolCall(id="a", name="now", arguments="{}"),)


def test_c25_the_tier_that_served_is_told_with_the_metadata() -> None:
    served = {"usage": {"inputTokens": 1, "outputTokens": 1}, "serviceTier": {"type": "flex"}}
    chunks = (converse.text_delta("Hi"), converse.message_stop())
    assert answer(*chunks, converse.event("metadata", served)).started.service_tier == "flex"
    assert answer(*chunks, converse.metadata()).started.service_tier is None


def test_cache_hit_counts_beside_the_input() -> None:
    usage = answer(
        converse.text_delta("Hi"),
        converse.message_stop(),
        converse.metadata(10, 5, cacheReadInputTokens=100, cacheWriteInputTokens=20),
    ).usage
    assert usage == Usage(
        uncached_input_tokens=10,
        cache_read_input_tokens=100,
        cache_write_5m_input_tokens=20,
        output_tokens=5,
    )
    assert usage.total_tokens == 135


def test_cache_writes_are_told_apart_by_lifetime() -> None:
    details = [{"ttl": "1h", "inputTokens": 15}, {"ttl": "5m", "inputTokens": 5}]
    usage = answer(
        converse.text_delta("Hi"),
        converse.message_stop(),
        converse.metadata(10, 5, cacheWriteInputTokens=20, cacheDetails=details),
    ).usage
    assert (usage.cache_write_5m_input_tokens, usage.cache_write_1h_input_tokens) == (5, 15)


def test_cache_that_is_not_mentioned_is_not_zero() -> None:
    usage = answer(*converse.text_stream()).usage
    assert usage == Usage(uncached_input_tokens=9, output_tokens=3)


def test_q27_usage_after_the_stop_is_waited_for() -> None:
    events = events_of(converse.text_stream())
    assert [type(event) for event in events[-3:]] == [PartEnd, UsageReported, Ended]


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("guardrail_intervened", "content_filter"),
        ("content_filtered", "content_filter"),
        ("a_new_reason", "stop"),
    ],
)
def test_length_refusal_and_every_other_stop_reason(reason: str, finish: str) -> None:
    response = answer(converse.text_delta("x"), converse.message_stop(reason))
    assert (response.finish, response.raw_finish) == (finish, reason)


@pytest.mark.parametrize("reason", ["malformed_model_output", "malformed_tool_use"])
def test_a_malformed_output_is_an_error_and_no_empty_stop(reason: str) -> None:
    error = failure(converse.message_start(), converse.message_stop(reason))
    assert error.code is ErrorCode.PROVIDER_UNAVAILABLE


@pytest.mark.parametrize(
    ("kind", "text", "code", "status"),
    [
        ("throttlingException", "slow", ErrorCode.PROVIDER_RATE_LIMIT, 429),
        ("serviceUnavailableException", "busy", ErrorCode.PROVIDER_OVERLOADED, 503),
        ("modelStreamErrorException", "broke", ErrorCode.PROVIDER_UNAVAILABLE, 424),
        ("internalServerException", "broke", ErrorCode.PROVIDER_UNAVAILABLE, 500),
        ("modelTimeoutException", "late", ErrorCode.PROVIDER_TIMEOUT, 408),
        ("validationException", "bad field", ErrorCode.INVALID_REQUEST, 400),
        ("validationException", "Input Tokens Exceeded: …", ErrorCode.CONTEXT_LENGTH_EXCEEDED, 400),
        ("aNewException", "?", ErrorCode.PROVIDER_UNAVAILABLE, None),
    ],
)
def test_q31_overloaded_mid_stream_is_an_error_of_its_kind(
    kind: str, text: str, code: ErrorCode, status: int | None
) -> None:
    error = failure(*converse.text_stream()[:2], converse.exception(kind, text))
    assert (error.code, error.status) == (code, status)


def test_an_error_message_of_the_framing_itself_is_an_error() -> None:
    headers = {
        ":message-type": "error",
        ":error-code": "InternalFailure",
        ":error-message": "An internal server error occurred",
    }
    assert failure(converse.message(headers, b"")).code is ErrorCode.PROVIDER_UNAVAILABLE


@pytest.mark.parametrize("kept", range(5))
def test_truncated(kept: int) -> None:
    error = failure(*converse.text_stream()[:kept])
    assert error.code is ErrorCode.PROVIDER_UNAVAILABLE
    assert "closed before the end" in error.message


@pytest.mark.parametrize(
    "frame",
    [
        converse.event("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"song": {}}}),
        converse.event("contentBlockDelta", {"delta": {"text": "x"}}),
        converse.event("contentBlockStart", {"contentBlockIndex": 0, "start": {"image": {}}}),
        converse.event("aNewEvent", {}),
        converse.message({":message-type": "event", ":event-type": "messageStart"}, b"<html>"),
        converse.message({":message-type": "song"}, b"{}"),
        converse.message({}, b"{}"),
        converse.tool_delta(3, "{}"),
        converse.reasoning_delta(0, redactedContent="not base64!"),
        converse.event("metadata", {"usage": "many"}),
    ],
)
def test_malformed_frames_are_errors_and_never_dropped(frame: bytes) -> None:
    error = failure(frame, *converse.text_stream())
    assert error.code is ErrorCode.PROVIDER_UNAVAILABLE


def test_two_kinds_in_one_block_are_an_error() -> None:
    error = failure(converse.tool_start(0, "a", "add"), converse.text_delta("x", 0), *END)
    assert error.code is ErrorCode.PROVIDER_UNAVAILABLE


def test_usage_may_be_lost_without_losing_the_answer() -> None:
    assert answer(*converse.text_stream()[:-1]).usage == Usage()


@given(st.lists(st.integers(min_value=0)))
def test_c37_any_cut_of_the_bytes_gives_the_same_events(cuts: list[int]) -> None:
    body = b"".join(converse.text_stream(["Grüße", " 世界"]))
    assert events_of(pieces(body, cuts)) == events_of([body])


def test_a_citation_is_told_of_the_text_it_is_in() -> None:
    page = {"title": "A", "location": {"web": {"url": "https://a.example", "domain": "a.example"}}}
    place = {"title": "B", "source": "b.pdf", "location": {"documentPage": {"documentIndex": 0}}}
    cited = [
        converse.event("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"citation": each}})
        for each in (page, place)
    ]
    response = answer(
        converse.message_start(), converse.text_delta("Paris"), *cited, converse.block_stop(), *END
    )
    assert response.notes[0] == (
        Citation(url="https://a.example", title="A"),
        Citation(url="b.pdf", title="B"),
    )


def whole(**reply: object) -> list[StreamEvent]:
    """A complete reply of Converse, as batches return it."""
    frame = Frame(data=json.dumps(reply).encode())
    return decoded(ConverseDecoder("aws", signer=BEDROCK), [frame])


def message(*blocks: object) -> dict[str, object]:
    return {"message": {"role": "assistant", "content": list(blocks)}}


USED = {"inputTokens": 7, "outputTokens": 3, "cacheReadInputTokens": None}


def test_c83_a_whole_reply_decodes_as_its_stream_would() -> None:
    hidden = base64.b64encode(b"secret").decode()
    cited = {
        "content": [{"text": "Bonn"}],
        "citations": [{"title": "T", "location": {"web": {"url": "https://x.example/"}}}],
    }
    events = whole(
        output=message(
            {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "sig"}}},
            {"reasoningContent": {"redactedContent": hidden}},
            {"text": "Hello", "toolUse": None, "citationsContent": None},
            {"toolUse": {"toolUseId": "t", "name": "now", "input": {"zone": "CET"}}},
            {"citationsContent": cited},
            {"text": ""},
        ),
        stopReason="tool_use",
        usage=USED,
        serviceTier=None,
    )
    response = folded(events)
    thought, redacted, said, call, source = response.parts
    assert isinstance(thought, Reasoning)
    assert thought.provenance == Provenance(signer=BEDROCK, signature="sig")
    assert isinstance(redacted, Reasoning)
    assert redacted.provenance == Provenance(signer=BEDROCK, data="secret")
    assert said == Text(text="Hello")
    assert call == ToolCall(id="t", name="now", arguments='{"zone":"CET"}')
    assert isinstance(source, Text)
    assert source.text == "Bonn"
    assert (response.finish, response.raw_finish) == ("tool_calls", "tool_use")
    [used] = [event.usage for event in events if isinstance(event, UsageReported)]
    assert used == Usage(uncached_input_tokens=7, output_tokens=3)


@pytest.mark.parametrize(
    "reply",
    [
        {"stopReason": "end_turn", "usage": USED},
        {"output": message({"text": "Hi"}), "usage": USED},
        {"output": message({"text": "Hi"}), "stopReason": "end_turn"},
        {"output": message({"audio": {}}), "stopReason": "end_turn", "usage": USED},
        {"output": message(), "stopReason": "malformed_model_output", "usage": USED},
    ],
)
def test_c83_a_whole_reply_that_lacks_a_part_is_an_error(reply: dict[str, object]) -> None:
    with pytest.raises(UpstreamError):
        whole(**reply)
