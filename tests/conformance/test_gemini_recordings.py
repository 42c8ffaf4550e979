"""What Gemini sent decodes into a valid stream, and goes back to it as it came.

Keeps C26, C37, C44.
"""

import json
import random
import re
from itertools import takewhile
from typing import Any

import pytest

from tests.conformance.recordings import Recording, cases, recordings
from tests.unit.providers.decoding import decoded, folded, pieces, sse_frames
from tollgate.core.content import Reasoning, Text, ToolCall
from tollgate.core.errors import ErrorCode, UpstreamError
from tollgate.core.events import StreamEvent, UsageReported
from tollgate.core.request import (
    AssistantMessage,
    GenerationRequest,
    Message,
    ToolMessage,
    UserMessage,
)
from tollgate.providers.codecs.gemini.calls import signature_of
from tollgate.providers.ports.base import Frame, Target, UpstreamRefused
from tollgate.providers.ports.formats import codec_of

# What no request of ours asks for; a part of such a kind, or a second candidate, is an error.
UNASKED = re.compile(
    rb'"(?:executableCode|codeExecutionResult|inlineData|fileData|toolCall|toolResponse'
    rb'|audioTranscription)"\s*:|"index"\s*:\s*[1-9]'
)
BROKEN = re.compile(rb'"(?:MALFORMED_\w+|UNEXPECTED_TOOL_CALL|TOO_MANY_TOOL_CALLS|MISSING_\w+)"')
SIGNATURE = re.compile(rb'"thoughtSignature"\s*:\s*"([^"]+)"')

GEMINI = ("gemini_generate", "gemini_stream", "vertex_gemini_generate", "vertex_gemini_stream")
CUTS = 40
TARGET = Target(provider="google", model="google/m", upstream_model="m")


def answers() -> list[Recording]:
    return [recording for recording in recordings(*GEMINI) if recording.status == 200]


def readable() -> list[Recording]:
    return [recording for recording in answers() if not is_an_error(recording)]


def is_an_error(recording: Recording) -> bool:
    """Whether an answer holds what must not pass for one."""
    body = recording.body
    return bool(UNASKED.search(body) or BROKEN.search(body) or b'"error": {' in body)


def frames(recording: Recording, chunks: list[bytes]) -> list[Frame]:
    if not recording.is_framed and recording.exchange["stream"]:
        return [Frame(data=line) for line in b"".join(chunks).splitlines() if line.strip()]
    if "event-stream" in recording.headers.get("content-type", ""):
        return sse_frames(chunks)
    # A whole reply, or a stream without `alt=sse`, which is one JSON array.
    return [Frame(data=b"".join(chunks))]


def events(recording: Recording, chunks: list[bytes] | None = None) -> list[StreamEvent]:
    return decoded(
        codec_of("gemini").decoder(TARGET), frames(recording, chunks or [recording.body])
    )


@pytest.mark.parametrize("recording", cases(iter(answers())))
def test_a_recorded_answer_decodes_into_a_valid_stream(recording: Recording) -> None:
    if is_an_error(recording):
        with pytest.raises(UpstreamError):
            events(recording)
        return
    response = folded(events(recording))
    calls = [part for part in response.parts if isinstance(part, ToolCall)]
    is_blocked = response.finish == "content_filter"
    assert response.parts or is_blocked or response.usage.output_tokens is not None
    assert len({call.id for call in calls}) == len(calls)
    assert not calls or response.finish != "stop"
    assert all(isinstance(json.loads(call.arguments), dict) for call in calls)


@pytest.mark.parametrize("recording", cases(iter(readable())))
def test_q33_every_recorded_signature_is_kept(recording: Recording) -> None:
    sent = {json.loads(b'"%s"' % value) for value in SIGNATURE.findall(recording.body)}
    parts = folded(events(recording)).parts
    kept = [
        signature_of(part.provenance) for part in parts if isinstance(part, ToolCall | Reasoning)
    ]
    assert {signature for signature in kept if signature} == sent


@pytest.mark.parametrize("recording", cases(iter(readable())))
def test_c37_a_recorded_answer_is_the_same_wherever_it_is_cut(recording: Recording) -> None:
    chance = random.Random(recording.name)
    cuts = [chance.randrange(len(recording.body)) for _ in range(CUTS)]
    assert events(recording, pieces(recording.body, cuts)) == events(recording)


@pytest.mark.parametrize("recording", cases(iter(readable())))
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
    error = codec_of("gemini").error(refused, TARGET)
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
        500: {ErrorCode.PROVIDER_UNAVAILABLE},
        503: {ErrorCode.PROVIDER_OVERLOADED},
        504: {ErrorCode.PROVIDER_TIMEOUT},
    }
    assert error.code in expected[recording.status]
    assert error.status == recording.status
    assert "://" not in error.message
    ours = recording.status in (401, 403) or any(
        reason in recording.body for reason in (b"API_KEY_INVALID", b"FAILED_PRECONDITION")
    )
    assert (error.code is ErrorCode.PROVIDER_AUTH) == ours
    assert (error.retry_after_s is not None) == (
        b"retryDelay" in recording.body or "retry-after" in recording.headers
    )


