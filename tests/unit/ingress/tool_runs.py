"""Answers within which the gateway ran tools, as the tests of three formats share them."""

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import replace

from tests.strategies import signers
from tollgate.core.content import (
    Part,
    Provenance,
    Reasoning,
    ServerToolId,
    ServerToolRun,
    Text,
    ToolCall,
)
from tollgate.core.events import (
    Ended,
    Finish,
    PartDelta,
    PartEnd,
    PartNote,
    PartStart,
    Started,
    StreamEvent,
)
from tollgate.core.request import AssistantMessage, Message, ToolMessage
from tollgate.core.server_tools import RunResult, Source

A_PAGE = Source(url="https://example.com/a", title="A page", published="2026-11-22")
FOUND = RunResult(content=(Text(text="[begin 7f] a find [end 7f]"),), sources=(A_PAGE,))
AWAY = RunResult(content=(Text(text="The search is away."),), error="unavailable")


def search(id_: str = "call_1", query: str = "a thing") -> ServerToolRun:
    return ServerToolRun(id=id_, tool="web_search", arguments=f'{{"query":"{query}"}}')


def fetch(id_: str = "call_2") -> ServerToolRun:
    return ServerToolRun(id=id_, tool="web_fetch", arguments='{"url":"https://example.com/a"}')


class Round(Struct, frozen=True):
    """What the model says in one round, and what it has the gateway run then."""

    said: tuple[Part, ...]
    runs: tuple[tuple[ServerToolRun, RunResult], ...] = ()


def events_of(rounds: Sequence[Round], finish: Finish = "stop") -> list[StreamEvent]:
    """The stream of an answer of several rounds; runs of one round are open side by side."""
    events: list[StreamEvent] = [Started()]
    parts = 0
    for each in rounds:
        for part in each.said:
            events += _said(parts, part)
            parts += 1
        for place, (run, _) in enumerate(each.runs):
            events.append(PartStart(index=parts + place, part=run))
        # They end in the other order.
        for place, (_, result) in reversed(list(enumerate(each.runs))):
            events.append(PartNote(index=parts + place, note=result))
            events.append(PartEnd(index=parts + place))
        parts += len(each.runs)
    return [*events, Ended(finish=finish)]


def _said(index: int, part: Part) -> list[StreamEvent]:
    begun: Part
    match part:
        case Text(text=text):
            begun = Text(text="")
        case Reasoning(text=text, provenance=provenance):
            begun = Reasoning(text="", provenance=provenance)
        case ToolCall(id=id_, name=name, arguments=text):
            begun = ToolCall(id=id_, name=name, arguments="")
        case _:
            raise TypeError(part)
    deltas = [PartDelta(index=index, text=text)] if text else []
    return [PartStart(index=index, part=begun), *deltas, PartEnd(index=index)]


def history_of(rounds: Sequence[Round], ids: Sequence[str]) -> list[Message]:
    """The messages that the next request amounts to, if the runs have these ids."""
    waiting = list(ids)
    messages: list[Message] = []
    for each in rounds:
        numbered = [(waiting.pop(0), run, result) for run, result in each.runs]
        calls = [ToolCall(id=i, name=run.tool, arguments=run.arguments) for i, run, _ in numbered]
        if each.said or calls:
            messages.append(AssistantMessage(content=(*each.said, *calls)))  # type: ignore[arg-type]
        messages += [
            ToolMessage(call_id=i, content=result.content, failed=result.error is not None)  # type: ignore[arg-type]
            for i, _, result in numbered
        ]
    return unordered(messages)


def unordered(messages: Sequence[Message]) -> list[Message]:
    """The messages with the calls of each answer last, and by their ids."""
    found = []
    for message in messages:
        if isinstance(message, AssistantMessage):
            said = [part for part in message.content if not isinstance(part, ToolCall)]
            calls = [part for part in message.content if isinstance(part, ToolCall)]
            calls.sort(key=lambda call: call.id)
            message = replace(message, content=(*said, *calls))
        found.append(message)
    return found


words = st.text(min_size=1, max_size=6)
thoughts = st.builds(
    Reasoning, text=words, provenance=st.builds(Provenance, signer=signers, signature=words)
)
results = st.builds(
    RunResult,
    content=words.map(lambda text: (Text(text=text),)),
    sources=st.lists(st.just(A_PAGE), max_size=2).map(tuple),
    error=st.none() | st.just("unavailable"),
)


@st.composite
def answers(draw: st.DrawFn, tools: Sequence[ServerToolId]) -> list[Round]:
    """Rounds with runs of these tools; between two rounds the model thinks or says something."""
    rounds: list[Round] = []
    number = 0
    for _ in range(draw(st.integers(1, 3))):
        said: list[Any] = draw(st.lists(thoughts, max_size=1))
        if draw(st.booleans()) or (rounds and not said):
            said.append(Text(text=draw(words)))
        runs = []
        for _ in range(draw(st.integers(1, 2))):
            number += 1
            tool = draw(st.sampled_from(tools))
            run = ServerToolRun(id=f"call_{number}", tool=tool, arguments='{"query":"a"}')
            runs.append((run, draw(results)))
        rounds.append(Round(tuple(said), tuple(runs)))
    if draw(st.booleans()):
        rounds.append(Round((Text(text=draw(words)),)))
    if draw(st.booleans()):
        last = rounds[-1]
        call = ToolCall(id="own_1", name="get_weather", arguments="{}")
        rounds[-1] = Round((*last.said, call), last.runs)
    return rounds
