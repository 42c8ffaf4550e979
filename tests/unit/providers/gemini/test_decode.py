"""Gemini's chunks become events; every chunk here is synthetic.

Keeps C37.
"""

import json
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.providers.decoding import decoded, folded, pieces, sse_frames
from tests.upstream import gemini_chunks as gemini
from tests.upstream.gemini_chunks import SIGNATURE, call, chunk, text, thought, usage
from tollgate.core.content import Provenance, Reasoning, Refusal, Text, ToolCall
from tollgate.core.errors import ErrorCode, UpstreamError
from tollgate.core.events import (
    Citation,
    Ended,
    LogProbs,
    PartEnd,
    PartStart,
    StreamEvent,
    UsageReported,
)
from tollgate.core.response import GenerationResponse
from tollgate.core.signers import GEMINI
from tollgate.core.usage import Usage
from tollgate.providers.codecs.gemini.decode import GeminiDecoder
from tollgate.providers.ports.base import Frame

SIGNED = Provenance(signer=GEMINI, signature=SIGNATURE)


def events_of(chunks: Iterable[object]) -> list[StreamEvent]:
    return decoded(GeminiDecoder("google"), sse_frames([gemini.sse(each) for each in chunks]))


def answer(*chunks: object) -> GenerationResponse:
    return folded(events_of(chunks))


def failure(*chunks: object) -> UpstreamError:
    with pytest.raises(UpstreamError) as raised:
        events_of(chunks)
    return raised.value


def test_text() -> None:
    response = answer(*gemini.text_stream())
    assert response.parts == (Text(text="Hello world"),)
    assert (response.finish, response.raw_finish) == ("stop", "STOP")
    assert response.started.upstream_id == "resp-1"
    assert response.started.served_model == "gemini-9"


def test_q29_a_candidate_without_parts_or_content_is_no_part() -> None:
    bare = chunk()
    bare["candidates"][0]["content"] = {"role": "model"}
    response = answer(chunk(text("Hi")), bare, chunk(finish="STOP") | usage())
    assert response.parts == (Text(text="Hi"),)


def test_q29_a_reply_that_is_one_json_array_is_the_same_as_a_stream() -> None:
    chunks = gemini.text_stream()
    body = ",\r\n".join(json.dumps(each, indent=2) for each in chunks)
    whole = decoded(GeminiDecoder("google"), [Frame(data=f"[{body}]\n".encode())])
    assert folded(whole) == answer(*chunks)


def test_q29_a_whole_reply_is_a_stream_of_one_chunk() -> None:
    whole = chunk(text("Hello world"), finish="STOP") | usage()
    response = folded(decoded(GeminiDecoder("google"), [Frame(data=json.dumps(whole).encode())]))
    assert response == answer(*gemini.text_stream())


def test_reasoning_comes_apart_from_text_and_keeps_its_signature() -> None:
    response = answer(
        chunk(thought("Let me ")),
        chunk(thought("think.", thoughtSignature=SIGNATURE)),
        chunk(text("So."), finish="STOP"),
    )
    assert response.parts == (Reasoning(text="Let me think.", provenance=SIGNED), Text(text="So."))


def test_q34_a_signature_on_an_empty_text_is_kept_and_does_not_part_the_text() -> None:
    response = answer(
        chunk(text("Joe ")),
        chunk(text("", thoughtSignature=SIGNATURE)),
        chunk(text("sage"), finish="STOP"),
    )
    assert response.parts == (Text(text="Joe sage"), Reasoning(text="", provenance=SIGNED))


def test_q34_a_signature_on_a_text_or_without_one_is_kept() -> None:
    signed = answer(
        chunk(thought("Hm.")), chunk(text("5", thoughtSignature=SIGNATURE), finish="STOP")
    )
    assert signed.parts[1:] == (Text(text="5"), Reasoning(text="", provenance=SIGNED))
    alone = answer(chunk(thought("Hm.")), chunk({"thoughtSignature": SIGNATURE}, finish="STOP"))
    assert alone.parts == (
        Reasoning(text="Hm.", provenance=Provenance(signer=GEMINI)),
        Reasoning(text="", provenance=SIGNED),
    )


