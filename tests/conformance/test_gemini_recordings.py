"""What Gemini sent decodes into a valid stream, and goes back to it as it came."""

import json
import random
from typing import Any

import pytest

from tests.conformance.recordings import Recording, cases, recordings
from tests.unit.providers.decoding import decoded, folded, pieces, sse_frames
from tollgate.core.content import Text, ToolCall
from tollgate.core.errors import ErrorCode, UpstreamError
from tollgate.core.events import StreamEvent, UsageReported
from tollgate.core.request import (
    AssistantMessage,
    GenerationRequest,
    Message,
    ToolMessage,
    UserMessage,
)
from tollgate.providers.base import Frame, Target, UpstreamRefused
from tollgate.providers.gemini.codec import GeminiCodec

GEMINI = ("gemini_generate", "gemini_stream", "vertex_gemini_generate", "vertex_gemini_stream")
CUTS = 40
TARGET = Target(provider="google", model="google/m", upstream_model="m")


def answers() -> list[Recording]:
    return [recording for recording in recordings(*GEMINI) if recording.status == 200]


def frames(recording: Recording, chunks: list[bytes]) -> list[Frame]:
    if not recording.is_framed and recording.exchange["stream"]:
        return [Frame(data=line) for line in b"".join(chunks).splitlines() if line.strip()]
    if "event-stream" in recording.headers.get("content-type", ""):
        return sse_frames(chunks)
    # A whole reply, or a stream without `alt=sse`, which is one JSON array.
    return [Frame(data=b"".join(chunks))]


def events(recording: Recording, chunks: list[bytes] | None = None) -> list[StreamEvent]:
    return decoded(GeminiCodec().decoder(TARGET), frames(recording, chunks or [recording.body]))


@pytest.mark.parametrize("recording", cases(iter(answers())))
def test_a_recorded_answer_decodes_into_a_valid_stream(recording: Recording) -> None:
    response = folded(events(recording))
    calls = [part for part in response.parts if isinstance(part, ToolCall)]
    assert response.parts or response.usage.output_tokens
    assert len({call.id for call in calls}) == len(calls)
    assert not calls or response.finish in {"tool_calls", "length"}
    assert all(isinstance(json.loads(call.arguments), dict) for call in calls)
    assert recording.body.count(b'"thoughtSignature"') == sum(
        bool(getattr(part, "opaque", None)) for part in response.parts
    )


@pytest.mark.parametrize("recording", cases(iter(answers())))
def test_c37_a_recorded_answer_is_the_same_wherever_it_is_cut(recording: Recording) -> None:
    chance = random.Random(recording.name)
    cuts = [chance.randrange(len(recording.body)) for _ in range(CUTS)]
    assert events(recording, pieces(recording.body, cuts)) == events(recording)


@pytest.mark.parametrize("recording", cases(iter(answers())))
def test_c26_a_recorded_total_is_prompt_and_completion(recording: Recording) -> None:
    for report in events(recording):
        if isinstance(report, UsageReported):
            assert isinstance(report.raw, dict)
            stated = report.raw.get("totalTokenCount")
            assert stated is None or report.usage.total_tokens == stated


