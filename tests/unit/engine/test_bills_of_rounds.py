"""What the rounds of a generation cost, hold and leave in the record.

Keeps C65, C66, C73.
"""

import asyncio
from decimal import Decimal

import pytest
from msgspec.structs import replace

from tests.gateways import House
from tests.scripted import FOREVER, Scripted, Silence, answers, ends, frame, refuses, says
from tests.scripted_tools import (
    QUERY,
    ScriptedTools,
    answered,
    asks,
    found,
    sent,
    tooled,
    with_tools,
)
from tests.unit.engine.test_meter import meter
from tests.unit.routing.catalogs import SEARCHER, model, price
from tests.upstream.openai_chunks import chunk, usage
from tollgate.core.records.generation import Fee, GenerationRecord, RunRecord
from tollgate.core.usage import Usage
from tollgate.engine.replies.sink import ClientGone
from tollgate.routing.planning.output_limit import with_slack
from tollgate.web.records.generation_shapes import GenerationObject

SEARCHING = asks(("web_search", QUERY))
SEARCH_NANO_USD = 8_000_000


def costs(record: GenerationRecord) -> list[tuple[str, int, int | None]]:
    return [(line.item, line.cost_nano_usd, line.round) for line in record.lines]


async def test_c65_c73_each_round_and_each_run_is_a_line_of_one_bill() -> None:
    home = await tooled(near=Scripted(SEARCHING, answers("It rains.")))

    await answered(home, with_tools(home))

    record = home.record
    assert costs(record) == [
        ("input", 30_000, 1),
        ("output", 30_000, 1),
        ("web_search", SEARCH_NANO_USD, 1),
        ("input", 30_000, 2),
        ("output", 30_000, 2),
    ]
    once = Usage(uncached_input_tokens=10, output_tokens=2)
    assert record.rounds == (once, once)
    assert record.usage == once.plus(once)
    assert record.cost_nano_usd == 120_000 + SEARCH_NANO_USD == home.spent_nano_usd
    assert record.usage_source == "provider"
    (run,) = record.runs
    assert (run.tool, run.engine, run.round, run.error) == ("web_search", "scripted", 1, None)
    assert run.cost_nano_usd == SEARCH_NANO_USD
    assert "weather" not in str(record)


async def test_c65_one_round_has_lines_as_any_other_request() -> None:
    home = await tooled(near=Scripted(answers("Hello")))
    await answered(home, with_tools(home))
    assert {line.round for line in home.record.lines} == {None}
    assert (home.record.rounds, home.record.runs) == ((), ())


async def test_c65_each_round_has_the_rates_of_its_own_prompt_and_is_a_request() -> None:
    dear = {"input": Decimal(6), "output": Decimal(30)}
    offer = {
        "provider": "near",
        "upstream": "large-1",
        "price": price("3", "15", request="0.001"),
        "overrides": ({"when": {"prompt_tokens_over": 50}, "price": dear},),
    }
    large = [frame(chunk(usage=usage(60, 2)))]
    home = await tooled(
        near=Scripted(SEARCHING, [*says("It rains."), *ends()[:1], *large, *ends()[2:]]),
        models={"acme/large": model(offer, supports=("tools",))},
        aliases={},
        routes={},
    )

    await answered(home, with_tools(home))

    assert costs(home.record) == [
        ("input", 30_000, 1),
        ("output", 30_000, 1),
        ("request", 1_000_000, 1),
        ("web_search", SEARCH_NANO_USD, 1),
        ("input", 360_000, 2),
        ("output", 60_000, 2),
        ("request", 1_000_000, 2),
    ]


async def test_c66_the_operator_pays_each_round_of_a_failure_at_its_own_rates_and_its_runs() -> (
    None
):
    offer = {
        "provider": "near",
        "upstream": "large-1",
        "price": price("3", "15", request="0.001"),
        # No prompt has so many tokens, and all of them together have.
        "overrides": ({"when": {"prompt_tokens_over": 15}, "price": {"input": Decimal(600)}},),
    }
    home = await tooled(
        near=Scripted(SEARCHING, SEARCHING, refuses(401)),
        models={"acme/large": model(offer, supports=("tools",))},
        aliases={},
        routes={},
    )

    await answered(home, with_tools(home))

    record = home.record
    assert (record.outcome, record.cost_nano_usd) == ("error", 0)
    each = 30_000 + 30_000 + 1_000_000 + SEARCH_NANO_USD
    assert record.attempts[-1].operator_cost_nano_usd == 2 * each


