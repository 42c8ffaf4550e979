"""What real providers sent decodes into a valid stream, wherever its bytes are cut.

Keeps C14, C26, C37, C44.
"""

import random

import pytest

from tests.conformance.recordings import Recording, cases, recordings
from tests.unit.providers.decoding import decoded, folded, pieces, sse_frames
from tollgate.aws.eventstream import EventStreamDecoder
from tollgate.core.content import ToolCall
from tollgate.core.errors import ErrorCode, UpstreamError
from tollgate.core.events import StreamEvent, UsageReported
from tollgate.providers.ports.base import Codec, Frame, Target, UpstreamRefused
from tollgate.providers.ports.formats import codec_of

CHAT = (
    "openai_chat",
    "openai_chat_stream",
    "azure_chat",
    "cerebras_chat",
    "crusoe_chat",
    "databricks_chat",
    "deepseek_chat",
    "gemini_openai_compat",
    "groq_chat",
    "huggingface_chat",
    "mistral_chat",
    "ollama_chat",
    "openrouter_chat",
    "perplexity_chat",
    "snowflake_chat",
    "together_chat",
    "vercel_gw_chat",
    "vllm_chat",
    "xai_chat",
    "zai_chat",
)
RESPONSES = ("openai_responses",)
CONVERSE = ("bedrock_converse_stream", "bedrock_converse")
CUTS = 40


def streams(*folders: str) -> list[Recording]:
    """Answers to requests that the gateway sends, which never have `n` above 1."""
    return [
        recording
        for recording in recordings(*folders)
        if recording.status == 200
        and (recording.sent.get("n") or 1) == 1
        and not uses_server_tools(recording)
    ]


def uses_server_tools(recording: Recording) -> bool:
    """Whether the provider was asked to run tools of its own, which we never ask for."""
    kinds = {tool.get("type") for tool in recording.sent.get("tools") or ()}
    return recording.path.parent.name in RESPONSES and not kinds <= {"function"}


def target(recording: Recording) -> Target:
    return Target(provider=recording.path.parent.name, model="x/y", upstream_model="y")


def chat_frames(recording: Recording, chunks: list[bytes]) -> list[Frame]:
    if not recording.exchange["stream"]:
        return [Frame(data=b"".join(chunks))]
    if not recording.is_framed:
        return [Frame(data=line) for line in b"".join(chunks).splitlines() if line.strip()]
    return sse_frames(chunks)


def converse_frames(recording: Recording, chunks: list[bytes]) -> list[Frame]:
    if not recording.exchange["stream"]:
        return [Frame(data=b"".join(chunks))]
    framing = EventStreamDecoder()
    messages = [message for chunk in chunks for message in framing.feed(chunk)] + framing.end()
    return [
        Frame(data=message.payload, event=message.event, exception=message.exception)
        for message in messages
    ]


def outcome(recording: Recording, chunks: list[bytes]) -> list[StreamEvent] | ErrorCode:
    """The events, or the code of the error that the provider sent in their place."""
    try:
        if recording.path.parent.name in CONVERSE:
            found = converse_frames(recording, chunks)
            return decoded(codec_of("bedrock").decoder(target(recording)), found)
        frames = chat_frames(recording, chunks)
        if recording.path.parent.name in RESPONSES:
            return decoded(codec_of("openai_responses").decoder(target(recording)), frames)
        return decoded(codec_of("openai_chat").decoder(target(recording)), frames)
    except UpstreamError as error:
        return error.code


def sent_an_error(recording: Recording) -> bool:
    """Whether the provider itself put an error or an exception into its stream."""
    return any(mark in recording.body for mark in (b'"error":{', b'"error": {', b":exception-type"))


@pytest.mark.parametrize("recording", cases(iter(streams(*CHAT, *RESPONSES, *CONVERSE))))
def test_a_recorded_answer_decodes_into_a_valid_stream(recording: Recording) -> None:
    events = outcome(recording, [recording.body])
    if sent_an_error(recording):
        assert isinstance(events, ErrorCode)
        return
    assert isinstance(events, list), events
    response = folded(events)
    calls = [part for part in response.parts if isinstance(part, ToolCall)]
    assert response.parts or response.usage.output_tokens
    assert len({call.id for call in calls}) == len(calls)
    assert not calls or response.finish in {"tool_calls", "length"}


