"""A stream frame by frame, and a whole reply.

Keeps C5, C10, C25, C26, C27, C30, C31, C33.
"""

import json
from decimal import Decimal
from typing import Any

import pytest

from tests.chat_stream import MARK, exact, frames
from tests.unit.ingress.samples import EPISODE_ID, SERVED, chat_completions, record, renderer
from tollgate.core.content import Part, Provenance, Reasoning, Refusal, Text, ToolCall
from tollgate.core.errors import ErrorCode, UpstreamError
from tollgate.core.events import (
    Ended,
    PartDelta,
    PartEnd,
    PartStart,
    Started,
    StreamEvent,
    UsageReported,
)
from tollgate.core.request import GenerationRequest
from tollgate.core.response import Fold
from tollgate.core.signers import CLAUDE, GEMINI
from tollgate.core.usage import Usage
from tollgate.ingress.base import ParsedCall, ServedBy
from tollgate.ingress.chat_completions.render import ChatRenderer
from tollgate.ingress.chat_completions.wire.response import ChatCompletionFailure

STOP = Ended(finish="stop", raw_finish="end_turn")


def said(
    part: Part, *texts: str, index: int = 0, provenance: Provenance | None = None
) -> list[StreamEvent]:
    return [
        PartStart(index=index, part=part),
        *(PartDelta(index=index, text=text) for text in texts),
        PartEnd(index=index, provenance=provenance),
    ]


def streamed(writer: ChatRenderer, *events: StreamEvent) -> bytes:
    return b"".join(writer.feed(event) for event in events)


def told(*events: StreamEvent, started: Started | None = None) -> list[dict[str, Any]]:
    """The frames of a finished stream."""
    writer = renderer()
    stream = streamed(writer, started or Started(), *events, STOP)
    return frames(stream + writer.close(record()))


def deltas(*events: StreamEvent) -> list[dict[str, Any]]:
    """What the content frames say: without role, finish and usage frames."""
    return [chunk["choices"][0]["delta"] for chunk in told(*events)[1:-2]]


def whole(*events: StreamEvent, started: Started | None = None) -> dict[str, Any]:
    fold = Fold()
    for event in (started or Started(), *events, STOP):
        fold.accept(event)
    return exact(renderer().whole([fold.response()], record()))


def test_c30_a_stream_is_role_deltas_finish_usage_and_the_mark() -> None:
    chunks = told(*said(Text(text=""), "Hel", "lo"))
    assert [chunk["choices"] for chunk in chunks] == [
        [{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}],
        [{"index": 0, "delta": {"content": "Hel"}, "finish_reason": None}],
        [{"index": 0, "delta": {"content": "lo"}, "finish_reason": None}],
        [
            {
                "index": 0,
                "delta": {},
                "finish_reason": "stop",
                "native_finish_reason": "end_turn",
            }
        ],
        [],
    ]
    assert ["usage" in chunk for chunk in chunks] == [False, False, False, False, True]


def test_c30_each_frame_leaves_with_its_event() -> None:
    writer = renderer()
    started = writer.feed(Started())
    assert started.startswith(b'data: {"id":')
    assert started.endswith(b"}\n\n")
    assert writer.feed(PartStart(index=0, part=Text(text=""))) == b""
    assert writer.feed(PartDelta(index=0, text="hi")).count(b"\n\n") == 1
    assert writer.feed(PartDelta(index=0, text="")) == b""
    assert writer.feed(UsageReported(usage=Usage(output_tokens=1))) == b""
    assert writer.feed(PartEnd(index=0)) == b""
    assert writer.feed(STOP).count(b"\n\n") == 1
    assert writer.close(record()).endswith(MARK)


def test_c30_usage_rides_the_finish_frame_where_that_is_asked() -> None:
    writer = renderer(usage_on_finish=True)
    stream = streamed(writer, Started(), *said(Text(text=""), "hi"))
    assert writer.feed(STOP) == b""
    chunks = frames(stream + writer.close(record()))
    assert all(chunk["choices"] for chunk in chunks)
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks] == [None, None, "stop"]
    assert chunks[-1]["usage"]["total_tokens"] == 12
    assert chunks[-1]["credits_used"] == Decimal("1.234567891")


