"""Callers who change something while a provider runs their requests pay for what ran.

Keeps C83, C84.
"""

import asyncio
from contextlib import suppress
from decimal import Decimal
from typing import Any

import pytest
from msgspec.structs import replace

from tests.batches import line
from tests.gateways import House
from tests.provider_background import COST_NANO_USD, ScriptedRuns, asked, open_running
from tests.provider_batches import HALF_NANO_USD, ScriptedBatches, submitted_batch
from tests.stores import TESTER
from tests.unit.engine.guardrails.homes import CARD, patterns
from tests.videos import EIGHT_SECONDS_NANO_USD, open_studio
from tollgate.core.errors import LedgerError

RULES: dict[str, dict[str, Any]] = {
    "a guardrail": {"guardrails": "cards"},
    "a guardrail that is missing": {"guardrails": "missing"},
    "a limit of sessions": {"session_requests": 1},
    "a tier that is missing": {"tier": "missing"},
    "other models": {"models": ("none/*",)},
    "a ceiling": {"max_cost": Decimal("0.000001")},
    "a policy": {"prompt_policy": "eu"},
    "a quota": {"quotas": "requests/hour=1,usd/day=0.001"},
}


async def keep_asking(home: House) -> None:
    """Ask every half second, and be refused."""
    while True:
        with suppress(LedgerError):
            await home.serve("acme/small")
        await home.gateway.clock.sleep(0.5)


async def change_key(home: House, key_id: str, changes: dict[str, Any]) -> None:
    """Change settings of a key."""
    await home.stores.keys.change("acme", key_id, lambda it: replace(it, **changes), by=TESTER)


async def test_c83_a_key_that_is_refused_meanwhile_pays_for_its_lines() -> None:
    works = await submitted_batch(ScriptedBatches(runs_s=90.0), [line(f"n{n}") for n in range(5)])
    running = asyncio.create_task(works.run(time_s=100_000.0))
    await works.home.gateway.clock.sleep(70.0)
    works.home.stores.books.wallets["acme"].available = 0
    asking = asyncio.create_task(keep_asking(works.home))
    batch = await running
    asking.cancel()
    assert (batch.tally.completed, batch.tally.cost_nano_usd) == (5, 5 * HALF_NANO_USD)


async def test_c84_a_key_that_is_refused_meanwhile_pays_for_its_response() -> None:
    waiting = await open_running(ScriptedRuns(runs_s=60.0))
    id_, home = await asked(waiting), waiting.home
    job = await waiting.run(id_, time_s=1.0)
    home.stores.books.wallets["acme"].available = 0
    home.principal = replace(home.principal, key_id=job.key_id)
    asking = asyncio.create_task(keep_asking(home))
    await waiting.run(id_)
    asking.cancel()
    assert (home.spent_nano_usd, home.held_nano_usd) == (COST_NANO_USD, 0)


@pytest.mark.parametrize("change", ["deletes", "disables", "stores nothing"])
async def test_c84_a_key_that_is_changed_meanwhile_pays_for_its_response(change: str) -> None:
    waiting = await open_running(ScriptedRuns(runs_s=60.0))
    id_ = await asked(waiting)
    job = await waiting.run(id_, time_s=1.0)
    assert job.run is not None
    keys = waiting.home.stores.keys
    if change == "deletes":
        await keys.delete("acme", job.key_id, by=TESTER)
    elif change == "disables":
        await keys.change("acme", job.key_id, lambda it: replace(it, disabled=True), by=TESTER)
    else:
        await keys.change("acme", job.key_id, lambda it: replace(it, response_days=None), by=TESTER)
    await waiting.run(id_)
    assert waiting.home.spent_nano_usd == COST_NANO_USD
    assert waiting.home.held_nano_usd == 0


async def test_c84_a_response_that_is_deleted_while_it_runs_is_paid() -> None:
    waiting = await open_running(ScriptedRuns(runs_s=60.0))
    id_ = await asked(waiting)
    await waiting.run(id_, time_s=1.0)
    reply = await waiting.call("DELETE", id_)
    assert reply.status == 400
    await waiting.run(id_)
    assert waiting.home.held_nano_usd == 0
    assert waiting.home.spent_nano_usd == COST_NANO_USD


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
async def test_c83_a_rule_that_is_added_meanwhile_makes_no_line_free(rule: dict[str, Any]) -> None:
    body = {
        "model": "acme/large",
        "messages": [{"role": "user", "content": CARD}],
        "provider": {"allow_fallbacks": False},
    }
    works = await submitted_batch(
        ScriptedBatches(runs_s=90.0),
        [line(f"n{n}", body=body) for n in range(3)],
        guardrails={"cards": patterns(applies_to={})},
    )
    running = asyncio.create_task(works.run(time_s=100_000.0))
    await works.home.gateway.clock.sleep(70.0)
    await change_key(works.home, works.home.principal.key_id, rule)
    await running
    assert works.home.spent_nano_usd == 3 * HALF_NANO_USD


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
async def test_c84_a_rule_that_is_added_meanwhile_makes_no_response_free(
    rule: dict[str, Any],
) -> None:
    cards = {"cards": patterns(applies_to={})}
    waiting = await open_running(ScriptedRuns(runs_s=60.0), guardrails=cards)
    id_ = await asked(waiting, input=CARD)
    job = await waiting.run(id_, time_s=1.0)
    assert job.run is not None
    await change_key(waiting.home, job.key_id, rule)
    await waiting.run(id_)
    assert (waiting.home.spent_nano_usd, waiting.home.held_nano_usd) == (COST_NANO_USD, 0)


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
async def test_c84_a_rule_that_is_added_meanwhile_makes_no_video_free(rule: dict[str, Any]) -> None:
    filming = await open_studio()
    reply = await filming.ask()
    [place] = filming.woken
    await filming.worker().work(place, filming.deadline)
    assert filming.near.submitted
    video = await filming.video(reply.json["id"])
    await change_key(filming.home, video.key_id, rule)
    await filming.run(video.id)
    assert filming.home.spent_nano_usd == EIGHT_SECONDS_NANO_USD


async def test_c84_a_key_that_is_deleted_meanwhile_pays_for_its_video() -> None:
    filming = await open_studio()
    reply = await filming.ask()
    [place] = filming.woken
    await filming.worker().work(place, filming.deadline)
    video = await filming.video(reply.json["id"])
    await filming.home.stores.keys.delete("acme", video.key_id, by=TESTER)
    await filming.run(video.id)
    assert filming.home.spent_nano_usd == EIGHT_SECONDS_NANO_USD
