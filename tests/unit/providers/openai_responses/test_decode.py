"""Responses streams become events; every frame here is synthetic.

Keeps C37.
"""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.providers.decoding import decoded, folded, pieces, sse_frames
from tests.upstream import responses_events as upstream
from tests.upstream.openai_chunks import KEEP_ALIVE, sse
from tollgate.core.content import Provenance, Reasoning, Refusal, Text, ToolCall
from tollgate.core.errors import ErrorCode, UpstreamError
from tollgate.core.events import Citation, LogProbs, Started, StreamEvent, UsageReported
from tollgate.core.response import GenerationResponse
from tollgate.core.signers import OPENAI
from tollgate.core.usage import Usage
from tollgate.providers.codecs.openai_responses.decode import ResponsesDecoder
from tollgate.providers.ports.base import Frame

WEATHER = ToolCall(id="call_1", name="weather", arguments='{"city":"Paris"}')


def events_of(chunks: list[bytes]) -> list[StreamEvent]:
    return decoded(ResponsesDecoder("acme", signer=OPENAI), sse_frames(chunks))


def answer(*chunks: bytes) -> GenerationResponse:
    return folded(events_of([upstream.created(), *chunks]))


def failure(*chunks: bytes) -> UpstreamError:
    with pytest.raises(UpstreamError) as raised:
        events_of(list(chunks))
    return raised.value


def test_text() -> None:
    events = events_of(upstream.text_stream("Hello", " world"))
    assert events[0] == Started(
        upstream_id="resp_synthetic", served_model="synthetic-1", service_tier="default"
    )
    response = folded(events)
    assert response.parts == (Text(text="Hello world"),)
    assert (response.finish, response.raw_finish) == ("stop", "completed")


def test_c25_the_tier_that_served_is_the_last_one_said() -> None:
    assert answer(upstream.completed(service_tier="flex")).started.service_tier == "flex"


def test_d4_a_reply_that_was_not_streamed_says_the_same() -> None:
    reply = upstream.whole(upstream.message("Hello world"))
    whole = folded(decoded(ResponsesDecoder("acme", signer=OPENAI), [Frame(data=reply)]))
    assert whole == folded(events_of(upstream.text_stream("Hello", " world")))


def test_tool() -> None:
    response = answer(
        upstream.added(upstream.call("")),
        upstream.arguments_delta('{"city":'),
        upstream.arguments_delta('"Paris"}'),
        upstream.event("function_call_arguments.done", output_index=0, arguments="{}"),
        upstream.done(upstream.call('{"city":"Paris"}')),
        upstream.completed(upstream.call('{"city":"Paris"}')),
    )
    assert response.parts == (WEATHER,)
    assert response.finish == "tool_calls"


def test_q15_tool_no_args_has_the_empty_object_for_arguments() -> None:
    response = answer(
        upstream.added(upstream.call("")), upstream.done(upstream.call("")), upstream.completed()
    )
    (part,) = response.parts
    assert isinstance(part, ToolCall)
    assert part.arguments == "{}"


def test_parallel_tools_may_interleave() -> None:
    response = answer(
        upstream.added(upstream.call("", "a"), 0),
        upstream.added(upstream.call("", "b"), 1),
        upstream.arguments_delta('{"n":2}', 1),
        upstream.arguments_delta('{"n":1}', 0),
        upstream.completed(),
    )
    assert [part.arguments for part in response.parts if isinstance(part, ToolCall)] == [
        '{"n":1}',
        '{"n":2}',
    ]


