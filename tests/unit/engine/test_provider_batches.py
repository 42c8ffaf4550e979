"""Lines that a provider runs in batches of its own: half the price, each line once.

Keeps C83.
"""

import asyncio
import json
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pytest
from msgspec.structs import replace

from tests.batches import INPUT, Died, Fate, Works, batch_of, line
from tests.provider_batches import (
    HALF_NANO_USD,
    TERMS,
    BatchingDirectory,
    MortalWorks,
    ScriptedBatches,
    answered,
    batching_house,
    submitted_batch,
)
from tests.unit.engine.guardrails.homes import patterns
from tests.unit.routing.catalogs import endpoint, model, provider
from tollgate.core.batches import Batch, Submission
from tollgate.engine.batches.worker import LEASE_S
from tollgate.providers.ports.provider_batches import BatchedAnswer, BatchedRequest
from tollgate.stores.ports.administration import NewKey
from tollgate.stores.rules.batches import LEFT_TO_GATEWAY_S, SUBMISSIONS_MAX, cancel, next_step


def lines(count: int) -> list[dict[str, Any]]:
    return [line(f"n{number}") for number in range(count)]


async def finish(works: Works) -> Batch:
    """Run to the end; nothing stays held."""
    batch = await works.run(time_s=200_000)
    assert batch.is_ended
    assert works.home.held_nano_usd == 0
    return batch


async def test_c83_lines_of_one_endpoint_run_in_the_providers_batch_at_half_the_price() -> None:
    batches = ScriptedBatches()
    works = await submitted_batch(batches, lines(70))
    await finish(works)
    batch = await works.check_once(70)
    assert not works.home.near.requests
    [(_, _, requests)] = batches.accepted.values()
    assert len(requests) == 70
    assert works.home.spent_nano_usd == 70 * HALF_NANO_USD
    [first, *_] = works.lines(batch.output_file_id)
    assert first["response"]["body"]["choices"][0]["message"]["content"] == "Hello"
    record = next(it for it in works.records if it.id == first["response"]["request_id"])
    assert (record.service_tier, record.provider) == ("batch", "near")
    assert [str(each.usd_per_million) for each in record.lines] == ["1.5", "7.5"]
    assert record.caller_labels == {"batch": batch.id}
    # An hour at the provider is polled with growing pauses, and no endpoint's speed is measured.
    assert batches.polls < 20
    assert not await works.home.stores.cooldowns.find_speeds({"near/large-1"})


async def test_c83_the_money_of_submitted_lines_is_held_in_slices() -> None:
    works = await submitted_batch(ScriptedBatches(), lines(1))
    checked = replace(await works.batch(), status="in_progress", pieces=60, begun=40)
    now_s = works.home.gateway.clock.now_s()
    waiting = Submission(id="s", provider="near", at_s=now_s)
    most = dict.fromkeys(range(SUBMISSIONS_MAX), waiting)
    assert next_step(replace(checked, submissions=most), now_s) is None
    # A submission whose lines run, and one fewer, let the next piece begin.
    some = {**most, 0: replace(waiting, batch_id="theirs", runs_from=2)}
    assert next_step(replace(checked, submissions=some), now_s) == 40
    # Near the end of the batch, the gateway runs what no provider has.
    late = replace(checked, submissions=most, expires_s=int(now_s + LEFT_TO_GATEWAY_S))
    assert next_step(late, now_s) == 40


@pytest.mark.parametrize("applied", [False, True])
async def test_c83_a_worker_may_die_at_any_call_of_a_store_or_of_the_provider(
    applied: bool,
) -> None:
    at = 0
    while True:
        batches = ScriptedBatches(runs_s=90.0)
        works = await submitted_batch(batches, lines(2))
        fate = Fate(at, applied=applied)
        try:
            await MortalWorks(works, batches).run(fate)
        except Died:
            await works.run(time_s=200_000)
        await works.check_once(2)
        # No line is submitted again that the provider may have.
        assert len(batches.accepted) <= 1
        assert not (batches.accepted and works.home.near.requests)
        if not fate.is_dead:
            break
        at += 1
    assert at > 20


