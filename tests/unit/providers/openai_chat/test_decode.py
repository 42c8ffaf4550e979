"""OpenAI-like streams become events; every frame here is synthetic.

Keeps C25, C37.
"""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.providers.decoding import decoded, folded, pieces, sse_frames
from tests.upstream.openai_chunks import (
    DONE,
    KEEP_ALIVE,
    call_delta,
    chunk,
    sse,
    text_stream,
    tool_stream,
    usage,
)
from tollgate.core.content import Reasoning, Refusal, Text, ToolCall
from tollgate.core.errors import ErrorCode, UpstreamError
from tollgate.core.events import Ended, PartEnd, PartStart, Started, StreamEvent, UsageReported
from tollgate.core.response import GenerationResponse
from tollgate.core.usage import Usage
from tollgate.providers.codecs.openai_chat.decode import ChatDecoder

FINISHED = [sse(chunk({}, finish="stop")), DONE]


def events_of(chunks: Sequence[bytes]) -> list[StreamEvent]:
    return decoded(ChatDecoder("acme"), sse_frames(chunks))


def answer(chunks: Sequence[bytes]) -> GenerationResponse:
    return folded(events_of(chunks))


def calls(*deltas: dict[str, Any] | list[dict[str, Any]], finish: str = "tool_calls") -> Any:
    """The calls of a stream whose deltas carry these items."""
    body = [sse(chunk({"tool_calls": d if isinstance(d, list) else [d]})) for d in deltas]
    response = answer([*body, sse(chunk({}, finish=finish)), DONE])
    assert response.finish == "tool_calls"
    return [
        (part.id, part.name, part.arguments)
        for part in response.parts
        if isinstance(part, ToolCall)
    ]


def failure(chunks: Sequence[bytes]) -> UpstreamError:
    with pytest.raises(UpstreamError) as raised:
        events_of(chunks)
    return raised.value


def test_text() -> None:
    response = answer(text_stream())
    assert response.parts == (Text(text="Hello world"),)
    assert (response.finish, response.raw_finish) == ("stop", "stop")
    assert response.started == Started(upstream_id="chatcmpl-synthetic", served_model="synthetic-1")
    assert response.usage == Usage(uncached_input_tokens=9, output_tokens=3)


@pytest.mark.parametrize(
    "fields",
    [
        ("reasoning",),
        ("reasoning_content",),
        ("reasoning", "reasoning_content"),
    ],
)
def test_q35_reasoning_has_two_names_and_is_told_once(fields: tuple[str, ...]) -> None:
    response = answer(
        [
            sse(chunk(dict.fromkeys(fields, "I "))),
            sse(chunk(dict.fromkeys(fields, "think."))),
            sse(chunk({"content": "So."})),
            *FINISHED,
        ]
    )
    assert response.parts == (Reasoning(text="I think."), Text(text="So."))


def test_q35_a_content_list_is_never_leaked_as_content() -> None:
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}], "closed": True}
    response = answer(
        [
            sse(chunk({"content": [thinking]})),
            sse(chunk({"content": [thinking, {"type": "text", "text": "1"}]})),
            sse(chunk({"content": "44"}, finish="stop")),
        ]
    )
    assert response.parts == (Reasoning(text="hmhm"), Text(text="144"))


def test_tool() -> None:
    response = answer(tool_stream())
    assert response.parts == (ToolCall(id="call_1", name="weather", arguments='{"city":"Paris"}'),)
    assert response.finish == "tool_calls"


def test_q15_tool_no_args_has_the_empty_object_for_arguments() -> None:
    assert calls(call_delta(0, id_="a", name="now", arguments="")) == [("a", "now", "{}")]


def test_parallel_tools_may_interleave() -> None:
    assert calls(
        call_delta(0, id_="a", name="add", arguments=""),
        call_delta(1, id_="b", name="mul", arguments=""),
        call_delta(1, arguments="[2]"),
        call_delta(0, arguments="[1]"),
    ) == [("a", "add", "[1]"), ("b", "mul", "[2]")]


def test_q19_q20_calls_without_index_or_type_come_whole_in_the_finish_chunk() -> None:
    items = [
        call_delta(None, id_="QAw0JBXkB", name="plus", arguments="{}"),
        call_delta(None, id_="HlyhI5zAI", name="minus", arguments="{}"),
    ]
    response = answer([sse(chunk({"tool_calls": items}, finish="tool_calls")), DONE])
    assert response.parts == (
        ToolCall(id="QAw0JBXkB", name="plus", arguments="{}"),
        ToolCall(id="HlyhI5zAI", name="minus", arguments="{}"),
    )


