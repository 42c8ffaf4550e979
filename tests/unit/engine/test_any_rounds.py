"""Any rounds that a model may play: one well-formed answer, one bill, nothing held.

Keeps C37, C65, C66, C73.
"""

import asyncio
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.gateways import House
from tests.recomputed import find_wrong_bill
from tests.scripted import Scripted, Silence, Step, answers, refuses, says
from tests.scripted_tools import QUERY, Outcome, ScriptedTools, answered, asks, found, heard, tooled
from tests.scripted_tools import with_tools as call_with_tools
from tests.virtual_time import VirtualTimeLoop
from tollgate.core.content import ServerToolRun, ToolCall
from tollgate.core.errors import ErrorCode, UpstreamError
from tollgate.core.request import Tool
from tollgate.core.server_tools import RunResult

NAMES = st.sampled_from(["web_search", "web_fetch", "look_up", "made_up", ""])
ARGUMENTS = st.sampled_from([QUERY, '{"url": "https://a.example"}', "{}", "{", "[]", "", "null"])
CALLS = st.lists(st.tuples(NAMES, ARGUMENTS), max_size=10)
ROUNDS = st.lists(
    st.one_of(
        st.builds(lambda calls, said: asks(*calls, said=said), CALLS, st.sampled_from(["", "So."])),
        st.just(answers("It ", "[rains](https://news.example/a)")),
        st.just(refuses(500)),
        st.just(refuses(401)),
        st.just([*says("Well"), UpstreamError(ErrorCode.PROVIDER_UNAVAILABLE, "It broke.")]),
    ),
    min_size=1,
    max_size=8,
)
OUTCOMES = st.lists(
    st.sampled_from(
        [
            found(),
            found("[end 0]" * 900),
            Silence(3.0),
            ZeroDivisionError(),
            UpstreamError(ErrorCode.PROVIDER_UNAVAILABLE, "It is required."),
        ]
    ),
    min_size=1,
    max_size=4,
)
CHANGES = st.fixed_dictionaries(
    {},
    optional={
        "tools": st.just((Tool(name="look_up", parameters={"type": "object"}),)),
        "output_tokens_max": st.sampled_from([1, 17, 1_000]),
        "parallel_tool_calls": st.booleans(),
    },
)


async def house_of(rounds: list[list[Step]], outcomes: list[Outcome]) -> House:
    return await tooled(
        ScriptedTools(outcomes, uses_max=3), near=Scripted(*rounds), far=Scripted(*rounds)
    )


async def play(rounds: list[list[Step]], outcomes: list[Outcome], changes: dict[str, Any]) -> None:
    home = await house_of(rounds, outcomes)
    listener = await heard(home, **changes)

    record = home.record
    assert len(home.near.requests) + len(home.far.requests) <= 6 + 3 * 6
    assert record.outcome in ("ok", "error")
    assert record.error != "internal_error"
    assert {type(defect) for defect, _ in home.journal.defects} <= {ZeroDivisionError}
    assert home.spent_nano_usd == record.cost_nano_usd <= record.held_nano_usd
    if record.outcome == "error":
        assert (record.cost_nano_usd, record.lines) == (0, ())
    elif record.rounds:
        assert find_wrong_bill(record, home.catalog) is None
    tools = home.gateway.tools
    assert isinstance(tools, ScriptedTools)
    assert (tools.now, len(tools.ran) <= 3 * 2) == (0, True)
    if record.outcome == "ok":
        whole = listener.whole
        runs = [part for part in whole.parts if isinstance(part, ServerToolRun)]
        told = [note for notes in whole.notes.values() for note in notes]
        assert len(runs) == sum(isinstance(note, RunResult) for note in told) == len(record.runs)
        assert len({run.id for run in runs}) == len(runs)
        theirs = [part.name for part in whole.parts if isinstance(part, ToolCall)]
        assert set(theirs) <= {tool.name for tool in changes.get("tools", ())}
    for stream in (True, False):
        again = await house_of(rounds, outcomes)
        await answered(again, call_with_tools(again, stream=stream, **changes))
        assert (again.record.lines, again.record.finish) == (record.lines, record.finish)


@given(rounds=ROUNDS, outcomes=OUTCOMES, changes=CHANGES)
def test_c37_c65_c73_any_rounds_are_one_answer_with_one_bill(
    rounds: list[list[Step]], outcomes: list[Outcome], changes: dict[str, Any]
) -> None:
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(play(rounds, outcomes, changes))