@pytest.mark.nightly
async def test_c83_a_frozen_worker_submits_nothing_that_another_has_given_up() -> None:
    at = 0
    while True:
        batches = ScriptedBatches(runs_s=90.0)
        works = await submitted_batch(batches, lines(2))
        fate = Fate(at, freezes_s=10 * LEASE_S)
        frozen = asyncio.create_task(MortalWorks(works, batches).run(fate))
        frozen.add_done_callback(lambda _, fate=fate: fate.met.set())
        await fate.met.wait()
        await asyncio.gather(frozen, works.run(time_s=200_000))
        await works.check_once(2)
        if works.home.near.requests:
            # Another worker gave the claim up, so a batch that is sent later is cancelled at once.
            now_s = asyncio.get_running_loop().time()
            assert all(ended_s <= now_s for ended_s in batches.ended_s.values())
        if fate.calls <= at:
            break
        at += 1
    assert at > 20


async def test_c83_a_batch_whose_acceptance_got_lost_is_found_again() -> None:
    batches = ScriptedBatches(loses_replies=True)
    works = await submitted_batch(batches, lines(5))
    await finish(works)
    await works.check_once(5)
    assert (len(batches.accepted), works.home.spent_nano_usd) == (1, 5 * HALF_NANO_USD)


@pytest.mark.parametrize("manner", ["refuses", "fails"])
async def test_c83_the_gateway_runs_what_no_provider_has_accepted(manner: str) -> None:
    batches = ScriptedBatches(**{manner: True})
    works = await submitted_batch(batches, lines(5))
    await finish(works)
    await works.check_once(5)
    assert len(works.home.near.requests) == 5
    assert works.home.spent_nano_usd == 5 * 2 * HALF_NANO_USD


async def test_c83_a_key_that_cannot_cover_a_submission_runs_line_by_line() -> None:
    batches = ScriptedBatches()
    home = await batching_house(batches, funds_nano_usd=300_000)
    works = await batch_of(home, lines(5))
    batch = await finish(works)
    assert not batches.accepted
    # Each line that runs holds all that is left, as an interactive request does.
    assert batch.tally.completed + batch.tally.failed == 5
    assert batch.tally.completed


async def test_c63_c83_the_budget_of_a_tier_counts_when_lines_are_submitted() -> None:
    batches = ScriptedBatches()
    home = await batching_house(
        batches,
        key=NewKey(workspace_id="acme", label="k", tier="small"),
        key_tiers={"small": {"budget": {"usd": Decimal("0.5"), "per": "day"}}},
    )
    works = await batch_of(home, lines(20))
    # Twenty lines may cost 0.6 dollars together at half the price.
    batch = await finish(works)
    assert not batches.accepted
    assert batch.tally.completed


async def test_c83_half_of_the_results_and_some_twice_lose_and_repeat_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def half(request: BatchedRequest) -> Sequence[BatchedAnswer]:
        number = int(request.custom_id.rpartition("-")[2])
        return [] if number % 2 else [*answered(request), *answered(request)]

    works = await submitted_batch(ScriptedBatches(answer=half), lines(10))
    batch = await finish(works)
    assert (batch.tally.completed, batch.tally.failed) == (5, 5)
    assert works.home.spent_nano_usd == batch.tally.cost_nano_usd == 5 * HALF_NANO_USD
    output, errors = works.lines(batch.output_file_id), works.lines(batch.error_file_id)
    assert len(output) == len(errors) == 5
    assert "no result" in errors[0]["response"]["body"]["error"]["message"]
    assert "has a result twice" in caplog.text


async def test_c83_a_line_that_fails_at_the_provider_costs_nothing() -> None:
    def fail(request: BatchedRequest) -> Sequence[BatchedAnswer]:
        number = int(request.custom_id.rpartition("-")[2])
        status = {1: 400, 2: 429, 3: None}.get(number, 200)
        if status == 200:
            return answered(request)
        body = b'{"error": {"message": "No."}}'
        return [BatchedAnswer(custom_id=request.custom_id, status=status, body=body)]

    works = await submitted_batch(ScriptedBatches(answer=fail), lines(5))
    batch = await finish(works)
    assert (batch.status, batch.not_run) == ("expired", 1)
    assert (batch.tally.completed, batch.tally.failed) == (2, 2)
    assert works.home.spent_nano_usd == 2 * HALF_NANO_USD
    statuses = {
        each["custom_id"]: each["response"] and each["response"]["status_code"]
        for each in works.lines(batch.error_file_id)
    }
    assert (statuses["n0"], statuses["n1"], statuses["n2"]) == (400, 429, None)


