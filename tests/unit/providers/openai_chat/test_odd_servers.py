"""What servers send that call themselves OpenAI's like; every frame here is synthetic.

Each shape is from the provider's own page or a public report of it (seen 2026-11-21).

Keeps C14, C25, C26, C31, C41, C44.
"""

import json
from typing import Any

import pytest

from tests.unit.providers.decoding import decoded, folded, sse_frames
from tests.upstream.openai_chunks import DONE, chunk, sse, text_stream, usage
from tollgate.core.content import Reasoning, Text, ToolCall
from tollgate.core.errors import ErrorCode, UpstreamError
from tollgate.core.events import Citation, Finish
from tollgate.core.reasoning_details import write_detail
from tollgate.core.response import GenerationResponse
from tollgate.providers.codecs.openai_chat.decode import ChatDecoder
from tollgate.providers.ports.base import Frame, Target, UpstreamRefused
from tollgate.providers.ports.formats import codec_of

TARGET = Target(provider="acme", model="acme/m", upstream_model="m")


def answer(*chunks: dict[str, Any], finish: str = "stop") -> GenerationResponse:
    events = [*map(sse, chunks), sse(chunk({}, finish=finish)), DONE]
    return folded(decoded(ChatDecoder("acme"), sse_frames(events)))


def error(status: int, body: object) -> UpstreamError:
    payload = body if isinstance(body, bytes) else json.dumps(body).encode()
    return codec_of("openai_chat").error(UpstreamRefused(status, {}, payload), TARGET)


def test_q19_arguments_that_are_an_object_become_their_text() -> None:
    call = {"index": 0, "id": "c", "function": {"name": "add", "arguments": {"a": 1}}}
    [part] = answer(chunk({"tool_calls": [call]}), finish="tool_calls").parts
    assert part == ToolCall(id="c", name="add", arguments='{"a":1}')


def test_q30_a_choice_without_an_index_is_the_first() -> None:
    said = chunk({"content": "Hi"})
    said["choices"][0]["index"] = None
    assert answer(said).parts == (Text(text="Hi"),)


def test_q30_usage_is_read_from_a_choice_and_from_groqs_own_field() -> None:
    in_choice = chunk({"content": "Hi"})
    in_choice["choices"][0]["usage"] = usage(9, 3)
    beside = chunk({"content": "Hi"}, x_groq={"id": "req_1", "usage": usage(9, 3)})
    for said in (in_choice, beside):
        assert answer(said).usage.total_tokens == 12
    assert answer(chunk({"content": "Hi"}, x_groq=None)).usage.output_tokens is None


@pytest.mark.parametrize("first", [{"usage": {}}, {"x_groq": {"usage": usage(9, 3)}}])
def test_q30_usage_may_come_before_the_answer_begins(first: dict[str, Any]) -> None:
    assert answer(chunk(**first), chunk({"content": "Hi"})).parts == (Text(text="Hi"),)


def test_q31_groq_breaks_off_in_a_field_of_its_own() -> None:
    broken = chunk({"content": "Hi"}, x_groq={"id": "req_1", "error": "over_capacity"})
    with pytest.raises(UpstreamError):
        answer(broken)


@pytest.mark.parametrize(
    ("word", "finish"),
    [
        ("eos", "stop"),
        ("eos_token", "stop"),
        ("STOP", "stop"),
        ("MAX_TOKENS", "length"),
        ("model_length", "length"),
        ("model_context_window_exceeded", "length"),
        ("sensitive", "content_filter"),
        ("content_filter", "content_filter"),
        ("something_new", "stop"),
    ],
)
def test_the_words_for_an_end_are_told_in_ours_and_theirs(word: str, finish: Finish) -> None:
    response = answer(chunk({"content": "Hi"}), finish=word)
    assert (response.finish, response.raw_finish) == (finish, word)


@pytest.mark.parametrize(
    "word",
    [
        "error",
        "abort",
        "insufficient_system_resource",
        "network_error",
        "function_call_filter: MALFORMED_FUNCTION_CALL",
    ],
)
def test_q31_a_word_for_a_broken_answer_is_an_error(word: str) -> None:
    with pytest.raises(UpstreamError):
        answer(chunk({"content": "Hi"}), finish=word)