def test_q33_reasoning_is_told_by_its_summary_and_kept_encrypted() -> None:
    item = upstream.reasoning("First.", "Second.")
    response = answer(
        upstream.added(upstream.reasoning(encrypted="g")),
        upstream.event("reasoning_summary_part.added", output_index=0, summary_index=0),
        upstream.summary_delta("First."),
        upstream.event("reasoning_summary_part.added", output_index=0, summary_index=1),
        upstream.summary_delta("Second.", part=1),
        upstream.done(item),
        upstream.text_delta("So.", 1),
        upstream.completed(item),
    )
    summary = Provenance(signer=OPENAI, id="rs_1", is_summary=True)
    assert response.parts == (
        Reasoning(text="First.", provenance=summary),
        Reasoning(text="\n\nSecond.", provenance=summary),
        HIDDEN,
        Text(text="So."),
    )


HIDDEN = Reasoning(text="", provenance=Provenance(signer=OPENAI, id="rs_1", data="gAAA"))


def test_q33_reasoning_without_a_word_keeps_its_place_before_the_call() -> None:
    reply = upstream.whole(upstream.reasoning(), upstream.call('{"city":"Paris"}'))
    response = folded(decoded(ResponsesDecoder("acme", signer=OPENAI), [Frame(data=reply)]))
    assert response.parts == (HIDDEN, WEATHER)


def test_cache_hit_and_reasoning_are_parts_of_what_is_reported() -> None:
    counts = upstream.usage(9, 5, cached=4, reasoning=2)
    response = answer(upstream.text_delta("Hi"), upstream.completed(usage=counts))
    assert response.usage == Usage(
        uncached_input_tokens=5,
        cache_read_input_tokens=4,
        output_tokens=5,
        reasoning_tokens=2,
    )
    assert response.usage.total_tokens == counts["total_tokens"]


def test_usage_that_nobody_reports_is_not_zero() -> None:
    response = answer(upstream.text_delta("Hi"), upstream.completed(usage=None))
    assert response.usage == Usage()


@pytest.mark.parametrize(
    ("reason", "finish"),
    [("max_output_tokens", "length"), ("content_filter", "content_filter"), (None, "length")],
)
def test_length_and_every_other_reason_to_be_incomplete(reason: str | None, finish: str) -> None:
    details = {"reason": reason} if reason else None
    cut = upstream.response(status="incomplete", incomplete_details=details)
    response = answer(upstream.text_delta("Hi"), upstream.event("incomplete", response=cut))
    assert response.finish == finish
    assert response.raw_finish == (reason or "incomplete")


def test_refusal() -> None:
    response = answer(
        upstream.event("refusal.delta", output_index=0, content_index=0, delta="I will "),
        upstream.event("refusal.delta", output_index=0, content_index=0, delta="not."),
        upstream.completed(),
    )
    assert response.parts == (Refusal(text="I will not."),)


def test_a_refusal_in_a_whole_reply() -> None:
    item = upstream.message("") | {"content": [{"type": "refusal", "refusal": "No."}]}
    response = folded(
        decoded(ResponsesDecoder("acme", signer=OPENAI), [Frame(data=upstream.whole(item))])
    )
    assert response.parts == (Refusal(text="No."),)


def test_log_probabilities_and_citations_are_notes_on_their_text() -> None:
    other = {"token": "Ho", "logprob": -0.9}
    entry = {"token": "Hi", "logprob": -0.5, "top_logprobs": [other]}
    cited = {"type": "url_citation", "url": "https://a.example", "title": "A"}
    response = answer(
        upstream.text_delta("Hi", logprobs=[entry]),
        upstream.event(
            "output_text.annotation.added",
            output_index=0,
            content_index=0,
            annotation=cited | {"start_index": 0, "end_index": 2},
        ),
        upstream.completed(),
    )
    assert response.notes[0] == (
        LogProbs(
            entries=({"bytes": None, **entry, "top_logprobs": [{"bytes": None, **other}]},),
        ),
        Citation(url="https://a.example", title="A", start=0, end=2),
    )


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("rate_limit_exceeded", ErrorCode.PROVIDER_RATE_LIMIT),
        ("server_error", ErrorCode.PROVIDER_UNAVAILABLE),
        (None, ErrorCode.PROVIDER_UNAVAILABLE),
    ],
)
def test_q31_overloaded_mid_stream_is_an_error_of_its_kind(
    code: str | None, expected: ErrorCode
) -> None:
    error = {"code": code, "message": "sk-secret1234567890"}
    told = failure(upstream.created(), sse({"type": "error", **error, "param": None}))
    assert told.code is expected
    assert "secret" not in told.message
    failed = upstream.response(status="failed", error=error)
    assert failure(upstream.event("failed", response=failed)).code is expected
    assert failure(sse({"error": error})).code is expected