@pytest.mark.parametrize("recording", cases(iter(streams(*CHAT, *RESPONSES, *CONVERSE))))
def test_c37_a_recorded_answer_is_the_same_wherever_it_is_cut(recording: Recording) -> None:
    whole = outcome(recording, [recording.body])
    chance = random.Random(recording.name)
    cuts = [chance.randrange(len(recording.body)) for _ in range(CUTS)]
    assert outcome(recording, pieces(recording.body, cuts)) == whole


@pytest.mark.parametrize(
    "recording",
    cases(r for r in recordings(*CHAT) if r.status == 200 and (r.sent.get("n") or 1) > 1),
)
def test_c14_recorded_choices_are_told_apart_and_usage_is_counted_once(
    recording: Recording,
) -> None:
    codec, wanted = codec_of("openai_chat"), recording.sent["n"]
    assert codec.demultiplexer is not None
    choices = codec.demultiplexer(target(recording), wanted)
    frames: list[list[Frame]] = [[] for _ in range(wanted)]
    for frame in chat_frames(recording, [recording.body]):
        for index, own in choices.feed(frame):
            frames[index].append(own)
    answers = [folded(decoded(codec.decoder(target(recording)), own)) for own in frames]
    assert all(each.parts for each in answers)
    assert [each.usage.output_tokens is not None for each in answers] == [
        index == 0 for index in range(wanted)
    ]


@pytest.mark.parametrize("recording", cases(iter(streams(*CHAT, *RESPONSES, *CONVERSE))))
def test_c26_a_recorded_total_is_prompt_and_completion(recording: Recording) -> None:
    events = outcome(recording, [recording.body])
    reports = (
        [e for e in events if isinstance(e, UsageReported)] if isinstance(events, list) else []
    )
    for report in reports:
        assert isinstance(report.raw, dict)
        stated = report.raw.get("total_tokens", report.raw.get("totalTokens"))
        assert stated is None or report.usage.total_tokens == stated


@pytest.mark.parametrize("recording", cases(iter(streams(*CHAT, *RESPONSES, *CONVERSE))))
def test_a_recorded_stream_that_is_cut_short_is_an_error(recording: Recording) -> None:
    body = recording.body
    assert isinstance(outcome(recording, [body[: len(body) // 2]]), ErrorCode)


@pytest.mark.parametrize(
    "recording", cases(r for r in recordings(*CHAT, *RESPONSES, *CONVERSE) if r.status != 200)
)
def test_c44_a_recorded_refusal_is_never_a_401_and_blames_who_is_at_fault(
    recording: Recording,
) -> None:
    codec: Codec = (
        codec_of("bedrock") if recording.path.parent.name in CONVERSE else codec_of("openai_chat")
    )
    if recording.path.parent.name in RESPONSES:
        codec = codec_of("openai_responses")
    refused = UpstreamRefused(recording.status, recording.headers, recording.body)
    error = codec.error(refused, target(recording))
    expected = {
        400: {ErrorCode.INVALID_REQUEST, ErrorCode.CONTEXT_LENGTH_EXCEEDED},
        401: {ErrorCode.PROVIDER_AUTH},
        403: {ErrorCode.PROVIDER_AUTH},
        404: {ErrorCode.PROVIDER_UNAVAILABLE},
        429: {ErrorCode.PROVIDER_RATE_LIMIT},
    }
    assert error.code in expected[recording.status]
    assert error.status == recording.status
    assert "://" not in error.message
    if "context_length" in recording.exchange["features"] or "context-length" in recording.name:
        wanted = {ErrorCode.CONTEXT_LENGTH_EXCEEDED, ErrorCode.PROVIDER_RATE_LIMIT}
        assert error.code in wanted
