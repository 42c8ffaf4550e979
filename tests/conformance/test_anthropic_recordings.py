"""What Anthropic, Vertex AI and Bedrock sent, and what clients sent them, against our codec.

Keeps C26, C37, C44.
"""

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from msgspec.structs import replace

from tests.conformance.anthropic_requests import (
    CARRIERS,
    is_ours,
    plain,
    plain_messages,
    read,
    target,
)
from tests.conformance.recordings import Recording, cases, recordings
from tests.references import published_schema
from tests.unit.ingress.samples import chat_completions
from tests.unit.ingress.test_stream_equals_whole import both
from tests.unit.providers.decoding import decoded, folded, pieces, sse_frames
from tollgate.core.content import Part, Reasoning, Text, ToolCall
from tollgate.core.errors import ErrorCode, UpstreamError
from tollgate.core.events import StreamEvent, UsageReported
from tollgate.core.request import (
    AssistantMessage,
    GenerationRequest,
    ToolMessage,
    UserMessage,
)
from tollgate.providers.ports.base import Frame, UpstreamRefused
from tollgate.providers.ports.formats import codec_of
from tollgate.providers.transports.invoke_frames import InvokeFrames

CUTS = 40
CODEC = codec_of("anthropic")
# The model that the samples of replies name.
MODEL = "test/echo"


def answers() -> list[Recording]:
    return [recording for recording in recordings(*CARRIERS) if recording.status == 200]


def frames(recording: Recording, chunks: list[bytes]) -> list[Frame]:
    if CARRIERS[recording.path.parent.name] == "bedrock":
        chunked = InvokeFrames()
        return [*(frame for chunk in chunks for frame in chunked.feed(chunk)), *chunked.end()]
    if not recording.exchange["stream"]:
        return [Frame(data=b"".join(chunks))]
    if not recording.is_framed:
        return [Frame(data=line) for line in b"".join(chunks).splitlines() if line.strip()]
    return sse_frames(chunks)


def outcome(recording: Recording, chunks: list[bytes]) -> list[StreamEvent] | ErrorCode:
    """The events, or the code of the error that the provider sent in their place."""
    try:
        return decoded(CODEC.decoder(target(recording)), frames(recording, chunks))
    except UpstreamError as error:
        return error.code


@pytest.mark.parametrize("recording", cases(iter(answers())))
def test_a_recorded_answer_decodes_into_a_valid_stream(recording: Recording) -> None:
    events = outcome(recording, [recording.body])
    if isinstance(events, ErrorCode):
        assert b'"type":"error"' in recording.body.replace(b" ", b"")
        return
    response = folded(events)
    calls = [part for part in response.parts if isinstance(part, ToolCall)]
    assert response.parts or response.finish == "content_filter"
    assert len({call.id for call in calls}) == len(calls)
    assert not calls or response.finish in {"tool_calls", "length"}
    thoughts = [part for part in response.parts if isinstance(part, Reasoning)]
    assert all(thought.provenance and thought.provenance.is_signed for thought in thoughts)


@pytest.mark.parametrize("recording", cases(iter(answers())))
def test_c37_a_recorded_answer_is_the_same_wherever_it_is_cut(recording: Recording) -> None:
    whole = outcome(recording, [recording.body])
    chance = random.Random(recording.name)
    cuts = [chance.randrange(len(recording.body)) for _ in range(CUTS)]
    assert outcome(recording, pieces(recording.body, cuts)) == whole