@pytest.mark.parametrize("status", ["failed", "cancelled"])
def test_c52_what_a_response_used_before_it_failed_is_told(status: str) -> None:
    broken = upstream.response(status=status, usage=upstream.usage(9, 3))
    [frame] = sse_frames([upstream.event("failed", response=broken)])
    events = iter(ResponsesDecoder("acme", signer=OPENAI).feed(frame))
    assert isinstance(next(events), Started)
    reported = next(events)
    assert isinstance(reported, UsageReported)
    assert reported.usage.total_tokens == 12
    with pytest.raises(UpstreamError):
        next(events)


def test_truncated() -> None:
    stream = upstream.text_stream("Hello", " world")
    for end in range(len(stream)):
        assert failure(*stream[:end]).code is ErrorCode.PROVIDER_UNAVAILABLE


@pytest.mark.parametrize(
    "bad",
    [
        b"data: {\n\n",
        b"data: []\n\n",
        sse({}),
        sse({"type": "response.brand_new.delta"}),
        upstream.event("completed"),
        upstream.event("output_item.added", output_index=0),
        upstream.added({"type": "web_search_call", "id": "ws_1"}),
        upstream.done({"type": "web_search_call", "id": "ws_1"}),
        upstream.added(upstream.call("") | {"name": None}),
        upstream.arguments_delta("{}"),
        upstream.event("output_text.delta", output_index=0, delta={"a": 1}),
        upstream.completed(usage="many"),
        upstream.event("failed", response=upstream.response(status="cancelled")),
    ],
)
def test_malformed_events_are_errors_and_never_dropped(bad: bytes) -> None:
    assert failure(upstream.created(), bad).code is ErrorCode.PROVIDER_UNAVAILABLE


def test_q30_what_says_nothing_is_absorbed() -> None:
    stream = [KEEP_ALIVE, *upstream.text_stream("Hi"), b"data: [DONE]\n\n", KEEP_ALIVE]
    assert folded(events_of(stream)) == folded(events_of(upstream.text_stream("Hi")))


@given(cuts=st.lists(st.integers(min_value=0), max_size=30))
def test_c37_any_cut_of_the_bytes_gives_the_same_events(cuts: list[int]) -> None:
    stream = upstream.text_stream("Zoë ", "👋\n")
    assert events_of(pieces(b"".join(stream), cuts)) == events_of(stream)


places: Any = st.integers(0, 2)
any_event = st.one_of(
    st.builds(upstream.text_delta, st.sampled_from(["", "Hi"]), places),
    st.builds(upstream.summary_delta, st.sampled_from(["", "Hm"]), places, st.integers(0, 1)),
    st.builds(upstream.arguments_delta, st.sampled_from(["", "{}"]), places),
    st.builds(upstream.added, st.just(upstream.call("")), places),
    st.builds(upstream.added, st.just(upstream.reasoning()), places),
    st.builds(upstream.done, st.just(upstream.reasoning("Hm", "So")), places),
    st.builds(upstream.done, st.just(upstream.message("Hi")), places),
    st.builds(upstream.done, st.just(upstream.call("{}")), places),
    st.just(upstream.completed(upstream.message("Hi"), upstream.call("{}"))),
)


@given(st.lists(any_event, max_size=8))
def test_any_order_of_events_is_a_valid_stream_or_an_error(events: list[bytes]) -> None:
    with suppress(UpstreamError):
        assert folded(events_of([upstream.created(), *events])).finish