def test_c5_c25_every_frame_says_which_reply_it_belongs_to() -> None:
    started = Started(system_fingerprint="fp_1", service_tier="default")
    for chunk in told(*said(Text(text=""), "hi"), started=started):
        assert chunk["id"] == "gen-Na1b2c3d4e5f6g7"
        assert chunk["object"] == "chat.completion.chunk"
        assert chunk["created"] == SERVED.created_s
        assert chunk["model"] == "test/echo"
        assert chunk["provider"] == "The Simulator"
        assert chunk["system_fingerprint"] == "fp_1"
        assert chunk["service_tier"] == "default"
        assert chunk["episode_id"] == EPISODE_ID


def test_c25_a_whole_reply() -> None:
    reply = whole(*said(Text(text=""), "Hel", "lo"))
    assert reply == {
        "id": "gen-Na1b2c3d4e5f6g7",
        "object": "chat.completion",
        "created": SERVED.created_s,
        "model": "test/echo",
        "provider": "The Simulator",
        "system_fingerprint": None,
        "episode_id": EPISODE_ID,
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "Hello", "refusal": None},
                "logprobs": None,
                "finish_reason": "stop",
                "native_finish_reason": "end_turn",
            }
        ],
        "usage": {
            "prompt_tokens": 7,
            "completion_tokens": 5,
            "total_tokens": 12,
            "prompt_tokens_details": {
                "cached_tokens": 4,
                "cache_write_tokens": 0,
                "audio_tokens": 0,
            },
            "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
            "cost": Decimal("1.234567891"),
        },
        "credits_used": Decimal("1.234567891"),
        "model_used": "test/echo",
        "provider_used": "simulator",
    }


@pytest.mark.parametrize("usage_on_finish", [False, True])
def test_c25_a_tier_that_is_told_with_the_usage_is_on_the_frames_after_it(
    usage_on_finish: bool,
) -> None:
    writer = renderer(usage_on_finish=usage_on_finish)
    tier = UsageReported(usage=Usage(output_tokens=1), service_tier="flex")
    begun = Started(service_tier="auto")
    stream = streamed(writer, begun, *said(Text(text=""), "hi"), tier, STOP)
    chunks = frames(stream + writer.close(record()))
    assert [chunk["service_tier"] for chunk in chunks[:2]] == ["auto", "auto"]
    assert {chunk["service_tier"] for chunk in chunks[2:]} == {"flex"}
    assert whole(*said(Text(text=""), "hi"), tier, started=begun)["service_tier"] == "flex"


def test_c25_a_tier_that_openai_does_not_know_is_not_told() -> None:
    assert "service_tier" not in whole(started=Started(service_tier="on_demand"))


def test_c25_an_episode_id_is_made_for_a_call_without_one() -> None:
    call = ParsedCall(request=GenerationRequest(model="m", messages=()), stream=True)
    chunk = chat_completions().renderer(call, SERVED, credits_per_usd=Decimal(1)).feed(Started())
    assert frames(chunk + MARK)[0]["episode_id"] == "017f22e2-79b0-7001-8203-040506070809"


def test_c25_content_is_null_only_beside_calls_or_a_refusal() -> None:
    call = ToolCall(id="c", name="f", arguments="")
    assert whole()["choices"][0]["message"]["content"] == ""
    assert whole(*said(call))["choices"][0]["message"]["content"] is None
    assert whole(*said(Refusal(text=""), "no"))["choices"][0]["message"]["content"] is None


def test_c25_a_refusal_has_its_own_field() -> None:
    assert deltas(*said(Refusal(text=""), "I ", "cannot")) == [
        {"refusal": "I "},
        {"refusal": "cannot"},
    ]
    message = whole(*said(Refusal(text=""), "I ", "cannot"))["choices"][0]["message"]
    assert message["refusal"] == "I cannot"


