"""Which background responses a provider runs, and at which price.

Keeps C84.
"""

import asyncio

from msgspec.structs import replace

from tests.provider_background import (
    COST_NANO_USD,
    ScriptedRuns,
    asked,
    check_once,
    open_running,
    said,
)
from tests.scripted_tools import ScriptedTools
from tests.unit.engine.guardrails.homes import patterns
from tests.unit.routing.catalogs import endpoint, model, provider


async def test_c84_the_gateway_answers_streams_and_what_it_guards() -> None:
    runs = ScriptedRuns()
    waiting = await open_running(runs)
    sent = waiting.asked(stream=True)
    asking = asyncio.create_task(sent.run(waiting.app))
    await waiting.is_woken.wait()
    await waiting.run(waiting.woken[0].batch_id)
    await asking
    waiting = await open_running(runs, guardrails={"cards": patterns()})
    await waiting.run(await asked(waiting))
    assert not runs.submitted


async def test_c84_the_prices_are_those_of_the_submission() -> None:
    runs = ScriptedRuns(runs_s=60.0)
    waiting = await open_running(runs)
    id_ = await asked(waiting)
    await waiting.run(id_, time_s=1.0)
    dearer = await open_running(
        runs, models={"acme/small": model(endpoint("near", "small-1", dollars_in="90"))}
    )
    gateway = waiting.home.gateway
    waiting.home.gateway = replace(gateway, planner=dearer.home.gateway.planner)
    await waiting.run(id_)
    await check_once(waiting, id_)


async def test_c84_a_removed_endpoint_fails_a_response_at_no_cost() -> None:
    runs = ScriptedRuns(runs_s=60.0)
    waiting = await open_running(runs)
    id_ = await asked(waiting)
    await waiting.run(id_, time_s=1.0)
    other = await open_running(runs, models={"acme/other": model(endpoint("near", "other-1"))})
    gateway = waiting.home.gateway
    waiting.home.gateway = replace(gateway, planner=other.home.gateway.planner)
    assert (await waiting.run(id_)).status == "failed"
    assert waiting.home.spent_nano_usd == waiting.home.held_nano_usd == 0
    assert not runs.stored


async def test_c84_a_key_without_money_for_a_covered_response_is_refused() -> None:
    runs = ScriptedRuns()
    waiting = await open_running(runs, funds_nano_usd=1_000)
    gateway = waiting.home.gateway
    waiting.home.gateway = replace(gateway, admission="covered")
    id_ = await asked(waiting)
    job = await waiting.run(id_)
    assert (job.status, job.run, runs.submitted) == ("failed", None, [])
    assert job.failure is not None
    assert job.failure.tollgate_code == "insufficient_credits"


async def test_c84_a_provider_that_searches_itself_researches_in_background() -> None:
    searches = [{"type": "web_search_call", "id": f"ws_{n}", "status": "completed"} for n in "ab"]
    answer = said()
    runs = ScriptedRuns(answer=answer | {"output": [*searches, *answer["output"]]})
    waiting = await open_running(
        runs,
        providers={"near": provider(codec="openai_responses", dialect={"native_search": True})},
        models={
            "acme/small": model(endpoint("near", "small-1", web_search="0.01"), supports=("tools",))
        },
    )
    tools = ScriptedTools(by_provider=True)
    waiting.home.gateway = replace(waiting.home.gateway, tools=tools)
    id_ = await asked(waiting, tools=[{"type": "web_search"}])
    job = await waiting.run(id_, time_s=100_000.0)
    assert job.status == "completed"
    [sent] = runs.submitted
    assert sent["tools"] == [{"type": "web_search"}]
    [record] = waiting.records
    searched = {line.item: line.quantity for line in record.lines}["provider_web_search"]
    assert (searched, tools.ran) == (2, [])
    assert record.cost_nano_usd == COST_NANO_USD + 20_000_000 == waiting.home.spent_nano_usd
    # The gateway's own tools run between the answers of a model, so no provider runs those.
    waiting.home.gateway = replace(waiting.home.gateway, tools=ScriptedTools())
    await waiting.run(await asked(waiting, tools=[{"type": "web_search"}]))
    assert len(runs.submitted) == 1