def test_tool_q34_keeps_the_signature_of_the_call() -> None:
    response = answer(
        chunk(text("Wait.")),
        chunk(call("weather", id="abc", args={"city": "Paris"}, signature=SIGNATURE)),
        chunk(finish="STOP") | usage(),
    )
    assert response.parts == (
        Text(text="Wait."),
        ToolCall(id="abc", name="weather", arguments='{"city":"Paris"}', provenance=SIGNED),
    )
    assert (response.finish, response.raw_finish) == ("tool_calls", "STOP")


def test_q34_a_whole_call_begins_with_its_signature() -> None:
    whole = call("now", args={}, signature=SIGNATURE)
    first = call("then", signature=SIGNATURE, willContinue=True)
    signatures = [
        event.part.provenance and event.part.provenance.signature
        for event in events_of([chunk(whole), chunk(first), chunk(call()), chunk(finish="STOP")])
        if isinstance(event, PartStart) and isinstance(event.part, ToolCall)
    ]
    assert signatures == [SIGNATURE, None]


def test_parallel_tools_in_one_chunk_q12_get_ids_of_their_own() -> None:
    both = chunk(call("add", args={"a": 2}), call("add", args={"a": 2}), finish="STOP")
    first, second = answer(both).parts
    assert isinstance(first, ToolCall)
    assert isinstance(second, ToolCall)
    assert first.id != second.id
    assert answer(both).parts == (first, second)


def test_q12_ids_differ_between_answers() -> None:
    ids = [
        part.id
        for number in range(2)
        for part in answer(chunk(call("now"), finish="STOP") | {"responseId": str(number)}).parts
        if isinstance(part, ToolCall)
    ]
    assert len(set(ids)) == 2


@pytest.mark.parametrize("fields", [{}, {"args": {}}, {"partialArgs": []}])
def test_q15_tool_no_args_has_the_empty_object_for_arguments(fields: dict[str, Any]) -> None:
    (part,) = answer(chunk(call("now", id="a", **fields), finish="STOP")).parts
    assert part == ToolCall(id="a", name="now", arguments="{}")


def test_q14_long_numbers_keep_their_digits() -> None:
    (part,) = answer(
        chunk(call("f", id="a", args={"n": 12345678901234567890}), finish="STOP")
    ).parts
    assert isinstance(part, ToolCall)
    assert part.arguments == '{"n":12345678901234567890}'


def test_cache_hit_is_part_of_the_prompt() -> None:
    counted = usage(100, 5, cachedContentTokenCount=80, thoughtsTokenCount=7)
    found = answer(chunk(text("Hi"), finish="STOP") | counted).usage
    assert found == Usage(
        uncached_input_tokens=20,
        cache_read_input_tokens=80,
        output_tokens=12,
        reasoning_tokens=7,
    )
    assert found.total_tokens == 112


def test_what_tools_put_into_the_prompt_is_prompt() -> None:
    counted = usage(10, 5, toolUsePromptTokenCount=40)
    found = answer(chunk(text("Hi"), finish="STOP") | counted).usage
    assert (found.input_tokens, found.total_tokens) == (50, 55)


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        (
            {"promptTokenCount": 11, "totalTokenCount": 11},
            Usage(uncached_input_tokens=11, output_tokens=0),
        ),
        (
            {"candidatesTokenCount": 4, "thoughtsTokenCount": 6, "totalTokenCount": 15},
            Usage(uncached_input_tokens=5, output_tokens=10, reasoning_tokens=6),
        ),
        ({"candidatesTokenCount": 4}, Usage(output_tokens=4)),
        ({"promptTokenCount": 4}, Usage(uncached_input_tokens=4)),
        ({"trafficType": "ON_DEMAND"}, Usage()),
    ],
)
def test_a_count_that_is_left_out_follows_from_the_total_or_is_unknown(
    stated: dict[str, Any], expected: Usage
) -> None:
    assert answer(chunk(text("Hi"), finish="STOP") | {"usageMetadata": stated}).usage == expected