def test_c31_tool_calls_have_a_dense_index_and_say_once_who_they_are() -> None:
    events = [
        *said(Text(text=""), "Let me see."),
        PartStart(index=1, part=ToolCall(id="call_a", name="f", arguments="")),
        PartStart(index=2, part=ToolCall(id="call_b", name="g", arguments="")),
        PartDelta(index=1, text='{"a"'),
        PartDelta(index=2, text="{}"),
        PartDelta(index=1, text=":1}"),
        PartEnd(index=1),
        PartEnd(index=2),
    ]
    assert [delta["tool_calls"] for delta in deltas(*events)[1:]] == [
        [
            {
                "index": 0,
                "id": "call_a",
                "type": "function",
                "function": {"name": "f", "arguments": ""},
            }
        ],
        [
            {
                "index": 1,
                "id": "call_b",
                "type": "function",
                "function": {"name": "g", "arguments": ""},
            }
        ],
        [{"index": 0, "function": {"arguments": '{"a"'}}],
        [{"index": 1, "function": {"arguments": "{}"}}],
        [{"index": 0, "function": {"arguments": ":1}"}}],
    ]


@pytest.mark.parametrize("texts", [(), ("",), (" ", "\n")])
def test_c31_a_call_without_arguments_still_has_valid_json(texts: tuple[str, ...]) -> None:
    events = said(ToolCall(id="c", name="f", arguments=""), *texts)
    arguments = "".join(
        call["function"]["arguments"] for delta in deltas(*events) for call in delta["tool_calls"]
    )
    assert json.loads(arguments) == {}
    (call,) = whole(*events)["choices"][0]["message"]["tool_calls"]
    assert call["function"]["arguments"] == arguments


def test_c31_reasoning_is_told_under_both_names_and_with_its_signature() -> None:
    begun = Reasoning(text="", provenance=Provenance(signer=CLAUDE))
    signed = Provenance(signer=CLAUDE, signature="sig")
    events = [*said(begun, "so", provenance=signed), *said(Text(text=""), "hi", index=1)]
    detail = {"type": "reasoning.text", "index": 0}
    assert deltas(*events) == [
        {"reasoning_details": [detail | {"text": "", "model": "test/echo"}]},
        {
            "reasoning": "so",
            "reasoning_content": "so",
            "reasoning_details": [detail | {"text": "so"}],
        },
        {"reasoning_details": [detail | {"format": CLAUDE, "signature": "sig"}]},
        {"content": "hi"},
    ]
    message = whole(*events)["choices"][0]["message"]
    assert message["reasoning"] == message["reasoning_content"] == "so"
    assert message["reasoning_details"] == [
        detail | {"text": "so", "format": CLAUDE, "signature": "sig", "model": "test/echo"}
    ]


def test_c10_signed_reasoning_without_text_is_not_lost() -> None:
    hidden = Provenance(signer=GEMINI, data="x", id="r")
    message = whole(*said(Reasoning(text=""), provenance=hidden))["choices"][0]["message"]
    assert message["reasoning_details"] == [
        {"type": "reasoning.encrypted", "index": 0, "format": GEMINI, "id": "r", "data": "x"}
    ]
    assert "reasoning" not in message


def test_c10_what_a_provider_attached_to_a_call_is_told() -> None:
    attached = {"google": {"thought_signature": "t"}}
    signed = Provenance(signer=GEMINI, signature="t")
    events = said(ToolCall(id="c", name="f", arguments=""), "{}", provenance=signed)
    assert deltas(*events)[-1] == {
        "tool_calls": [{"index": 0, "function": {"arguments": ""}, "extra_content": attached}]
    }
    (call,) = whole(*events)["choices"][0]["message"]["tool_calls"]
    assert call["extra_content"] == attached


@pytest.mark.parametrize(
    ("cost_nano_usd", "written"),
    [
        (0, b"0"),
        (1, b"0.000000001"),
        (123, b"0.000000123"),
        (100_000_000, b"0.1"),
        (1_000_000_000, b"1"),
        (10_000_000_000, b"10"),
        (123_456_789_012_345_678, b"123456789.012345678"),
    ],
)
def test_c26_cost_is_written_to_the_nano_dollar(cost_nano_usd: int, written: bytes) -> None:
    writer = renderer(credits_per_usd="100")
    frame = writer.close(record(cost_nano_usd=cost_nano_usd))
    assert b'"cost":' + written + b"}" in frame
    usage = frames(frame)[0]
    assert Decimal(usage["credits_used"]) == Decimal(cost_nano_usd) / 10**7


