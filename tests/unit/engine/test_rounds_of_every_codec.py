"""Rounds with every provider format: a model's own calls and reasoning go back as it takes them.

Keeps C10, C73.
"""

import json

import pytest
from msgspec.structs import replace

from tests.gateways import House
from tests.scripted_tools import SEARCH, ScriptedTools, answered, heard, with_tools
from tests.unit.engine.test_every_format import SIGNED, framed, home_of
from tests.upstream.answers import Answer
from tests.upstream.speakers import Call
from tests.upstream.wires import WIRES, Wire
from tollgate.core.content import Reasoning, ServerToolRun, Text
from tollgate.core.server_tools import RunResult

FIRST = Call(id="call_abc1", name="web_search", pieces=('{"query":', '"rain"}'))
SECOND = Call(id="call_abc2", name="web_search", pieces=('{"query":"sun"}',))
SEARCHING = Answer(thought="Two.", calls=(FIRST, SECOND), finish="tool_calls")
SAYING = Answer(words=("It ", "rains."))
speakers = pytest.mark.parametrize(
    "wire", [wire for wire in WIRES if not wire.text_only], ids=lambda wire: wire.name
)


async def tooled_home(wire: Wire, *said: Answer) -> House:
    """A gateway with tools, whose one provider says this in its own format."""
    home = await home_of(wire, *(framed(wire, wire.write(answer)) for answer in said))
    home.gateway = replace(home.gateway, tools=ScriptedTools(uses_max=20))
    return home


@speakers
async def test_c10_c73_each_format_gets_its_calls_its_results_and_its_reasoning_back(
    wire: Wire,
) -> None:
    home = await tooled_home(wire, SEARCHING, SAYING)

    whole = (await heard(home, SEARCH)).whole

    # The Responses API has its proof of reasoning in a part of its own.
    *thoughts, first, second, text = whole.parts
    assert all(isinstance(thought, Reasoning) for thought in thoughts)
    assert isinstance(first, ServerToolRun)
    assert isinstance(second, ServerToolRun)
    assert json.loads(first.arguments) == {"query": "rain"}
    assert text == Text(text="It rains.")
    results = [note for notes in whole.notes.values() for note in notes]
    assert [result.error for result in results if isinstance(result, RunResult)] == [None, None]
    again = json.dumps(dict(home.near.requests[1].body), default=str)
    assert SIGNED.get(wire.name, "") in again
    assert again.count("[begin ") == 2
    assert home.record.usage_source == "provider"
    assert len(home.record.rounds) == 2


@speakers
async def test_c73_the_last_round_of_each_format_offers_nothing_and_still_shows_the_history(
    wire: Wire,
) -> None:
    home = await tooled_home(wire, SEARCHING)

    reply = await answered(home, with_tools(home))

    assert reply.status == 200
    assert (home.record.outcome, home.record.finish) == ("ok", "length")
    assert len(home.near.requests) == 6
