"""The bounds of rounds, each by an answer that would pass it.

Keeps C61, C66, C73.
"""

from collections.abc import Mapping, Sequence

import pytest
from msgspec.structs import replace

from tests.gateways import House
from tests.scripted import Scripted, Silence, answers, ends, frame, says
from tests.scripted_tools import (
    QUERY,
    SEARCH,
    Outcome,
    ScriptedTools,
    answered,
    asks,
    found,
    heard,
    sent,
    tooled,
    with_tools,
)
from tests.unit.routing.catalogs import SEARCHER
from tests.upstream.openai_chunks import chunk, usage
from tollgate.core.content import Text
from tollgate.core.errors import ErrorCode, RequestError, UpstreamError
from tollgate.core.server_tools import RunResult, ServerTool
from tollgate.tools.ports.base import RunReport

SEARCHING = asks(("web_search", QUERY))
BROKE = UpstreamError(ErrorCode.PROVIDER_UNAVAILABLE, "It broke.", status=500)


class TimedTools(ScriptedTools):
    """Notes the time that each run is given."""

    def __init__(self, steps: Sequence[Outcome]) -> None:
        super().__init__(steps)
        self.left_s: list[float] = []

    async def run(
        self, tool: ServerTool, arguments: Mapping[str, object], *, remaining_s: float
    ) -> RunReport:
        self.left_s.append(remaining_s)
        return await super().run(tool, arguments, remaining_s=remaining_s)


async def covered(text: str, prompt_tokens: int) -> House:
    """A covered answer of three rounds, after four free searches in each of the first two."""
    steps = asks(*[("web_search", QUERY)] * 4)
    counted = [*steps[:-2], frame(chunk(usage=usage(prompt_tokens, 2))), *steps[-1:]]
    tools = ScriptedTools([replace(found(text), fees=())], uses_max=8)
    home = await tooled(
        tools,
        near=Scripted(counted, counted, answers("Yes.")),
        models={"acme/large": SEARCHER},
        aliases={},
        routes={},
    )
    home.gateway = replace(home.gateway, admission="covered")
    await answered(home, with_tools(home))
    assert (home.record.outcome, len(home.near.requests)) == ("ok", 3)
    return home


async def test_c61_the_results_of_all_rounds_are_covered_before_the_next_prompt() -> None:
    home = await covered("x", 10)
    assert "top-up" not in home.trace
    # The hold is kept ahead of twice the cost so far; 2,000 bytes are 500 tokens, at $3 a million.
    grown_nano_usd = 8 * 500 * 3_000
    near_bound = (home.record.held_nano_usd - 3 * grown_nano_usd // 4) // (2 * 2 * 3_000)

    assert "top-up" not in (await covered("x", near_bound)).trace
    assert "top-up" in (await covered("x" * 2_000, near_bound)).trace


async def test_c73_an_answer_that_a_filter_ended_asks_for_no_run() -> None:
    tools = ScriptedTools()
    home = await tooled(tools, near=Scripted([*SEARCHING[:-2], *ends("content_filter")]))
    whole = (await heard(home)).whole
    assert (whole.finish, tools.ran, len(home.near.requests)) == ("content_filter", [], 1)


async def test_c51_a_stream_that_breaks_in_a_later_round_counts_too() -> None:
    home = await tooled(
        near=Scripted(SEARCHING, [*says("It "), BROKE], answers("Back")),
        defaults={"cooldown": {"after_failures": 1}},
    )
    await answered(home, with_tools(home))
    assert (home.record.outcome, home.far.requests) == ("error", [])
    await home.serve()
    assert len(home.far.requests) == 1


async def test_c73_a_run_has_the_time_that_is_left() -> None:
    tools = TimedTools([Silence(20)])
    home = await tooled(tools, near=Scripted(SEARCHING, SEARCHING, answers("Yes.")))
    await answered(home, with_tools(home, time_s=100))
    assert tools.left_s == [100, 80]


async def test_c66_the_parts_of_a_result_share_one_bound() -> None:
    parts = tuple(Text(text=letter * 1_500) for letter in "äö")
    report = RunReport(result=RunResult(content=parts), engine="scripted")
    home = await tooled(ScriptedTools([report]), near=Scripted(SEARCHING, answers("Yes.")))
    await answered(home, with_tools(home))
    content = sent(home.near, 1)["messages"][-1]["content"]
    assert (content.count("ä"), content.count("ö")) == (1_000, 0)


async def test_c66_a_name_that_the_model_made_up_is_not_repeated_at_length() -> None:
    home = await tooled(near=Scripted(asks(("x" * 5_000, "{}")), answers("Yes.")))
    await answered(home, with_tools(home))
    # 32 tokens of at least two bytes are held for it.
    assert len(sent(home.near, 1)["messages"][-1]["content"]) <= 64


async def test_c66_the_bound_has_room_for_refusals_and_the_marks_around_results() -> None:
    home = await tooled(near=Scripted(answers("Yes.")))
    await answered(home, with_tools(home, replace(SEARCH, uses_max=3)))
    bound = home.record.trace.rounds
    assert bound is not None
    # Six rounds of 16 calls that may be refused, and five runs.
    assert bound.result_tokens == 6 * 16 * 32 + 5 * (1_000 + 128)
    assert bound.provider_searches_max == 0


async def test_c73_several_answers_are_refused_before_a_hold() -> None:
    home = await tooled()
    with pytest.raises(RequestError) as refusal:
        await heard(home, choices=2)
    assert refusal.value.param == "n"
    assert home.near.requests == []
