"""Prompts and answers in spans: only with both consents, in GenAI's form, within a size."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from tests.clocks import FixedClock
from tests.gateways import RecordedJournal
from tests.otlp import read_export
from tests.unit.ingress.samples import record
from tollgate.core import transcripts
from tollgate.core.content import Image, MediaUrl, Text, ToolCall
from tollgate.core.events import PartDelta, PartStart
from tollgate.core.ids import IdSource
from tollgate.core.prompt_policy import PromptPolicy
from tollgate.core.records.generation import GenerationRecord, JudgementRecord
from tollgate.core.request import (
    AssistantMessage,
    GenerationRequest,
    Message,
    RoutingPreferences,
    SystemMessage,
    ToolMessage,
    UserMessage,
)
from tollgate.core.response import Fold
from tollgate.core.transcripts import ChatTranscript
from tollgate.observability.messages import CHARACTERS_MAX
from tollgate.observability.otlp import WAITING_BYTES_MAX, SpanJournal

CLOCK = FixedClock()
IDS = IdSource(CLOCK, entropy=lambda size: bytes(range(1, size + 1)))
CONTENT = ("gen_ai.system_instructions", "gen_ai.input.messages", "gen_ai.output.messages")
SIGNED = "https://example.org/a.png?signature=secret"
NO_RETENTION = PromptPolicy(no_retention=True)


class Collected:
    """A collector that keeps each export."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []

    async def send(self, body: bytes) -> None:
        self.bodies.append(body)


@pytest.fixture(autouse=True)
def no_transcript() -> Iterator[None]:
    yield
    transcripts.withdraw_transcript()


def consent(*messages: Message, answer: str = "Sunny.") -> None:
    fold = Fold()
    fold.accept(PartStart(index=0, part=Text(text="")))
    fold.accept(PartDelta(index=0, text=answer))
    request = GenerationRequest(model="test/echo", messages=messages or (said("Weather?"),))
    transcripts.share_transcript(ChatTranscript(request=request, answers=[fold]))


def said(text: str) -> UserMessage:
    return UserMessage(content=(Text(text=text),))


async def sent(settled: GenerationRecord, *, content: bool = True) -> dict[str, Any]:
    collector = Collected()
    journal = SpanJournal(RecordedJournal([]), collector, CLOCK, IDS, content=content)
    journal.settled(settled)
    await journal.flush()
    [span] = read_export(collector.bodies[0])["spans"]
    return dict(span["attributes"])


async def test_c109_a_span_shows_prompt_and_answer_in_the_form_of_the_conventions() -> None:
    consent(
        SystemMessage(content=(Text(text="Be brief."),)),
        UserMessage(content=(Text(text="Weather?"), Image(source=MediaUrl(url=SIGNED)))),
        AssistantMessage(content=(ToolCall(id="c1", name="weather", arguments='{"at":"Oslo"}'),)),
        ToolMessage(call_id="c1", content=(Text(text="18 C"),)),
    )
    told = await sent(record(finish="stop"))
    system, asked, answered = (json.loads(told[name]) for name in CONTENT)
    assert system == [{"type": "text", "content": "Be brief."}]
    call = {"type": "tool_call", "id": "c1", "name": "weather", "arguments": '{"at":"Oslo"}'}
    result = {"type": "tool_call_response", "id": "c1", "response": "18 C"}
    assert asked == [
        {"role": "user", "parts": [{"type": "text", "content": "Weather?"}, {"type": "image"}]},
        {"role": "assistant", "parts": [call]},
        {"role": "tool", "parts": [result]},
    ]
    text = {"type": "text", "content": "Sunny."}
    assert answered == [{"role": "assistant", "parts": [text], "finish_reason": "stop"}]
    assert "tollgate.content.cut" not in told


async def test_c109_without_the_keys_consent_or_the_operators_a_span_has_no_text() -> None:
    without_key = await sent(record())
    consent()
    without_operator = await sent(record(), content=False)
    for told in (without_key, without_operator):
        assert not set(CONTENT) & set(told)
        assert "Weather?" not in str(told)


@pytest.mark.parametrize("verdict", ["mask", "block", "failed"])
async def test_c109_what_a_guardrail_masked_or_refused_is_not_sent(verdict: Any) -> None:
    consent()
    judged = JudgementRecord(guardrail="cards", stage="input", verdict=verdict)
    assert not set(CONTENT) & set(await sent(record(judgements=(judged,))))
    passed = JudgementRecord(guardrail="cards", stage="input", verdict="flag")
    assert set(CONTENT[1:]) <= set(await sent(record(judgements=(passed,))))


async def test_c109_a_prompt_policy_keeps_text_from_the_collector() -> None:
    consent()
    plain = record()
    bound = replace(plain, trace=replace(plain.trace, prompt_policies=(NO_RETENTION,)))
    assert not set(CONTENT) & set(await sent(bound))
    asked = RoutingPreferences(prompt_policy=NO_RETENTION)
    request = GenerationRequest(model="m", messages=(said("Hi"),), preferences=asked)
    transcripts.share_transcript(ChatTranscript(request=request, answers=[Fold()]))
    assert not set(CONTENT) & set(await sent(plain))


async def test_c109_of_a_long_prompt_the_latest_messages_are_sent_and_the_cut_is_noted() -> None:
    consent(said("first " * 9_000), said("latest"), answer="a" * 3 * CHARACTERS_MAX)
    told = await sent(record())
    asked, answered = (json.loads(told[name]) for name in CONTENT[1:])
    assert asked[-1]["parts"][0]["content"] == "latest"
    assert told["tollgate.content.cut"] is True
    assert all(len(told[name]) < CHARACTERS_MAX + 500 for name in CONTENT[1:])
    assert answered[0]["parts"][0]["content"].endswith("[cut]")
    consent(*(said("") for _ in range(10_000)))
    assert len(json.loads((await sent(record()))[CONTENT[1]])) < 300


async def test_spans_that_wait_are_bounded_in_bytes() -> None:
    collector = Collected()
    journal = SpanJournal(RecordedJournal([]), collector, CLOCK, IDS, content=True)
    consent(said("p" * CHARACTERS_MAX), answer="a" * CHARACTERS_MAX)
    for _ in range(200):
        journal.settled(record())
    await journal.flush()
    assert len(collector.bodies[0]) <= WAITING_BYTES_MAX + 4096