async def test_c66_the_hold_covers_every_round_and_every_run() -> None:
    bare = await tooled(near=Scripted(answers("Hello")))
    await answered(bare, with_tools(bare, output_tokens_max=100), lost_at=None)
    plain = await tooled(near=Scripted(answers("Hello")))
    call = plain.call("acme/large")
    limited = replace(call.parsed.request, output_tokens_max=100)
    await answered(plain, replace(call, parsed=replace(call.parsed, request=limited)))

    bound = bare.record.trace.rounds
    assert bound is not None
    assert (bound.rounds_max, bound.fees_nano_usd) == (6, 5 * SEARCH_NANO_USD)
    assert bound.result_tokens >= 5 * 1_000
    prompt = bare.record.trace.input_tokens_max
    answers_max = with_slack(100)
    later = prompt + answers_max + bound.result_tokens
    # The dearest endpoint takes $4 and $20 a million; the limit is one of all answers together.
    expected = 4_000 * (prompt + 5 * later) + 20_000 * answers_max + bound.fees_nano_usd
    assert expected <= bare.record.held_nano_usd <= expected + 100
    assert bare.record.held_nano_usd > 10 * plain.record.held_nano_usd


async def test_c66_no_bill_of_rounds_is_above_its_hold() -> None:
    many = asks(*[("web_search", QUERY)] * 5)
    long = [frame(chunk(usage=usage(8_000, 90)))]
    steps = [[*many[:-2], *long, *many[-1:]], [*says("x" * 200), *ends()[:1], *long, *ends()[2:]]]
    home = await tooled(near=Scripted(*steps))
    await answered(home, with_tools(home, output_tokens_max=100))
    assert 0 < home.record.cost_nano_usd <= home.record.held_nano_usd


async def left(home: House, after_s: float) -> GenerationRecord:
    """The record of a caller who leaves."""
    task = asyncio.create_task(answered(home, with_tools(home)))
    await asyncio.sleep(after_s)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    return home.record


async def test_c66_a_caller_who_leaves_during_a_run_pays_for_the_round_and_not_for_the_run() -> (
    None
):
    tools = ScriptedTools([Silence(60)])
    home = await tooled(tools, near=Scripted(SEARCHING, answers("It rains.")))

    record = await left(home, 5)

    assert (record.outcome, record.error) == ("cancelled", None)
    assert costs(record) == [("input", 30_000, None), ("output", 30_000, None)]
    assert [(run.error, run.duration_ms) for run in record.runs] == [("cancelled", 5_000)]
    assert (tools.now, home.held_nano_usd) == (0, 0)
    assert len(home.near.requests) == 1


async def test_c66_a_caller_who_leaves_in_a_later_round_pays_for_what_ran_and_was_said() -> None:
    home = await tooled(near=Scripted(SEARCHING, [*says("12345678"), FOREVER]))

    record = await left(home, 5)

    assert record.outcome == "cancelled"
    assert record.usage_source == "estimated"
    assert costs(record)[:3] == [
        ("input", 30_000, 1),
        ("output", 30_000, 1),
        ("web_search", SEARCH_NANO_USD, 1),
    ]
    # What nobody counted is the first prompt and what was added to it: the call and its result.
    _, second = record.rounds
    assert (second.uncached_input_tokens or 0) > record.trace.estimated_input_tokens
    assert second.output_tokens == 2


@pytest.mark.parametrize("lost_at", range(6))
async def test_c66_a_broken_connection_between_rounds_leaves_no_hold(lost_at: int) -> None:
    home = await tooled(near=Scripted(SEARCHING, SEARCHING, answers("It ", "rains.")))
    try:
        await answered(home, with_tools(home), lost_at=lost_at)
    except ClientGone:
        assert home.record.outcome in ("cancelled", "ok")
    assert (home.held_nano_usd, home.spent_nano_usd) == (0, home.record.cost_nano_usd)