def test_q19_pieces_without_an_index_continue_by_id_or_the_last_call() -> None:
    assert calls(
        call_delta(None, id_="a", name="add", arguments="["),
        call_delta(None, arguments="1"),
        call_delta(None, id_="a", arguments="]"),
        call_delta(None, id_="b", name="add", arguments="[2]"),
    ) == [("a", "add", "[1]"), ("b", "add", "[2]")]


def test_q19_an_empty_name_that_repeats_is_no_new_call() -> None:
    assert calls(
        call_delta(0, id_="a", name="search", arguments=""),
        call_delta(0, name="", arguments="{}", type_="function"),
    ) == [("a", "search", "{}")]


def test_q19_one_index_for_several_calls_is_told_apart_by_id() -> None:
    assert calls(
        call_delta(0, id_="a", name="add", arguments="[1]"),
        call_delta(0, id_="b", name="add", arguments="[2]"),
    ) == [("a", "add", "[1]"), ("b", "add", "[2]")]


def test_q19_a_repeated_id_and_name_continue_their_call() -> None:
    assert calls(
        call_delta(0, id_="a", name="add", arguments="["),
        call_delta(0, id_="a", name="add", arguments="1]"),
    ) == [("a", "add", "[1]")]


def test_text_is_closed_before_a_call_begins() -> None:
    call = call_delta(0, id_="a", name="add", arguments="[1]")
    events = events_of(
        [sse(chunk({"content": "Wait."})), sse(chunk({"tool_calls": [call]})), *FINISHED]
    )
    assert [type(event) for event in events[3:5]] == [PartEnd, PartStart]


def test_q19_the_upstream_index_counts_for_nothing() -> None:
    response = answer(
        [
            sse(chunk({"content": "Wait."})),
            sse(chunk({"tool_calls": [call_delta(7, id_="a", name="add", arguments="[1]")]})),
            sse(chunk({}, finish="tool_calls")),
        ]
    )
    assert response.parts[1] == ToolCall(id="a", name="add", arguments="[1]")


def test_calls_without_an_id_get_different_stable_ones() -> None:
    items = [call_delta(None, name="add"), call_delta(None, name="add")]
    first, second = calls(items)
    assert first[0] != second[0]
    assert [first, second] == calls(items)
    assert len(first[0]) <= 40


def test_a_piece_of_a_call_that_nobody_began_is_an_error() -> None:
    error = failure([sse(chunk({"tool_calls": [call_delta(0, arguments="{}")]}))])
    assert error.code is ErrorCode.PROVIDER_UNAVAILABLE


def test_stop_with_calls_means_tool_calls() -> None:
    assert calls(call_delta(0, id_="a", name="add", arguments="[]"), finish="stop")


def test_an_empty_finish_with_calls_means_tool_calls() -> None:
    assert calls(call_delta(0, id_="a", name="add", arguments="[]"), finish="")


def test_an_empty_finish_ends_a_whole_reply_and_a_marked_stream_but_no_other() -> None:
    whole = {"choices": [{"message": {"content": "Hi"}, "finish_reason": ""}]}
    assert answer([sse(whole)]).finish == "stop"
    streamed = sse(chunk({"content": "Hi"}, finish=""))
    assert answer([streamed, DONE]).finish == "stop"
    assert failure([streamed]).code is ErrorCode.PROVIDER_UNAVAILABLE


def test_cache_hit_is_part_of_the_prompt_and_null_is_not_zero() -> None:
    hit = answer([sse(chunk({}, finish="stop", usage=usage(100, 5, cached=64)))]).usage
    assert hit.uncached_input_tokens == 36
    assert hit.cache_read_input_tokens == 64
    assert hit.input_tokens == 100
    assert hit.reasoning_tokens is None
    assert answer([sse(chunk({}, finish="stop", usage=usage(10, 5)))]).usage == Usage(
        uncached_input_tokens=10, output_tokens=5
    )


def test_length() -> None:
    response = answer(text_stream(finish="length"))
    assert response.finish == "length"


@pytest.mark.parametrize(
    ("word", "finish"),
    [
        ("eos", "stop"),
        ("model_length", "length"),
        ("content_filter", "content_filter"),
        ("function_call", "tool_calls"),
        ("a-new-word", "stop"),
    ],
)
def test_c25_finish_reasons_are_openais_and_the_native_one_is_kept(word: str, finish: str) -> None:
    response = answer([sse(chunk({"content": "x"}, finish=word))])
    assert (response.finish, response.raw_finish) == (finish, word)


def test_refusal() -> None:
    response = answer([sse(chunk({"refusal": "I "})), sse(chunk({"refusal": "won't."})), *FINISHED])
    assert response.parts == (Refusal(text="I won't."),)