def test_q29_usage_repeats_and_the_last_wins() -> None:
    events = events_of(
        [
            chunk(text("Hi")) | usage(147, 5),
            chunk(finish="STOP") | usage(274, 6) | {"promptFeedback": {}},
        ]
    )
    assert [type(event) for event in events[-3:]] == [UsageReported, PartEnd, Ended]
    assert folded(events).usage == Usage(uncached_input_tokens=274, output_tokens=6)


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("STOP", "stop"),
        ("MAX_TOKENS", "length"),
        ("SAFETY", "content_filter"),
        ("RECITATION", "content_filter"),
        ("BLOCKLIST", "content_filter"),
        ("PROHIBITED_CONTENT", "content_filter"),
        ("SPII", "content_filter"),
        ("MODEL_ARMOR", "content_filter"),
        ("OTHER", "stop"),
        ("A_NEW_REASON", "stop"),
    ],
)
def test_length_refusal_and_every_other_finish_reason(reason: str, finish: str) -> None:
    response = answer(chunk(text("x"), finish=reason))
    assert (response.finish, response.raw_finish) == (finish, reason)


@pytest.mark.parametrize(("number", "reason"), [(1, "STOP"), (2, "MAX_TOKENS"), (99, "99")])
def test_a_finish_reason_may_come_as_a_number(number: int, reason: str) -> None:
    numbered = chunk(text("x"))
    numbered["candidates"][0]["finishReason"] = number
    assert answer(numbered).raw_finish == reason


def test_a_call_that_is_cut_or_filtered_does_not_finish_as_a_call() -> None:
    assert answer(chunk(call("f"), finish="MAX_TOKENS")).finish == "length"
    assert answer(chunk(call("f"), finish="SAFETY")).finish == "content_filter"


@pytest.mark.parametrize(
    "reason",
    [
        "MALFORMED_FUNCTION_CALL",
        "MALFORMED_RESPONSE",
        "MISSING_THOUGHT_SIGNATURE",
        "TOO_MANY_TOOL_CALLS",
        "UNEXPECTED_TOOL_CALL",
        "OTHER",
        "A_NEW_REASON",
    ],
)
def test_an_answer_that_is_none_is_an_error_and_no_empty_stop(reason: str) -> None:
    error = failure(chunk(finish=reason) | usage())
    assert error.code is ErrorCode.PROVIDER_UNAVAILABLE
    assert reason in error.message


def test_refusal_a_blocked_prompt_ends_as_filtered_with_the_words_for_it() -> None:
    feedback = {"blockReason": "MODEL_ARMOR", "blockReasonMessage": "Injection."}
    response = answer({"promptFeedback": feedback, "usageMetadata": {"trafficType": "ON_DEMAND"}})
    assert response.parts == (Refusal(text="Injection."),)
    assert (response.finish, response.raw_finish) == ("content_filter", "MODEL_ARMOR")
    assert answer({"promptFeedback": {"blockReason": "SAFETY"}}).parts == ()


@pytest.mark.parametrize("kept", range(3))
def test_truncated(kept: int) -> None:
    error = failure(*gemini.text_stream()[:kept])
    assert error.code is ErrorCode.PROVIDER_UNAVAILABLE
    assert "closed before the end" in error.message


@pytest.mark.parametrize(
    ("code", "status", "expected"),
    [
        (429, "RESOURCE_EXHAUSTED", ErrorCode.PROVIDER_RATE_LIMIT),
        (503, "UNAVAILABLE", ErrorCode.PROVIDER_OVERLOADED),
        (500, "INTERNAL", ErrorCode.PROVIDER_UNAVAILABLE),
        (400, "INVALID_ARGUMENT", ErrorCode.INVALID_REQUEST),
    ],
)
@pytest.mark.parametrize("in_array", [False, True])
def test_q31_overloaded_mid_stream_is_an_error_of_its_kind(
    in_array: bool, code: int, status: str, expected: ErrorCode
) -> None:
    chunks: list[Any] = [chunk(text("Hi")), {"error": {"code": code, "status": status}}]
    error = failure(chunks) if in_array else failure(*chunks)
    assert (error.code, error.status) == (expected, code)


