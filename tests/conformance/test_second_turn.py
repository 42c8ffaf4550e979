"""An answer goes back as the recorded client sent it back: the second turn of a conversation.

Where exchange k+1 of one conversation is recorded too, its request continues exchange k: our answer
to k, as the turn that it becomes, and the tool results of k+1 must be what was sent there.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import pytest

from tests.conformance.recordings import Recording, cases, recordings
from tests.conformance.test_recordings import CHAT, chat_frames, converse_frames
from tests.unit.providers.decoding import decoded, folded, sse_frames
from tollgate.core.content import Text, ToolCall
from tollgate.core.request import (
    AssistantMessage,
    GenerationRequest,
    Message,
    ToolMessage,
    UserMessage,
)
from tollgate.providers.ports.base import Codec, Frame, Target
from tollgate.providers.ports.dialect import Dialect
from tollgate.providers.ports.formats import codec_of

# Where each provider wants its reasoning back, as its row would say.
DIALECTS: Mapping[str, Dialect] = {
    "cerebras_chat": Dialect(reasoning_field="think_tags"),
    "deepseek_chat": Dialect(reasoning_field="reasoning_content"),
    "mistral_chat": Dialect(tool_call_id_length=9),
    "snowflake_chat": Dialect(reasoning_field="reasoning_details"),
    "vercel_gw_chat": Dialect(reasoning_field="reasoning_details"),
    "xai_chat": Dialect(reasoning_field="reasoning_content"),
}
RESPONSES = ("openai_responses",)
CONVERSE = ("bedrock_converse", "bedrock_converse_stream")

# Reviewed differences, each of which every server takes as the same.
# Fields that clients echo or add and that say nothing.
SILENT = frozenset(
    {"annotations", "audio", "function_call", "index", "prefix", "refusal", "status"}
)


@dataclass(frozen=True)
class Turn:
    """Two exchanges of which the second continues the first."""

    first: Recording
    second: Recording

    @property
    def name(self) -> str:
        return self.second.name


def turns(*folders: str) -> Iterator[Turn]:
    """Pairs whose second request begins with all that the first one had said."""
    found = {place(recording): recording for recording in recordings(*folders)}
    for (folder, path, index), first in found.items():
        second = found.get((folder, path, index + 1))
        if second is None or first.status != 200:
            continue
        earlier, later = said(first), said(second)
        if later[: len(earlier)] == earlier and len(later) > len(earlier):
            yield Turn(first, second)


def place(recording: Recording) -> tuple[str, str, int]:
    source = recording.exchange["source"]
    return recording.path.parent.name, str(source["path"]), int(source.get("index") or 0)


def said(recording: Recording) -> list[Any]:
    return list(recording.sent.get("messages") or recording.sent.get("input") or ())


def target(recording: Recording) -> Target:
    folder = recording.path.parent.name
    return Target(
        provider=folder,
        model="x/y",
        upstream_model="y",
        dialect=DIALECTS.get(folder, Dialect()),
    )


def answer(codec: Codec, recording: Recording, frames: list[Frame]) -> AssistantMessage:
    response = folded(decoded(codec.decoder(target(recording)), frames))
    return AssistantMessage(content=response.parts)


def sent_back(codec: Codec, turn: Turn, *messages: Message) -> list[Any]:
    request = GenerationRequest(
        model="x/y", messages=(UserMessage(content=(Text(text="?"),)), *messages)
    )
    body: Any = codec.encode(request, target(turn.second)).body
    return list(body.get("messages") or body["input"])[1:]


def plain(value: Any) -> Any:
    """A value without what says nothing; JSON in text is compared as JSON."""
    match value:
        case dict():
            kept = {key: plain(inner) for key, inner in value.items() if key not in SILENT}
            return {key: inner for key, inner in kept.items() if inner not in (None, "", [])}
        case [{"type": "text", "text": str(text), **rest}] if not rest:
            return text
        case list():
            return [plain(inner) for inner in value]
        case str() if value[:1] in ("{", "["):
            try:
                return json.loads(value)
            except ValueError:
                return value
        case _:
            return value


def text_result(id_: str, content: Any) -> ToolMessage:
    return ToolMessage(call_id=id_, content=(Text(text=content),))


@pytest.mark.parametrize("turn", cases(turns(*CHAT)))
def test_a_chat_answer_goes_back_as_it_was_sent(turn: Turn) -> None:
    codec = codec_of("openai_chat")
    back = answer(codec, turn.first, chat_frames(turn.first, [turn.first.body]))
    reply, *recorded = said(turn.second)[len(said(turn.first)) :]
    kept = {call["id"] for call in reply.get("tool_calls") or ()}
    run = list(takewhile(lambda message: message["role"] == "tool", recorded))
    results = [text_result(message["tool_call_id"], message["content"]) for message in run]
    ours = sent_back(codec, turn, with_calls(back, kept), *results)
    assert plain(ours) == plain([reply, *run])


def with_calls(message: AssistantMessage, kept: set[str]) -> AssistantMessage:
    """Some clients run one of several calls and never tell of the others."""
    parts = (p for p in message.content if not isinstance(p, ToolCall) or p.id in kept)
    return AssistantMessage(content=tuple(parts))


@pytest.mark.parametrize("turn", cases(turns(*RESPONSES)))
def test_a_response_goes_back_as_it_was_sent(turn: Turn) -> None:
    codec = codec_of("openai_responses")
    first = turn.first
    frames = sse_frames([first.body]) if first.exchange["stream"] else [Frame(data=first.body)]
    back = answer(codec, first, frames)
    recorded = said(turn.second)[len(said(first)) :]
    results = [
        text_result(item["call_id"], item["output"])
        for item in recorded
        if item.get("type") == "function_call_output"
    ]
    ours = sent_back(codec, turn, back, *results)
    assert plain(ours) == plain(recorded[: len(ours)])


@pytest.mark.parametrize("turn", cases(turns(*CONVERSE)))
def test_a_converse_answer_goes_back_as_it_was_sent(turn: Turn) -> None:
    codec = codec_of("bedrock")
    first = turn.first
    back = answer(codec, first, converse_frames(first, [first.body]))
    recorded = said(turn.second)[len(said(first)) :]
    results = [
        text_result(block["toolResult"]["toolUseId"], block["toolResult"]["content"][0]["text"])
        for block in recorded[1]["content"]
        if "toolResult" in block
    ]
    ours = sent_back(codec, turn, back, *results)
    assert plain(ours) == plain(recorded[: len(ours)])