def test_q30_what_says_nothing_is_absorbed() -> None:
    response = answer(
        [
            KEEP_ALIVE,
            sse(chunk(id="", model="")),
            sse(chunk({"role": "assistant", "content": ""})),
            sse(chunk({"role": "assistant", "content": "Hi"})),
            KEEP_ALIVE,
            sse(chunk({"role": "assistant", "content": None}, finish="stop")),
        ]
    )
    assert response.parts == (Text(text="Hi"),)
    assert response.started.upstream_id == "chatcmpl-synthetic"


def test_q27_usage_may_follow_the_finish_and_the_end_is_told_after_it() -> None:
    events = events_of(text_stream())
    assert [type(event) for event in events[-3:]] == [UsageReported, PartEnd, Ended]


def test_d4_a_reply_that_was_not_streamed_is_one_frame() -> None:
    message = {
        "role": "assistant",
        "content": "",
        "reasoning_content": "hm",
        "tool_calls": [call_delta(None, id_="a", name="add", arguments="[1]")],
    }
    whole = {
        "id": "x",
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
        "usage": usage(),
    }
    assert answer([sse(whole)]).parts == (
        Reasoning(text="hm"),
        ToolCall(id="a", name="add", arguments="[1]"),
    )


@pytest.mark.parametrize(
    ("error", "code", "status"),
    [
        ({"code": 429, "message": "slow down"}, ErrorCode.PROVIDER_RATE_LIMIT, 429),
        ({"code": 502, "message": "oops"}, ErrorCode.PROVIDER_UNAVAILABLE, 502),
        ({"type": "overloaded_error"}, ErrorCode.PROVIDER_OVERLOADED, 529),
        ({"type": "server_error"}, ErrorCode.PROVIDER_UNAVAILABLE, None),
        ({"status_code": 400, "message": "bad tool"}, ErrorCode.INVALID_REQUEST, 400),
        (
            {"code": 400, "message": "maximum context length is 9"},
            ErrorCode.CONTEXT_LENGTH_EXCEEDED,
            400,
        ),
        ("just words", ErrorCode.PROVIDER_UNAVAILABLE, None),
    ],
)
def test_q31_overloaded_mid_stream_is_an_error_of_its_kind(
    error: object, code: ErrorCode, status: int | None
) -> None:
    broken = failure([*text_stream()[:2], sse(chunk({"content": ""}, error=error)), DONE])
    assert (broken.code, broken.status) == (code, status)


def test_q31_an_error_event_is_an_error_whatever_it_holds() -> None:
    body = {"error": {"message": "no tool", "type": "invalid_request_error", "status_code": 400}}
    assert failure([sse(body, event="error")]).code is ErrorCode.INVALID_REQUEST
    assert failure([b"event: error\ndata: <html>\n\n"]).code is ErrorCode.PROVIDER_UNAVAILABLE


@pytest.mark.parametrize("kept", range(4))
def test_truncated(kept: int) -> None:
    error = failure([*text_stream()[:kept]])
    assert error.code is ErrorCode.PROVIDER_UNAVAILABLE
    assert "closed before the end" in error.message


@pytest.mark.parametrize(
    "frame",
    [
        b"data: {\n\n",
        b"data: <html>\n\n",
        b"data: []\n\n",
        b'data: {"pong": 1}\n\n',
        b'data: {"choices": [{"index": 1, "delta": {"content": "x"}}]}\n\n',
        b'data: {"choices": [{"delta": {"content": [{"type": "hologram"}]}}]}\n\n',
        b'data: {"choices": [], "usage": "many"}\n\n',
        b'data: {"choices": "none"}\n\n',
        b"data: \xff\xfe\n\n",
    ],
)
def test_malformed_frames_are_errors_and_never_dropped(frame: bytes) -> None:
    assert failure([frame, *FINISHED]).code is ErrorCode.PROVIDER_UNAVAILABLE


@pytest.mark.parametrize("word", ["error", "abort", "insufficient_system_resource"])
def test_a_finish_that_says_broken_is_an_error(word: str) -> None:
    error = failure([sse(chunk({"content": "x"}, finish=word))])
    assert error.code is ErrorCode.PROVIDER_UNAVAILABLE


@given(st.lists(st.integers(min_value=0)))
def test_c37_any_cut_of_the_bytes_gives_the_same_events(cuts: list[int]) -> None:
    body = b"".join([KEEP_ALIVE, *text_stream(["Grüße", " 世界"])[:-2], *tool_stream()])
    assert events_of(pieces(body, cuts)) == events_of([body])
