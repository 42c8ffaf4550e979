"""Background responses that their provider runs: sent once, polled, billed once, deleted there.

Keeps C84.
"""

import asyncio
import json
from typing import Any

import pytest

from tests.background import Waiting
from tests.batches import Died, Fate, MemoryLineRecords
from tests.provider_background import (
    COST_NANO_USD,
    ScriptedRuns,
    asked,
    check_once,
    open_running,
    said,
)
from tollgate.core.errors import ErrorCode, UpstreamError
from tollgate.core.records.generation import GenerationRecord
from tollgate.engine.batches.worker import LEASE_S
from tollgate.stores.batches.queue import find_job_holds
from tollgate.stores.ports.base import Hold
from tollgate.stores.rules.sweep import lost_generation
from tollgate.web.background.provider_runs import RUN_AT_PROVIDER_MAX_S

LONG_S = 100_000.0


async def test_c84_a_provider_runs_a_response_for_longer_than_a_worker_lives() -> None:
    runs = ScriptedRuns(runs_s=3_600.0)
    waiting = await open_running(runs)
    id_ = await asked(waiting, max_output_tokens=50)
    job = await waiting.run(id_, time_s=100.0)
    assert (job.status, (await waiting.call("GET", id_)).json["status"]) == (
        "in_progress",
        "in_progress",
    )
    assert job.run is not None
    assert job.run.response_id == "theirs-0"
    # The sweeper leaves the hold alone.
    assert await find_job_holds(waiting.store, waiting.store) == {job.run.id}  # type: ignore[arg-type]
    assert waiting.home.held_nano_usd > 0
    await waiting.run(id_, time_s=LONG_S)
    await check_once(waiting, id_)
    [sent] = runs.submitted
    assert sent["max_output_tokens"] == 50
    assert not waiting.home.near.requests
    [record] = waiting.records
    assert record.duration_ms >= 3_600_000
    assert record.caller_labels == {"response": id_}
    assert runs.polls < 150
    assert not runs.stored, "the provider keeps no copy"
    assert waiting.home.held_nano_usd == 0


@pytest.mark.parametrize("applied", [False, True])
async def test_c84_a_killed_worker_submits_once_and_bills_once(applied: bool) -> None:
    at, failed = 0, 0
    while True:
        runs = ScriptedRuns(runs_s=20.0)
        waiting = await open_running(runs)
        id_ = await asked(waiting)
        fate = Fate(at, applied=applied)
        try:
            await waiting.run(id_, waiting.worker(fate))
        except Died:
            await waiting.run(id_)
        assert len(runs.submitted) <= 1
        if (await waiting.job(id_)).status == "failed":
            # It is unknown whether the provider got the request.
            assert waiting.home.spent_nano_usd == 0
            failed += 1
        else:
            await check_once(waiting, id_)
            assert not runs.stored
        if not fate.is_dead:
            break
        at += 1
    assert at > 15
    assert failed <= 2


async def test_c84_a_frozen_worker_submits_nothing_twice_and_cancels_what_was_given_up() -> None:
    at = 0
    while True:
        runs = ScriptedRuns(runs_s=20.0)
        waiting = await open_running(runs)
        id_ = await asked(waiting)
        fate = Fate(at, freezes_s=3 * LEASE_S)
        frozen = asyncio.create_task(waiting.run(id_, waiting.worker(fate)))
        frozen.add_done_callback(lambda _, fate=fate: fate.met.set())
        await fate.met.wait()
        await asyncio.gather(frozen, waiting.run(id_))
        assert len(runs.submitted) <= 1
        if (await waiting.job(id_)).status == "failed":
            assert waiting.home.spent_nano_usd == 0
        else:
            await check_once(waiting, id_)
        assert not runs.stored
        if fate.calls <= at:
            break
        at += 1
    assert at > 15


class Slow(MemoryLineRecords):
    """The records of a worker whose first generation another worker has already given up."""

    is_late = True

    async def decide(self, record: GenerationRecord) -> GenerationRecord:
        if self.is_late and record.outcome == "ok":
            self.is_late = False
            lost = lost_generation(record.id, record.workspace_id, record.key_id)
            return await super().decide(lost)
        return await super().decide(record)


async def test_c84_a_worker_that_was_given_up_leaves_the_hold_to_the_next() -> None:
    waiting = await open_running(ScriptedRuns(runs_s=20.0))
    id_ = await asked(waiting)
    slow = Slow(waiting.home.stores.books)
    await waiting.run(id_, waiting.worker(records=slow))
    assert not slow.is_late
    await check_once(waiting, id_)