def test_c26_total_is_prompt_and_completion_and_null_classes_are_told_as_zero() -> None:
    usage = Usage(
        uncached_input_tokens=1,
        cache_read_input_tokens=2,
        cache_write_5m_input_tokens=4,
        cache_write_1h_input_tokens=8,
        output_tokens=16,
        reasoning_tokens=3,
    )
    told_usage = frames(renderer().close(record(usage=usage)))[0]["usage"]
    assert told_usage["prompt_tokens"] == 15
    assert told_usage["completion_tokens"] == 16
    assert told_usage["total_tokens"] == 31
    assert told_usage["prompt_tokens_details"]["cached_tokens"] == 2
    assert told_usage["prompt_tokens_details"]["cache_write_tokens"] == 12
    assert told_usage["completion_tokens_details"]["reasoning_tokens"] == 3
    nothing = frames(renderer().close(record(usage=Usage())))[0]["usage"]
    assert (nothing["prompt_tokens"], nothing["total_tokens"]) == (0, 0)


def test_c27_the_usage_frame_says_what_headers_say_of_a_whole_reply() -> None:
    served = ServedBy(
        generation_id="i",
        created_s=1,
        model="b/b",
        provider="second",
        fallback_from="a/a",
        fallback_depth=2,
    )
    finished = record(model="b/b", provider="second", adapted=("seed",))
    frame = renderer(served=served).close(finished)
    accounts = frames(frame)[0]
    assert accounts["model_used"] == "b/b"
    # A provider without a name for people is named by its slug.
    assert (accounts["provider"], accounts["provider_used"]) == ("second", "second")
    assert accounts["fallback_from"] == "a/a"
    assert accounts["fallback_depth"] == 2
    assert accounts["adapted"] == ["seed"]


def test_c33_a_stream_that_breaks_ends_with_an_error_chunk_and_the_mark() -> None:
    writer = renderer()
    stream = streamed(writer, Started(), PartStart(index=0, part=Text(text="")))
    stream += writer.feed(PartDelta(index=0, text="Hel"))
    error = UpstreamError(ErrorCode.PROVIDER_UNAVAILABLE, "The provider closed the stream.")
    partial = record(outcome="error", cost_nano_usd=0)
    *before, last = frames(stream + writer.fail(error, partial))
    assert [chunk["choices"][0]["delta"] for chunk in before] == [
        {"role": "assistant", "content": ""},
        {"content": "Hel"},
    ]
    ChatCompletionFailure.model_validate(last)
    assert "choices" not in last
    assert list(last)[:4] == ["id", "object", "created", "model"]
    assert last["error"] == {
        "message": "The provider closed the stream.",
        "type": "server_error",
        "code": "provider_unavailable",
        "param": None,
        "request_id": SERVED.generation_id,
    }
    assert last["usage"]["completion_tokens"] == 5
    assert last["credits_used"] == 0


def test_c33_a_finish_frame_that_waits_for_the_usage_is_not_sent_by_a_failure() -> None:
    writer = renderer(usage_on_finish=True)
    stream = streamed(writer, Started(), *said(Text(text=""), "hi"), STOP)
    error = UpstreamError(ErrorCode.PROVIDER_UNAVAILABLE, "The provider closed the stream.")
    *before, last = frames(stream + writer.fail(error, record(outcome="error")))
    assert [frame["choices"][0]["finish_reason"] for frame in before] == [None, None]
    assert "choices" not in last


def test_c33_a_stream_may_break_before_it_has_begun() -> None:
    error = UpstreamError(ErrorCode.PROVIDER_TIMEOUT, "No model answered.")
    nothing = record(outcome="error", model=None, provider=None, usage=Usage(), cost_nano_usd=0)
    (only,) = frames(renderer().fail(error, nothing))
    assert only["error"]["code"] == "provider_timeout"
    assert only["model_used"] is None
    assert only["id"] == "gen-Na1b2c3d4e5f6g7"


@pytest.mark.parametrize("text", ["\n\n", "\r", 'data: [DONE]"', "\u2028", "\x00", "\U0001f600"])
def test_c30_no_text_breaks_its_frame(text: str) -> None:
    assert deltas(*said(Text(text=""), text)) == [{"content": text}]