@pytest.mark.parametrize(
    "frame",
    [
        {},
        {"song": 1},
        [1],
        "text",
        {"candidates": {}},
        chunk({"inlineData": {"mimeType": "audio/wav", "data": "AAAA"}}),
        chunk({"inlineData": {"mimeType": "image/png"}}),
        chunk({"executableCode": {"code": "1"}}),
        chunk(call(args={"a": 1})),
        chunk(call(willContinue=True)),
        chunk(call("f", partialArgs=[{"stringValue": "x"}])),
        {"candidates": [{"index": 1, "content": {"parts": [{"text": "x"}]}}]},
        {"usageMetadata": "many"},
        {"error": "?"},
    ],
)
def test_malformed_frames_are_errors_and_never_dropped(frame: object) -> None:
    assert failure(frame, *gemini.text_stream()).code is ErrorCode.PROVIDER_UNAVAILABLE


@pytest.mark.parametrize(("billed_once", "searches"), [(False, 2), (True, 1)])
def test_c65_queries_are_counted_as_google_bills_them(billed_once: bool, searches: int) -> None:
    chunks = [
        chunk(text("So"), groundingMetadata={"webSearchQueries": ["a", "", "b"]}) | gemini.usage(),
        chunk(text("."), groundingMetadata={"webSearchQueries": ["b"]}, finish="STOP"),
    ]
    decoder = GeminiDecoder("google", searches_billed_once=billed_once)
    events = decoded(decoder, sse_frames([gemini.sse(each) for each in chunks]))
    reports = [event for event in events if isinstance(event, UsageReported)]
    assert {report.usage.web_searches for report in reports} == {searches}
    assert {str(report.raw) for report in reports} == {str(gemini.usage()["usageMetadata"])}
    assert answer(chunk(text("So"), finish="STOP")).usage.web_searches is None


def test_sources_of_a_stretch_become_citations_by_characters_and_once() -> None:
    grounding = {
        "groundingChunks": [{"web": {"uri": "https://a.example", "title": "A"}}, {"song": {}}],
        "groundingSupports": [
            {"segment": {"startIndex": 7, "endIndex": 12}, "groundingChunkIndices": [0, 1, 9]}
        ],
    }
    response = answer(
        chunk(text("Grüße"), groundingMetadata={"webSearchQueries": ["x"]}),
        chunk(text(" Welt"), groundingMetadata=grounding),
        chunk(text(""), groundingMetadata=grounding, finish="STOP"),
    )
    assert response.parts == (Text(text="Grüße Welt"),)
    assert response.notes == {
        0: (
            Citation(url="https://a.example", title="A", start=5, end=10),
            Citation(start=5, end=10),
        )
    }


def test_recited_sources_become_citations() -> None:
    cited = {"citationSources": [{"uri": "https://b.example", "endIndex": 2}]}
    response = answer(chunk(text("Hello"), citationMetadata=cited, finish="STOP"))
    assert response.notes == {0: (Citation(url="https://b.example", start=0, end=2),)}


def test_likelihoods_become_openais() -> None:
    result = {
        "chosenCandidates": [{"token": "é", "logProbability": -0.5}],
        "topCandidates": [{"candidates": [{"token": "e", "logProbability": -1.5}]}],
    }
    response = answer(chunk(text("é"), logprobsResult=result, finish="STOP"))
    entry = {
        "token": "é",
        "logprob": -0.5,
        "bytes": [195, 169],
        "top_logprobs": [{"token": "e", "logprob": -1.5, "bytes": [101]}],
    }
    assert response.notes == {0: (LogProbs(entries=(entry,)),)}


@given(st.lists(st.integers(min_value=0)))
def test_c37_any_cut_of_the_bytes_gives_the_same_events(cuts: list[int]) -> None:
    body = b"".join(map(gemini.sse, gemini.text_stream("Grüße", " 世界")))
    whole = decoded(GeminiDecoder("google"), sse_frames([body]))
    assert decoded(GeminiDecoder("google"), sse_frames(pieces(body, cuts))) == whole