@pytest.mark.parametrize("recording", cases(iter(answers())))
def test_a_recorded_stream_that_is_cut_short_is_an_error(recording: Recording) -> None:
    with pytest.raises(UpstreamError) as raised:
        events(recording, [recording.body[: len(recording.body) // 2]])
    assert raised.value.code is ErrorCode.PROVIDER_UNAVAILABLE


@pytest.mark.parametrize("recording", cases(r for r in recordings(*GEMINI) if r.status != 200))
def test_c44_a_recorded_refusal_is_never_a_401_and_blames_who_is_at_fault(
    recording: Recording,
) -> None:
    refused = UpstreamRefused(recording.status, recording.headers, recording.body)
    error = GeminiCodec().error(refused, TARGET)
    expected = {
        400: {
            ErrorCode.INVALID_REQUEST,
            ErrorCode.CONTEXT_LENGTH_EXCEEDED,
            ErrorCode.PROVIDER_AUTH,
        },
        401: {ErrorCode.PROVIDER_AUTH},
        403: {ErrorCode.PROVIDER_AUTH},
        404: {ErrorCode.PROVIDER_UNAVAILABLE},
        429: {ErrorCode.PROVIDER_RATE_LIMIT},
    }
    assert error.code in expected[recording.status]
    assert error.status == recording.status
    assert "://" not in error.message
    is_about_our_key = b"API_KEY_INVALID" in recording.body
    assert (error.code is ErrorCode.PROVIDER_AUTH) == (
        is_about_our_key or recording.status in (401, 403)
    )
    assert (error.retry_after_s is not None) == (
        b"retryDelay" in recording.body or "retry-after" in recording.headers
    )


def conversations() -> list[Any]:
    """Pairs of which the second request replays the first answer."""
    found = {
        (
            each.path.parent.name,
            each.exchange["source"]["path"],
            each.exchange["source"]["index"],
        ): each
        for each in recordings(*GEMINI)
    }
    pairs = [
        (first, found[folder, path, index + 1])
        for (folder, path, index), first in found.items()
        if (folder, path, index + 1) in found and first.status == 200
    ]
    missing = pytest.mark.skip(reason="TOLLGATE_RECORDINGS is not set or has no conversations")
    return [pytest.param(*pair, id=pair[0].name) for pair in pairs] or [
        pytest.param(None, None, marks=missing, id="none")
    ]


def text_of(result: dict[str, Any]) -> str:
    """What a tool said, out of the wrapping of a client."""
    match result["response"]:
        case {"result": str(text)} | {"content": [{"text": str(text)}]}:
            return text
        case other:
            return json.dumps(other)


def essence(turn: Any) -> Any:
    """A turn without what may differ; reviewed 2026-11-21.

    - Texts are compared joined, because a stream cuts them anywhere, and without thoughts that are
      not signed and empty texts, which clients may leave out.
    - Results are compared by what the tool said: Gemini lets each client wrap it in its own way.
    - Ids are compared apart, because some clients make their own where Gemini sent none.
    """
    parts = [part for part in turn["parts"] if not part.get("thought")]
    return {
        "role": turn["role"],
        "text": "".join(part.get("text", "") for part in parts),
        "calls": [
            (
                part["functionCall"]["name"],
                part["functionCall"]["args"],
                part.get("thoughtSignature"),
            )
            for part in parts
            if "functionCall" in part
        ],
        "results": [
            (part["functionResponse"]["name"], text_of(part["functionResponse"]))
            for part in parts
            if "functionResponse" in part
        ],
    }


def ids(turn: Any) -> list[str | None]:
    return [
        (part.get("functionCall") or part["functionResponse"]).get("id")
        for part in turn["parts"]
        if "functionCall" in part or "functionResponse" in part
    ]


@pytest.mark.parametrize(("first", "second"), conversations())
def test_q34_what_was_answered_goes_back_as_the_recorded_client_sent_it(
    first: Recording, second: Recording
) -> None:
    response = folded(events(first))
    calls = [part for part in response.parts if isinstance(part, ToolCall)]
    recorded = second.sent["contents"][len(first.sent["contents"]) :]
    said = [
        part["functionResponse"]
        for turn in recorded
        for part in turn["parts"]
        if "functionResponse" in part
    ]
    messages: list[Message] = [
        UserMessage(content=(Text(text="?"),)),
        AssistantMessage(content=response.parts),
        *(
            ToolMessage(call_id=call.id, content=(Text(text=text_of(result)),))
            for call, result in zip(calls, said, strict=True)
        ),
    ]
    request = GenerationRequest(model="google/m", messages=tuple(messages))
    sent: Any = GeminiCodec().encode(request, TARGET).body["contents"]
    assert list(map(essence, sent[1:])) == list(map(essence, recorded[: len(sent) - 1]))
    gave_ids = b'"id"' in first.body
    for ours, theirs in zip(sent[1:], recorded, strict=False):
        assert ids(ours) == (ids(theirs) if gave_ids else [None] * len(ids(theirs)))


@pytest.mark.parametrize(
    "recording", cases(r for r in answers() if "event-stream" in r.headers.get("content-type", ""))
)
def test_q29_a_recorded_stream_is_the_same_as_one_json_array(recording: Recording) -> None:
    chunks = [frame.data for frame in frames(recording, [recording.body])]
    array = Frame(data=b"[" + b"\r\n,\r\n".join(chunks) + b"]")
    whole = folded(decoded(GeminiCodec().decoder(TARGET), [array]))
    streamed = folded(events(recording))
    assert (whole.usage, whole.finish) == (streamed.usage, streamed.finish)
    assert [type(part) for part in whole.parts] == [type(part) for part in streamed.parts]