@pytest.mark.parametrize(
    "delta",
    [
        {"audio": {"id": "a", "data": "AAAA"}},
        {"images": [{"type": "image_url", "image_url": {"url": "data:text/html;base64,AA"}}]},
        {"images": [{"type": "image_url", "image_url": {"url": "file:///etc/passwd"}}]},
        {"images": [{"type": "image_url"}]},
        {"function_call": {"name": "add", "arguments": "{}"}},
        {"content": [{"type": "novelty", "text": "x"}]},
    ],
)
def test_what_an_answer_cannot_hold_is_an_error_and_not_dropped(delta: dict[str, Any]) -> None:
    with pytest.raises(UpstreamError) as raised:
        answer(chunk(delta))
    assert raised.value.code is ErrorCode.PROVIDER_UNAVAILABLE


def test_empty_places_for_what_an_answer_cannot_hold_are_nothing() -> None:
    nothing = {"audio": None, "images": [], "function_call": None, "content": "Hi"}
    blank = {"audio": {"data": "", "expires_at": 0}, "function_call": {"name": ""}}
    for said in (nothing, nothing | blank):
        assert answer(chunk(said)).parts == (Text(text="Hi"),)


def test_mistrals_references_are_citations() -> None:
    said = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}], "closed": True},
        {"type": "text", "text": "Paris"},
        {"type": "reference", "reference_ids": [3, 5]},
        {"type": "text", "text": "."},
    ]
    response = answer(chunk({"content": said}))
    assert response.parts == (Reasoning(text="Hm."), Text(text="Paris."))
    assert response.notes[1] == (Citation(title="3"), Citation(title="5"))


def test_q33_details_told_whole_stay_apart_with_all_their_fields() -> None:
    details = [
        {"type": "reasoning.text", "text": "One.", "signature": "s1", "id": "a", "format": "x-v1"},
        {"type": "reasoning.text", "text": "Two.", "signature": "s2", "id": "b", "format": "x-v1"},
        {"type": "reasoning.encrypted", "data": "AAAA", "id": "c", "format": "x-v1", "index": 2},
        {"type": "reasoning.text", "text": "No id.", "signature": "s3", "format": "x-v1"},
        {"type": "reasoning.text", "text": "Signed before.", "signature": "s4", "format": "x-v1"},
    ]
    whole = chunk({}, finish="stop")
    whole["choices"][0]["message"] = {"content": "So.", "reasoning_details": details}
    del whole["choices"][0]["delta"]
    reply = folded(decoded(ChatDecoder("acme"), [Frame(data=json.dumps(whole).encode())]))
    thoughts = [part for part in reply.parts if isinstance(part, Reasoning)]
    sent_back = [write_detail(thought, 0) for thought in thoughts]
    assert sent_back == [detail | {"index": 0} for detail in details]


@pytest.mark.parametrize(
    "body",
    [
        [{"error": {"code": 400, "message": "input token count (9) exceeds the maximum"}}],
        {"error": {"message": "This model's maximum prompt length is 8 but it has 9 tokens"}},
        {"error": "Please reduce the length of the messages or completion."},
        {"message": "Your input exceeds the context window of this model."},
        {"detail": "prompt is too long"},
        {"error": {"message": {"text": "prompt is too long"}}},
        {"error": {"code": "context_length_exceeded", "message": None}},
        {"error": {"type": "exceed_context_size_error", "message": "no"}},
    ],
)
def test_a_prompt_that_is_too_long_is_known_in_every_shape_of_a_body(body: object) -> None:
    assert error(400, body).code is ErrorCode.CONTEXT_LENGTH_EXCEEDED


@pytest.mark.parametrize("body", [b"", b"<html>502 Bad Gateway</html>", b"[]", b"null", b'"no"'])
def test_a_body_that_says_nothing_leaves_the_status(body: bytes) -> None:
    assert error(503, body).code is ErrorCode.PROVIDER_OVERLOADED
    assert error(400, body).code is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("wrapped", [False, True])
def test_c44_errors_by_field_name_the_field_and_never_its_input(wrapped: bool) -> None:
    fields = [{"loc": ["body", "top_k"], "msg": "Input should be 1", "input": "my secret prompt"}]
    body = {"message": {"detail": fields}} if wrapped else {"detail": fields}
    message = error(422, body).message
    assert "body.top_k: Input should be 1" in message
    assert "secret" not in message


def test_insufficient_quota_in_a_stream_is_a_rate_limit() -> None:
    broken = sse({"error": {"code": "insufficient_quota", "message": "You exceeded your quota"}})
    with pytest.raises(UpstreamError) as raised:
        decoded(ChatDecoder("acme"), sse_frames([text_stream()[0], broken]))
    assert raised.value.code is ErrorCode.PROVIDER_RATE_LIMIT