@pytest.mark.parametrize(("stream", "outcome"), [(True, "cancelled"), (False, "error")])
async def test_c66_the_deadline_cuts_a_run_off(stream: bool, outcome: str) -> None:
    tools = ScriptedTools([Silence(600)])
    home = await tooled(tools, near=Scripted(SEARCHING, answers("It rains.")))

    await answered(home, with_tools(home, stream=stream, time_s=30))

    record = home.record
    assert (record.outcome, record.error) == (outcome, "provider_timeout")
    assert (record.cost_nano_usd > 0) == stream
    assert [run.error for run in record.runs] == ["cancelled"]
    assert tools.now == 0


@pytest.mark.parametrize(("funds", "finish"), [(10**10, "stop"), (1_100_000_000, "length")])
async def test_c61_a_covered_hold_is_topped_up_between_rounds_or_the_answer_ends(
    funds: int, finish: str
) -> None:
    counted = [frame(chunk(usage=usage(90_000, 2)))]
    dear = [*SEARCHING[:-2], *counted, *SEARCHING[-1:]]
    home = await tooled(
        near=Scripted(dear, dear, answers("It rains.")),
        funds_nano_usd=funds,
        models={"acme/large": SEARCHER},
        aliases={},
        routes={},
    )
    home.gateway = replace(home.gateway, admission="covered")

    await answered(home, with_tools(home))

    record = home.record
    assert (record.outcome, record.finish) == ("ok", finish)
    assert "top-up" in home.trace
    assert len(home.near.requests) == (3 if finish == "stop" else 2)
    assert home.stores.books.wallets["acme"].available >= 0


async def test_c65_the_api_shows_runs_rounds_and_what_the_tools_cost() -> None:
    home = await tooled(near=Scripted(SEARCHING, SEARCHING, answers("It rains.")))
    await answered(home, with_tools(home))

    shown = GenerationObject.of(home.record)

    assert shown.tool_costs_micro_usd == {"web_search": "16000.000"}
    assert [(run.tool, run.round, run.error) for run in shown.server_tool_runs] == [
        ("web_search", 1, None),
        ("web_search", 2, None),
    ]
    assert len(shown.rounds) == 3
    assert [line.round for line in shown.cost_lines] == [1, 1, 1, 2, 2, 2, 3, 3]
    assert shown.trace.rounds is not None
    assert shown.trace.rounds.rounds_max == 6


async def test_c65_the_usage_of_each_round_is_bounded_by_itself() -> None:
    lie = frame(chunk(usage=usage(10**8, 10**8)))
    home = await tooled(near=Scripted(SEARCHING, [*says("It rains."), *ends()[:1], lie]))

    await answered(home, with_tools(home))

    first, second = home.record.rounds
    assert first == Usage(uncached_input_tokens=10, output_tokens=2)
    # What was sent, first and in this round, and what the nine delivered bytes can have been.
    trace = home.record.trace
    assert trace.rounds is not None
    sent_tokens = 2 * trace.input_tokens_max + trace.rounds.result_tokens + 4_096
    assert sent_tokens < (second.uncached_input_tokens or 0) < sent_tokens + 1_000
    assert second.output_tokens == 2 * 9 + 1_024
    assert home.record.usage_source == "bounded"


async def test_c66_a_result_has_no_more_than_its_bound_and_the_hold() -> None:
    home = await tooled(ScriptedTools([found("ä" * 10_000)]), near=Scripted(SEARCHING, answers("")))
    await answered(home, with_tools(home))
    # 1,000 tokens of two bytes each.
    assert sent(home.near, 1)["messages"][-1]["content"].count("ä") == 1_000


def test_c66_a_record_keeps_a_bounded_number_of_runs_and_every_line() -> None:
    made = meter()
    run = RunRecord(
        tool="web_search", engine="e", round=1, query_hash="0" * 16, duration_ms=1, cost_nano_usd=1
    )
    for _ in range(200):
        made.charge(Fee(item="web_search", quantity=1, usd_each=Decimal("0.000000001")))
        made.note_run(run)
    record = made.record()
    assert (len(record.runs), len(record.lines), record.cost_nano_usd) == (64, 200, 200)