async def test_c83_an_answer_that_lies_about_its_usage_is_billed_within_the_bound() -> None:
    def lie(request: BatchedRequest) -> Sequence[BatchedAnswer]:
        [honest] = answered(request)
        return [replace(honest, body=honest.body.replace(b'_tokens": 10', b'_tokens": 9000000'))]

    works = await submitted_batch(ScriptedBatches(answer=lie), lines(3))
    batch = await finish(works)
    assert {each.usage_source for each in works.records} == {"bounded"}
    assert works.home.spent_nano_usd <= batch.bound_nano_usd


async def test_c83_a_cancelled_batch_settles_what_the_provider_ran() -> None:
    def some(request: BatchedRequest) -> Sequence[BatchedAnswer]:
        number = int(request.custom_id.rpartition("-")[2])
        if number <= 4:
            return answered(request)
        return [BatchedAnswer(custom_id=request.custom_id, status=None)]

    batches = ScriptedBatches(answer=some, runs_s=80_000)
    works = await submitted_batch(batches, lines(10))
    clock = works.home.gateway.clock
    running = asyncio.create_task(finish(works))
    await clock.sleep(20_000)
    before_s = clock.now_s()
    await works.store.change(works.place, lambda found: cancel(found, clock.now_s()))
    batch = await running
    assert batch.status == "cancelled"
    assert clock.now_s() - before_s < 2_000
    assert works.home.spent_nano_usd == 4 * HALF_NANO_USD
    errors = works.lines(batch.error_file_id)
    assert {each["error"]["code"] for each in errors} == {"batch_cancelled"}
    assert len(errors) == batch.not_run == 6


async def test_c83_a_batch_that_is_cancelled_while_it_is_submitted_stops_there_too() -> None:
    def none(request: BatchedRequest) -> Sequence[BatchedAnswer]:
        return [BatchedAnswer(custom_id=request.custom_id, status=None)]

    batches = ScriptedBatches(answer=none, runs_s=80_000)
    works = await submitted_batch(batches, lines(3))
    now_s = works.home.gateway.clock.now_s()

    class Cancelling(ScriptedBatches):
        async def submit(
            self, name: str, requests: Sequence[BatchedRequest], *, folder: str
        ) -> str:
            await works.store.change(works.place, lambda found: cancel(found, now_s))
            return await super().submit(name, requests, folder=folder)

    cancelling = Cancelling(answer=none, runs_s=80_000)
    directory = BatchingDirectory(works.home.gateway.providers, cancelling)
    works.home.gateway = replace(works.home.gateway, providers=directory)
    batch = await finish(works)
    assert (batch.status, batch.not_run, works.home.spent_nano_usd) == ("cancelled", 3, 0)
    assert cancelling.ended_s["theirs-0"] < 1_000


async def test_c81_c83_vectors_are_submitted_too() -> None:
    def vectors(request: BatchedRequest) -> Sequence[BatchedAnswer]:
        assert request.path == "/embeddings"
        body = {
            "data": [{"index": 0, "embedding": [0.5, 1.0]}],
            "model": "v",
            "usage": {"prompt_tokens": 8, "total_tokens": 8},
        }
        return [
            BatchedAnswer(custom_id=request.custom_id, status=200, body=json.dumps(body).encode())
        ]

    batches = ScriptedBatches(answer=vectors)
    vector_model = model(
        endpoint("near", "v", dollars_out="0"), kind="embedding", vectors={"dimensions": 2}
    )
    home = await batching_house(
        batches, models={"acme/vectors": vector_model}, aliases={}, routes={}
    )
    url, body = "/v1/embeddings", {"model": "acme/vectors", "input": "One."}
    asked = [line(f"n{n}", url=url, body=body) for n in range(3)]
    works = await batch_of(home, asked, endpoint=url)
    await finish(works)
    batch = await works.check_once(3)
    assert batch.tally.cost_nano_usd == 3 * 8 * 500
    [first, *_] = works.lines(batch.output_file_id)
    assert first["response"]["body"]["data"][0]["embedding"] == [0.5, 1.0]


async def test_c83_a_provider_that_never_ends_a_batch_is_given_up() -> None:
    batches = ScriptedBatches(runs_s=1e9)

    async def deaf(batch_id: str) -> None:
        """A provider that does not stop."""

    batches.cancel = deaf  # type: ignore[method-assign]
    works = await submitted_batch(batches, lines(3))
    batch = await finish(works)
    assert (batch.status, batch.not_run, works.home.spent_nano_usd) == ("expired", 3, 0)