class Named:
    """A ledger that accepts a hold only if an open response already names its id."""

    def __init__(self, waiting: Waiting) -> None:
        self._waiting = waiting
        self._ledger = waiting.home.stores.ledger
        self.settle_sum = self._ledger.settle_sum

    async def hold(self, *args: Any, **named: Any) -> Hold:
        [place] = await self._waiting.store.open_jobs()
        assert (await self._waiting.job(place.batch_id)).hold_ids == {args[2]}
        return await self._ledger.hold(*args, **named)


async def test_c84_a_response_names_its_hold_before_it_is_placed() -> None:
    waiting = await open_running(ScriptedRuns())
    id_ = await asked(waiting)
    await waiting.run(id_, waiting.worker(ledger=Named(waiting)))
    await check_once(waiting, id_)


async def test_c84_a_lost_reply_of_the_provider_fails_the_response_and_costs_nothing() -> None:
    runs = ScriptedRuns(loses_replies=True)
    waiting = await open_running(runs)
    id_ = await asked(waiting)
    job = await waiting.run(id_)
    assert (job.status, len(runs.submitted)) == ("failed", 1)
    assert job.failure is not None
    assert "was not sent again" in job.failure.message
    assert waiting.home.spent_nano_usd == waiting.home.held_nano_usd == 0


async def test_c84_the_gateway_answers_what_the_provider_refuses_to_run() -> None:
    waiting = await open_running(ScriptedRuns(refuses=True))
    id_ = await asked(waiting)
    await waiting.run(id_)
    await check_once(waiting, id_, "By the gateway.")
    [sent] = waiting.home.near.requests
    assert (sent.body["store"], "background" in sent.body) == (False, False)
    assert waiting.home.held_nano_usd == 0


@pytest.mark.parametrize(
    ("policy", "is_run"), [("no_training", True), ("no_retention", False), ("eu", False)]
)
async def test_c84_a_policy_on_storage_keeps_a_response_from_being_stored(
    policy: str, is_run: bool
) -> None:
    runs = ScriptedRuns(runs_s=1.0)
    facts = {"training": "none", "retention_days": 0, "source": "made up", "checked": "2026-11-21"}
    near = {
        "codec": "openai_responses",
        "transport": "http_sse",
        "base_url": "https://provider.example/v1",
        "prompt_use": facts,
        "countries": ("DE",),
    }
    waiting = await open_running(runs, providers={"near": near})
    secret = await waiting.key(label="careful", prompt_policy=policy)
    id_ = await asked(waiting, secret=secret)
    await waiting.run(id_)
    await check_once(waiting, id_, "Hello" if is_run else "By the gateway.")
    assert bool(runs.submitted) == is_run


async def test_c84_a_cancellation_reaches_the_provider_and_bills_what_ran() -> None:
    ran = json.dumps(said("Hel", status="incomplete")).encode()
    runs = ScriptedRuns(after_cancelling=ran)
    waiting = await open_running(runs)
    id_ = await asked(waiting)
    await waiting.run(id_, time_s=100.0)
    cancelled = await waiting.call("POST", f"{id_}/cancel")
    assert (cancelled.status, cancelled.json["status"]) == (200, "cancelled")
    assert not (await waiting.job(id_)).is_ended
    assert (await waiting.call("POST", f"{id_}/cancel")).json["status"] == "cancelled"
    job = await waiting.run(id_, time_s=1.0)
    assert (job.status, job.is_ended, job.failure) == ("cancelled", True, None)
    assert (runs.cancelled, runs.stored) == ({"theirs-0"}, {})
    [record] = waiting.records
    assert (record.outcome, record.cost_nano_usd) == ("cancelled", COST_NANO_USD)
    assert waiting.home.spent_nano_usd == COST_NANO_USD
    assert waiting.home.held_nano_usd == 0
    assert (await waiting.call("GET", id_)).json["output"] == []


async def test_c84_a_cancelled_response_without_usage_bills_its_prompt_and_its_text() -> None:
    ran = said("Hello, world", status="incomplete", usage=None)
    runs = ScriptedRuns(after_cancelling=json.dumps(ran).encode())
    waiting = await open_running(runs)
    id_ = await asked(waiting)
    await waiting.run(id_, time_s=1.0)
    held_nano_usd = waiting.home.held_nano_usd
    await waiting.call("POST", f"{id_}/cancel")
    assert (await waiting.run(id_)).status == "cancelled"
    [record] = waiting.records
    assert (record.outcome, record.usage_source) == ("cancelled", "estimated")
    assert record.usage.output_tokens == 3, "a token for four bytes"
    assert 0 < record.cost_nano_usd == waiting.home.spent_nano_usd < held_nano_usd
    assert (waiting.home.held_nano_usd, runs.stored) == (0, {})