@pytest.mark.parametrize("recording", cases(iter(answers())))
def test_a_recorded_answer_that_is_cut_short_is_an_error(recording: Recording) -> None:
    body = recording.body
    assert isinstance(outcome(recording, [body[: len(body) // 2]]), ErrorCode)


@pytest.mark.parametrize("recording", cases(iter(answers())))
def test_c26_recorded_cached_tokens_are_counted_beside_the_input(recording: Recording) -> None:
    events = outcome(recording, [recording.body])
    reports = (
        [e for e in events if isinstance(e, UsageReported)] if isinstance(events, list) else []
    )
    for report in reports:
        raw: Any = report.raw
        names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
        assert report.usage.input_tokens == sum(raw.get(name) or 0 for name in names)
        assert report.usage.output_tokens == raw.get("output_tokens")


@pytest.mark.parametrize("recording", cases(r for r in recordings(*CARRIERS) if r.status != 200))
def test_c44_a_recorded_refusal_blames_who_is_at_fault(recording: Recording) -> None:
    refused = UpstreamRefused(recording.status, recording.headers, recording.body)
    error = CODEC.error(refused, target(recording))
    expected = {
        400: {ErrorCode.INVALID_REQUEST, ErrorCode.CONTEXT_LENGTH_EXCEEDED},
        401: {ErrorCode.PROVIDER_AUTH},
        403: {ErrorCode.PROVIDER_AUTH},
        404: {ErrorCode.PROVIDER_UNAVAILABLE},
        413: {ErrorCode.INVALID_REQUEST},
        429: {ErrorCode.PROVIDER_RATE_LIMIT},
        529: {ErrorCode.PROVIDER_OVERLOADED},
    }
    assert error.code in expected[recording.status]
    assert error.status == recording.status
    assert "://" not in error.message


@pytest.mark.parametrize("recording", cases(r for r in answers() if is_ours(r)))
def test_a_recorded_request_is_sent_as_it_was(recording: Recording) -> None:
    wire = CODEC.encode(read(recording.sent), target(recording))
    assert plain({**wire.body}) == plain(recording.sent)


@dataclass(frozen=True)
class Turn:
    """Two exchanges of which the second continues the first."""

    first: Recording
    second: Recording

    @property
    def name(self) -> str:
        return self.second.name


def turns() -> Iterator[Turn]:
    """Pairs whose second request has all that the first one said, and an answer after it."""
    found = {place(recording): recording for recording in recordings(*CARRIERS)}
    for (folder, path, index), first in found.items():
        second = found.get((folder, path, index + 1))
        if second is None or first.status != 200 or not (first.sent and second.sent):
            continue
        earlier, later = first.sent["messages"], second.sent["messages"]
        if len(later) > len(earlier) and later[len(earlier)]["role"] == "assistant":
            yield Turn(first, second)


def place(recording: Recording) -> tuple[str, str, int]:
    source = recording.exchange["source"]
    return recording.path.parent.name, str(source["path"]), int(source.get("index") or 0)


@pytest.mark.parametrize("turn", cases(turns()))
def test_q33_a_recorded_answer_goes_back_as_the_client_sent_it(turn: Turn) -> None:
    """Our answer to the first exchange, in the place of the one that the client sent back."""
    events = outcome(turn.first, [turn.first.body])
    assert isinstance(events, list)
    request = read(turn.second.sent)
    back = AssistantMessage(content=folded(events).parts)
    said = [isinstance(message, AssistantMessage) for message in request.messages]
    earlier = sum(message["role"] == "assistant" for message in turn.first.sent["messages"])
    index = [number for number, is_said in enumerate(said) if is_said][earlier]
    messages = (*request.messages[:index], back, *request.messages[index + 1 :])
    body: Any = CODEC.encode(replace(request, messages=messages), target(turn.second)).body
    assert plain_messages(body["messages"]) == plain_messages(turn.second.sent["messages"])


def said_back(parts: Sequence[Part], recording: Recording) -> list[Any]:
    """The assistant turn that these parts become, with a result for each of their calls."""
    results = [
        ToolMessage(call_id=part.id, content=(Text(text="x"),))
        for part in parts
        if isinstance(part, ToolCall)
    ]
    asked = UserMessage(content=(Text(text="?"),))
    messages = (asked, AssistantMessage(content=tuple(parts)), *results)
    request = GenerationRequest(model="anthropic/m", messages=messages)
    body: Any = CODEC.encode(request, replace(target(recording), model=MODEL)).body
    return list(body["messages"][1]["content"])


def in_one_text(blocks: Sequence[Any]) -> tuple[list[Any], str]:
    """Blocks as chat completions can tell them: the texts as one, and all else in order."""
    texts = [block["text"] for block in blocks if block["type"] == "text"]
    return [block for block in blocks if block["type"] != "text"], "".join(texts)


@pytest.mark.parametrize("recording", cases(iter(answers())))
def test_q33_a_recorded_answer_survives_a_client_of_chat_completions(recording: Recording) -> None:
    """Signatures, hidden thoughts and what Anthropic's own tools did come back as they left."""
    events = outcome(recording, [recording.body])
    if isinstance(events, ErrorCode):
        return
    response = folded(events)
    _, whole = both(events, response.usage)
    Draft202012Validator(published_schema("openai.chat_completions.response")).validate(
        json.loads(whole)
    )
    told = json.loads(whole)["choices"][0]["message"]
    results = [
        {"role": "tool", "tool_call_id": call["id"], "content": "x"}
        for call in told.get("tool_calls") or ()
    ]
    chat = {"model": "m", "messages": [{"role": "user", "content": "?"}, told, *results]}
    parsed = chat_completions().parse(json.dumps(chat).encode()).request
    [back] = [message for message in parsed.messages if isinstance(message, AssistantMessage)]
    direct = said_back(response.parts, recording)
    assert in_one_text(said_back(back.content, recording)) == in_one_text(direct)