async def test_c83_late_lines_are_run_by_the_gateway() -> None:
    batches = ScriptedBatches()
    works = await submitted_batch(batches, lines(3))
    expires_s = int(works.home.gateway.clock.now_s()) + LEFT_TO_GATEWAY_S - 60
    await works.store.change(works.place, lambda found: replace(found, expires_s=expires_s))
    await finish(works)
    await works.check_once(3)
    assert (batches.accepted, len(works.home.near.requests)) == ({}, 3)


async def test_c83_lines_for_several_models_are_submitted_by_endpoint() -> None:
    batches = ScriptedBatches()
    mixed = [line(f"n{n}", "acme/large" if n < 20 else "acme/small") for n in range(45)]
    mixed += [line(f"n{n}", "other/tools") for n in range(45, 48)]
    works = await submitted_batch(batches, mixed)
    await finish(works)
    await works.check_once(48)
    models = [{each.body["model"] for each in it} for _, _, it in batches.accepted.values()]
    assert models == [{"large-1"}, {"small-1"}]
    # `far` runs no batches.
    assert len(works.home.far.requests) == 3


async def test_c83_a_model_of_batches_is_the_model_itself_unless_the_catalog_has_its_name() -> None:
    batches = ScriptedBatches()
    home = await batching_house(batches, aliases={"acme/small:batch": {"to": "other/tools"}})
    names = ["acme/large:batch"] * 20 + ["acme/small:batch"] * 2
    works = await batch_of(home, [line(f"n{n}", name) for n, name in enumerate(names)])
    await finish(works)
    await works.check_once(22)
    [(_, _, requests)] = batches.accepted.values()
    assert {each.body["model"] for each in requests} == {"large-1"}
    assert len(home.far.requests) == 2


@pytest.mark.parametrize("owner", ["key", "request"])
async def test_c83_no_provider_stores_lines_under_a_prompt_policy(owner: str) -> None:
    batches = ScriptedBatches()
    key = NewKey(workspace_id="acme", label="k", prompt_policy="no_training")
    use = {"training": "none", "source": "made up", "checked": "2026-11-21"}
    providers = {"near": provider(batch=TERMS, prompt_use=use), "far": provider()}
    home = await batching_house(batches, key=key if owner == "key" else None, providers=providers)
    bodies = [{**each["body"], "provider": {"data_collection": "deny"}} for each in lines(3)]
    changed = [line(f"n{at}", body=body) for at, body in enumerate(bodies)]
    works = await batch_of(home, lines(3) if owner == "key" else changed)
    await finish(works)
    await works.check_once(3)
    assert not batches.accepted


async def test_c83_a_session_with_limits_is_served_by_the_gateway() -> None:
    batches = ScriptedBatches()
    home = await batching_house(
        batches, key=NewKey(workspace_id="acme", label="k", session_requests=5)
    )
    bodies = [{**each["body"], "session_id": "run-1"} for each in lines(3)]
    works = await batch_of(home, [line(f"n{at}", body=body) for at, body in enumerate(bodies)])
    await finish(works)
    await works.check_once(3)
    assert not batches.accepted


async def test_c56_c83_lines_that_a_guardrail_judges_are_served_by_the_gateway() -> None:
    batches = ScriptedBatches()
    works = await submitted_batch(batches, lines(3), guardrails={"cards": patterns()})
    await finish(works)
    await works.check_once(3)
    assert not batches.accepted


async def test_c83_a_deleted_file_loses_no_line_that_the_provider_has() -> None:
    batches = ScriptedBatches()
    works = await submitted_batch(batches, lines(4))
    running = asyncio.create_task(finish(works))
    await works.home.gateway.clock.sleep(1_000)
    assert batches.accepted
    del works.objects.files[INPUT]
    await running
    await works.check_once(4)


async def test_c83_a_removed_endpoint_fails_the_lines_by_name() -> None:
    batches = ScriptedBatches()
    works = await submitted_batch(batches, lines(2))
    running = asyncio.create_task(finish(works))
    await works.home.gateway.clock.sleep(1_000)
    other = await batching_house(
        batches, models={"acme/large": model(endpoint("near", "large-2"))}, aliases={}, routes={}
    )
    works.home.gateway = replace(works.home.gateway, planner=other.gateway.planner)
    running.cancel()
    batch = await finish(works)
    assert (batch.tally.failed, works.home.spent_nano_usd) == (2, 0)
    [error, _] = works.lines(batch.error_file_id)
    assert "near/large-1" in error["response"]["body"]["error"]["message"]