async def test_c84_a_response_that_is_cancelled_before_it_ran_costs_nothing() -> None:
    runs = ScriptedRuns()
    waiting = await open_running(runs)
    id_ = await asked(waiting)
    await waiting.run(id_, time_s=1.0)
    await waiting.call("POST", f"{id_}/cancel")
    assert (await waiting.run(id_)).status == "cancelled"
    assert (waiting.records, runs.stored) == ([], {})
    assert waiting.home.spent_nano_usd == waiting.home.held_nano_usd == 0


@pytest.mark.parametrize("applied", [False, True])
async def test_c84_a_worker_that_cancels_may_die_at_any_call_of_a_store(applied: bool) -> None:
    at = 0
    while True:
        runs = ScriptedRuns(after_cancelling=json.dumps(said(status="incomplete")).encode())
        waiting = await open_running(runs)
        id_ = await asked(waiting)
        await waiting.run(id_, time_s=1.0)
        await waiting.call("POST", f"{id_}/cancel")
        fate = Fate(at, applied=applied)
        try:
            await waiting.run(id_, waiting.worker(fate))
        except Died:
            await waiting.run(id_)
        [record] = waiting.records
        assert (record.outcome, (await waiting.job(id_)).status) == ("cancelled", "cancelled")
        assert waiting.home.spent_nano_usd == COST_NANO_USD
        assert (waiting.home.held_nano_usd, runs.stored) == (0, {})
        if not fate.is_dead:
            break
        at += 1
    assert at > 8


@pytest.mark.parametrize(
    ("answer", "status", "code"),
    [
        (said(status="incomplete", incomplete_details={"reason": "max_output_tokens"}), 1, None),
        (said(status="failed", error={"code": "server_error", "message": "no"}), 0, "server_error"),
        ({"status": "completed", "output": "no list"}, 0, "server_error"),
    ],
)
async def test_c84_an_answer_of_a_provider_that_failed_costs_nothing(
    answer: dict[str, Any], status: int, code: str | None
) -> None:
    runs = ScriptedRuns(runs_s=60.0, answer=answer)
    waiting = await open_running(runs)
    id_ = await asked(waiting)
    job = await waiting.run(id_)
    assert job.status == ("incomplete" if status else "failed")
    assert (job.failure and job.failure.code) == code
    assert waiting.home.spent_nano_usd == status * COST_NANO_USD
    assert (waiting.home.held_nano_usd, runs.stored) == (0, {})


async def test_c84_a_response_that_never_ends_is_given_up_and_cancelled() -> None:
    runs = ScriptedRuns(runs_s=1e9)
    waiting = await open_running(runs)
    id_ = await asked(waiting)
    begun_s = asyncio.get_running_loop().time()
    job = await waiting.run(id_, time_s=LONG_S)
    assert asyncio.get_running_loop().time() - begun_s < RUN_AT_PROVIDER_MAX_S + 60
    assert (job.status, runs.cancelled, runs.stored) == ("failed", {"theirs-0"}, {})
    assert waiting.home.spent_nano_usd == waiting.home.held_nano_usd == 0
    assert runs.polls < 1_000


async def test_c84_a_response_that_its_provider_lost_fails() -> None:
    runs = ScriptedRuns()
    waiting = await open_running(runs)
    id_ = await asked(waiting)
    await waiting.run(id_, time_s=1.0)
    runs.stored.clear()
    job = await waiting.run(id_)
    assert (job.status, job.failure and "no longer" in job.failure.message) == ("failed", True)
    assert waiting.home.spent_nano_usd == waiting.home.held_nano_usd == 0


class Away(ScriptedRuns):
    """A provider that cannot be polled for a while."""

    async def read(self, path: str, response_id: str) -> bytes | None:
        if asyncio.get_running_loop().time() < 3_000.0:
            raise UpstreamError(ErrorCode.PROVIDER_UNAVAILABLE, "It cannot be reached.")
        return await super().read(path, response_id)


async def test_c84_a_provider_that_is_away_is_polled_until_it_answers() -> None:
    runs = Away(runs_s=60.0)
    waiting = await open_running(runs)
    id_ = await asked(waiting)
    await waiting.run(id_)
    await check_once(waiting, id_)
