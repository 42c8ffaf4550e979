"""`parallel_tool_calls: false` delivers one tool call of each choice and withholds the others.

Keeps C15, C37, C66, C69.
"""

import json
from typing import Any

import pytest
from hypothesis import given

from tests.chat_stream import frames
from tests.gateways import RecordedReply, house
from tests.scripted import Answer, Scripted, answers, counts, frame
from tests.strategies import event_streams
from tests.unit.engine.test_choices import called, serve
from tests.unit.engine.test_every_format import QUESTION, SDK, asked, framed, home_of
from tests.unit.providers.shared_cases import ANSWERS, WEATHER
from tests.upstream.openai_chunks import call_delta, chunk
from tests.upstream.wires import WIRES, Wire
from tollgate.core.content import ToolCall
from tollgate.core.events import StreamEvent, StreamGrammar
from tollgate.core.response import Fold
from tollgate.engine.generate import generate
from tollgate.engine.replies.content_log import ContentSink
from tollgate.engine.replies.reply_sink import FirstCall
from tollgate.providers.ports.base import Frame

SINGLE = QUESTION | {"parallel_tool_calls": False}
TOOLS = QUESTION["tools"]


def interleaved() -> Answer:
    """Two calls whose arguments take turns, and text after both have begun."""
    deltas = [
        {"tool_calls": [call_delta(0, id_="a", name="now", arguments="", type_="function")]},
        {"tool_calls": [call_delta(1, id_="b", name="weather", arguments='{"', type_="function")]},
        {"tool_calls": [call_delta(0, arguments='{"x"')]},
        {"tool_calls": [call_delta(1, arguments='y":1}')]},
        {"content": "Both."},
        {"tool_calls": [call_delta(0, arguments=":2}")]},
    ]
    finish = frame(chunk({}, finish="tool_calls"))
    return [*(frame(chunk(delta)) for delta in deltas), finish, counts(), Frame(data=b"[DONE]")]


def adapted(reply: RecordedReply, *, stream: bool) -> list[str]:
    if stream:
        return frames(reply.body)[-1].get("adapted", [])
    header = reply.headers.get("x-tollgate-adapted")
    assert reply.json.get("adapted") == (header and header.split(", "))
    return header.split(", ") if header else []


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
async def test_c15_one_call_is_delivered_whatever_the_provider_sends(
    wire: Wire, stream: bool
) -> None:
    case = ANSWERS["parallel_tools"]
    home = await home_of(wire, framed(wire, wire.write(case)))
    everything = await asked(home, QUESTION, stream=stream)
    every_record = home.record
    single = await asked(home, SINGLE, stream=stream)
    record = max(home.stores.books.records.values(), key=lambda kept: kept.withheld_calls)

    assert len(SDK.message(everything)["tool_calls"]) == len(case.calls)
    (call,) = SDK.message(single)["tool_calls"]
    assert (call["id"], call["function"]["name"]) == (WEATHER.id, WEATHER.name)
    assert json.loads(call["function"]["arguments"]) == json.loads(WEATHER.arguments)
    assert b'"finish_reason":"tool_calls"' in single.body
    assert "parallel_tool_calls" in adapted(single, stream=stream)
    assert "parallel_tool_calls" not in adapted(everything, stream=stream)
    assert (every_record.withheld_calls, record.withheld_calls) == (0, len(case.calls) - 1)
    assert (record.usage, record.cost_nano_usd) == (every_record.usage, every_record.cost_nano_usd)


async def test_c15_a_withheld_call_opens_no_index_and_what_follows_has_its_own() -> None:
    home = await house(near=Scripted(interleaved()))
    reply = await serve(home, stream=True, tools=TOOLS, parallel_tool_calls=False)
    deltas = [each["delta"] for sent in frames(reply.body) for each in sent["choices"]]
    calls = [call for delta in deltas for call in delta.get("tool_calls", ())]
    assert {call["index"] for call in calls} == {0}
    assert "".join(call["function"]["arguments"] for call in calls) == '{"x":2}'
    assert [delta["content"] for delta in deltas if delta.get("content")] == ["Both."]


@pytest.mark.parametrize("stream", [True, False])
async def test_c15_each_choice_has_a_call_of_its_own(stream: bool) -> None:
    home = await house(near=Scripted(interleaved(), answers("no call"), interleaved()))
    await serve(home, stream=stream, n=3, tools=TOOLS, parallel_tool_calls=False)
    assert home.record.withheld_calls == 2


@pytest.mark.parametrize("allowed", [None, True])
async def test_c15_without_the_setting_every_call_is_delivered(allowed: bool | None) -> None:
    home = await house(near=Scripted(interleaved()))
    reply = await serve(home, stream=False, tools=TOOLS, parallel_tool_calls=allowed)
    assert len(reply.json["choices"][0]["message"]["tool_calls"]) == 2
    assert home.record.withheld_calls == 0


class Contents:
    """Content that is kept, by generation."""

    def __init__(self) -> None:
        self.kept: dict[str, dict[str, Any]] = {}

    async def keep(
        self, workspace_id: str, generation_id: str, content: bytes, *, days: int
    ) -> None:
        self.kept[generation_id] = json.loads(content)

    async def get(self, workspace_id: str, generation_id: str) -> bytes | None:
        raise AssertionError("nobody reads it here")


async def test_c69_content_that_is_kept_has_the_withheld_calls() -> None:
    home = await house(near=Scripted(interleaved()))
    call = called(home, stream=True, tools=TOOLS, parallel_tool_calls=False)
    reply, contents = home.reply(), Contents()
    side = home.gateway.side
    sink = ContentSink(
        home.sink(call, reply), contents, side=side, body=b"{}", work=call.parsed.request, days=1
    )
    await generate(home.gateway, call, sink)
    ((parts,),) = [content["choices"] for content in contents.kept.values()]
    assert [part["arguments"] for part in parts if "arguments" in part] == ['{"x":2}', '{"y":1}']
    assert b"weather" not in reply.body


@given(events=event_streams())
def test_c15_what_is_delivered_is_a_stream_without_later_calls(events: list[StreamEvent]) -> None:
    chosen, grammar, whole, delivered = FirstCall(), StreamGrammar(), Fold(), Fold()
    for event in events:
        whole.accept(event)
        if (kept := chosen.select(event)) is not None:
            grammar.accept(kept)
            delivered.accept(kept)
    calls = [at for at, part in enumerate(whole.parts) if isinstance(part, ToolCall)]
    remaining = [at for at in range(len(whole.parts)) if at not in calls[1:]]
    assert delivered.parts == tuple(whole.parts[at] for at in remaining)
    noted, all_noted = delivered.response().notes, whole.response().notes
    assert [noted.get(at) for at in range(len(remaining))] == [
        all_noted.get(at) for at in remaining
    ]