def conversations() -> list[Any]:
    """Pairs of which the second request replays the first answer."""
    found = {}
    for each in recordings(*GEMINI):
        source = each.exchange["source"]
        found[each.path.parent.name, source["path"], source["index"]] = each
    pairs = [
        (first, found[folder, path, index + 1])
        for (folder, path, index), first in found.items()
        if (folder, path, index + 1) in found
        and first in readable()
        and goes_on(first, found[folder, path, index + 1])
    ]
    missing = pytest.mark.skip(reason="TOLLGATE_RECORDINGS is not set or has no conversations")
    return [pytest.param(*pair, id=pair[0].name) for pair in pairs] or [
        pytest.param(None, None, marks=missing, id="none")
    ]


def goes_on(first: Recording, second: Recording) -> bool:
    before, after = first.sent.get("contents", []), second.sent.get("contents", [])
    follows = bool(before) and after[: len(before)] == before and len(after) > len(before)
    return follows and after[len(before)]["role"] == "model"


def text_of(result: dict[str, Any]) -> str:
    """What a tool said, out of the wrapping of a client."""
    match result["response"]:
        case {"result": str(text)} | {"content": [{"text": str(text)}]}:
            return text
        case other:
            return json.dumps(other)


def found_in(turns: list[Any], kind: str) -> list[dict[str, Any]]:
    return [part[kind] for turn in turns for part in turn["parts"] if kind in part]


# What may differ between our second request and a recorded client's; reviewed 2026-11-21.
# - Texts are compared joined and trimmed: a stream cuts them anywhere. Thoughts are left out, and
#   so are empty texts.
# - Results are compared by what the tool said and by name: each client wraps them in its own way,
#   in one turn or in several.
# - Ids are compared where Gemini gave them: where it did not, some clients send ids of their own.
# - Signatures are compared where the client sends any: clients from before them send none.
def spoken(turn: Any) -> str:
    return "".join(p.get("text", "") for p in turn["parts"] if not p.get("thought")).strip()


def called(turn: Any, *, with_ids: bool, signed: bool) -> list[Any]:
    return [
        (
            call["name"],
            call.get("args") or {},
            call.get("id") if with_ids else None,
            part.get("thoughtSignature") if signed else None,
        )
        for part in turn["parts"]
        if (call := part.get("functionCall"))
    ]


@pytest.mark.parametrize(("first", "second"), conversations())
def test_q34_what_was_answered_goes_back_as_the_recorded_client_sent_it(
    first: Recording, second: Recording
) -> None:
    response = folded(events(first))
    calls = [part for part in response.parts if isinstance(part, ToolCall)]
    replayed, *rest = second.sent["contents"][len(first.sent["contents"]) :]
    said = found_in(list(takewhile(lambda turn: turn["role"] != "model", rest)), "functionResponse")
    by_id = {result["id"]: result for result in said if "id" in result}
    answering = [by_id.get(call.id, result) for call, result in zip(calls, said, strict=True)]
    messages: list[Message] = [
        UserMessage(content=(Text(text="?"),)),
        AssistantMessage(content=response.parts),
        *(
            ToolMessage(call_id=call.id, content=(Text(text=text_of(result)),))
            for call, result in zip(calls, answering, strict=True)
        ),
    ]
    request = GenerationRequest(model="google/m", messages=tuple(messages))
    encoded: Any = codec_of("gemini").encode(request, TARGET).body["contents"]
    _, ours, *results = encoded
    gave_ids = bool(re.search(rb'"functionCall"\s*:\s*{[^}]*"id"', first.body))
    same = {"with_ids": gave_ids, "signed": "thoughtSignature" in json.dumps(replayed)}
    assert spoken(ours) == spoken(replayed)
    assert called(ours, **same) == called(replayed, **same)
    assert len(results) == bool(calls)
    told = found_in(results, "functionResponse")
    assert [(each["name"], text_of(each)) for each in told] == [
        (each["name"], text_of(each)) for each in answering
    ]
    if gave_ids:
        assert [each.get("id") for each in told] == [call.id for call in calls]


@pytest.mark.parametrize(
    "recording", cases(r for r in readable() if "event-stream" in r.headers.get("content-type", ""))
)
def test_q29_a_recorded_stream_is_the_same_as_one_json_array(recording: Recording) -> None:
    chunks = [frame.data for frame in frames(recording, [recording.body])]
    array = Frame(data=b"[" + b"\r\n,\r\n".join(chunks) + b"]")
    whole = folded(decoded(codec_of("gemini").decoder(TARGET), [array]))
    streamed = folded(events(recording))
    assert (whole.usage, whole.finish) == (streamed.usage, streamed.finish)
    assert [type(part) for part in whole.parts] == [type(part) for part in streamed.parts]
