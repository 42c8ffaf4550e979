"""Background responses: answered without their caller, exactly once, whatever dies in between.

Keeps C84.
"""

import asyncio
from decimal import Decimal
from typing import Any

import pytest
from msgspec.structs import replace

from tests.background import Waiting, events_of, open_waiting
from tests.batches import Died, Fate
from tests.gateways import store_is_away
from tests.memory.batches import MemoryJobStore
from tests.scripted import Scripted, Silence, answers, ends, refuses, says
from tollgate.core.background import RUN_MAX_S, WAIT_MAX_S, BackgroundResponse
from tollgate.core.errors import LedgerError
from tollgate.engine.batches.worker import LEASE_S
from tollgate.stores.ports.batches import BatchPlace

HELLO = {"role": "user", "content": "Hello"}


async def slow(seconds: float = 5.0, **changes: Any) -> Waiting:
    return await open_waiting(Scripted([*says("Hel"), Silence(seconds), *says("lo"), *ends()]))


async def talking(words: int, pause_s: float) -> Waiting:
    """A provider that says nothing for a while between its words."""
    spoken = [step for _ in range(words) for step in (says("")[1], Silence(pause_s))]
    return await open_waiting(Scripted([*says("Hel"), *spoken, says("lo")[1], *ends()]))


async def test_c84_a_background_response_is_queued_and_answered_by_a_worker() -> None:
    waiting = await open_waiting()
    reply = await waiting.ask(instructions="Be brief.", metadata={"a": "b"})
    assert reply.status == 200, reply.body
    queued = reply.json
    assert (queued["status"], queued["background"], queued["output"]) == ("queued", True, [])
    assert (queued["store"], queued["metadata"], queued["usage"]) == (True, {"a": "b"}, None)
    assert waiting.home.held_nano_usd == 0
    assert not waiting.home.near.requests
    [place] = waiting.woken
    assert place.batch_id == queued["id"]
    assert (await waiting.call("GET", queued["id"])).json["status"] == "queued"
    job = await waiting.run(queued["id"])
    assert (job.status, job.tries) == ("completed", ())
    shown = (await waiting.call("GET", queued["id"])).json
    assert (shown["status"], shown["id"], shown["background"]) == ("completed", queued["id"], True)
    assert shown["created_at"] == queued["created_at"]
    assert shown["output"][0]["content"][0]["text"] == "Hello"
    [record] = waiting.records
    assert (record.id, record.outcome) == (job.generation_id, "ok")
    assert record.caller_labels == {"response": queued["id"]}
    assert waiting.home.spent_nano_usd == record.cost_nano_usd > 0
    assert Decimal(str(shown["usage"]["cost"])) == Decimal(record.cost_nano_usd) / 10**9
    assert waiting.home.held_nano_usd == 0
    # The answer is the previous turn of the next request.
    follow_up = await waiting.ask(background=False, input="On", previous_response_id=queued["id"])
    assert follow_up.status == 200, follow_up.body


@pytest.mark.parametrize("applied", [False, True])
async def test_c84_a_worker_may_die_at_any_call_of_a_store(applied: bool) -> None:
    at = 0
    while True:
        waiting = await slow(1.0)
        id_ = (await waiting.ask()).json["id"]
        fate = Fate(at, applied=applied)
        try:
            await waiting.run(id_, waiting.worker(fate))
        except Died:
            await waiting.run(id_)
        await check_once(waiting, id_)
        if not fate.is_dead:
            break
        at += 1
    assert at > 8


async def test_c84_a_frozen_worker_that_goes_on_is_not_paid_for_what_another_did() -> None:
    at = 0
    while True:
        waiting = await slow(1.0)
        id_ = (await waiting.ask()).json["id"]
        fate = Fate(at, freezes_s=3 * LEASE_S)
        frozen = asyncio.create_task(waiting.run(id_, waiting.worker(fate)))
        frozen.add_done_callback(lambda _, fate=fate: fate.met.set())
        await fate.met.wait()
        await asyncio.gather(frozen, waiting.run(id_))
        await check_once(waiting, id_)
        if fate.calls <= at:
            break
        at += 1
    assert at > 8


class CutOff:
    """The store of jobs, which a worker no longer reaches once it has begun."""

    def __init__(self, store: MemoryJobStore[BackgroundResponse]) -> None:
        self._store = store
        self.get = store.get

    async def change(self, *args: Any) -> BackgroundResponse | None:
        begun = await self._store.change(*args)
        self.get = self.change = self._refuse  # type: ignore[method-assign]
        return begun

    async def _refuse(self, *_: Any) -> Any:
        raise store_is_away()


async def test_c84_a_worker_without_its_lease_is_not_paid_for_what_another_did() -> None:
    waiting = await talking(3, LEASE_S)
    id_ = (await waiting.ask()).json["id"]
    services = replace(waiting.services, store=CutOff(waiting.store))
    cut_off = asyncio.create_task(waiting.run(id_, waiting.worker(background=services)))
    await asyncio.sleep(1.0)
    await waiting.run(id_)
    with pytest.raises(LedgerError):
        await cut_off
    assert len(waiting.home.near.requests) == 2
    await check_once(waiting, id_)


async def test_c84_a_message_that_is_delivered_twice_runs_one_answer() -> None:
    waiting = await slow()
    id_ = (await waiting.ask()).json["id"]
    await asyncio.gather(*(waiting.run(id_) for _ in range(3)))
    await check_once(waiting, id_)
    assert len(waiting.home.near.requests) == 1


async def test_c84_an_answer_longer_than_a_lease_keeps_its_worker() -> None:
    waiting = await talking(10, LEASE_S)
    id_ = (await waiting.ask()).json["id"]
    await asyncio.gather(waiting.run(id_), waiting.run(id_))
    await check_once(waiting, id_)
    assert len(waiting.home.near.requests) == 1


async def test_c84_cancelling_ends_the_generation_and_bills_what_ran() -> None:
    waiting = await slow(600.0)
    id_ = (await waiting.ask()).json["id"]
    running = asyncio.create_task(waiting.run(id_))
    await asyncio.sleep(10.0)
    assert (await waiting.call("GET", id_)).json["status"] == "in_progress"
    cancelled = await waiting.call("POST", f"{id_}/cancel")
    assert (cancelled.status, cancelled.json["status"]) == (200, "cancelled")
    begun_s = asyncio.get_running_loop().time()
    await running
    assert asyncio.get_running_loop().time() - begun_s < 5.0
    [record] = waiting.records
    assert (record.outcome, record.cost_nano_usd) == ("cancelled", waiting.home.spent_nano_usd)
    assert record.cost_nano_usd > 0
    assert waiting.home.held_nano_usd == 0
    # A second cancellation shows the same.
    assert (await waiting.call("POST", f"{id_}/cancel")).json["status"] == "cancelled"
    assert await waiting.run(id_)


async def test_c84_a_queued_response_that_is_cancelled_costs_nothing() -> None:
    waiting = await open_waiting()
    id_ = (await waiting.ask()).json["id"]
    assert (await waiting.call("POST", f"{id_}/cancel")).json["status"] == "cancelled"
    assert (await waiting.run(id_)).status == "cancelled"
    assert not waiting.home.near.requests
    assert not waiting.records


async def test_c84_a_failed_response_costs_nothing_and_says_why() -> None:
    waiting = await open_waiting(Scripted(refuses(400)), far=Scripted(refuses(400)))
    id_ = (await waiting.ask()).json["id"]
    assert (await waiting.run(id_)).status == "failed"
    shown = (await waiting.call("GET", id_)).json
    assert (shown["status"], shown["output"]) == ("failed", [])
    assert shown["error"]["code"] == "invalid_prompt"
    assert waiting.home.spent_nano_usd == waiting.home.held_nano_usd == 0


async def test_c84_an_answer_that_is_cut_short_is_incomplete() -> None:
    waiting = await open_waiting(Scripted([*says("Hel"), *ends("length")]))
    id_ = (await waiting.ask()).json["id"]
    assert (await waiting.run(id_)).status == "incomplete"
    shown = (await waiting.call("GET", id_)).json
    assert shown["incomplete_details"] == {"reason": "max_output_tokens"}


async def test_c84_a_busy_provider_is_asked_again_for_an_hour() -> None:
    waiting = await open_waiting(
        Scripted(refuses(429), answers("Hello")), far=Scripted(refuses(429))
    )
    id_ = (await waiting.ask()).json["id"]
    assert (await waiting.run(id_)).status == "completed"
    waiting = await open_waiting(Scripted(refuses(429)), far=Scripted(refuses(429)))
    id_ = (await waiting.ask()).json["id"]
    job = await waiting.run(id_)
    assert (job.status, job.failure and job.failure.code) == ("failed", "rate_limit_exceeded")
    assert (job.ended_s or 0) - job.created_s >= WAIT_MAX_S
    assert waiting.home.spent_nano_usd == 0


async def test_c84_an_answer_ends_within_the_life_of_a_worker_with_a_clear_error() -> None:
    waiting = await talking(100, LEASE_S)
    id_ = (await waiting.ask()).json["id"]
    begun_s = asyncio.get_running_loop().time()
    job = await waiting.run(id_)
    assert asyncio.get_running_loop().time() - begun_s <= RUN_MAX_S + 5
    assert job.status == "failed"
    assert job.failure is not None
    assert "within 14 minutes" in job.failure.message
    assert waiting.home.spent_nano_usd == waiting.home.held_nano_usd == 0


async def test_c84_a_stream_survives_its_caller_and_is_resumed() -> None:
    waiting = await slow(20.0)
    sent = waiting.asked(stream=True)
    asking = asyncio.create_task(sent.run(waiting.app))
    await waiting.is_woken.wait()
    [place] = waiting.woken
    running = asyncio.create_task(waiting.run(place.batch_id))
    await asyncio.sleep(10.0)
    sent.leave()
    await asking
    first = events_of(sent.body)
    assert [event["type"] for event in first[:3]] == [
        "response.created",
        "response.queued",
        "response.in_progress",
    ]
    assert first[0]["response"]["id"] == place.batch_id
    assert first[-1]["type"] == "response.output_text.delta"
    last = first[-1]["sequence_number"]
    resumed = await waiting.call("GET", f"{place.batch_id}?stream=true&starting_after={last}")
    await running
    rest = events_of(resumed.body)
    numbers = [event["sequence_number"] for event in (*first, *rest)]
    assert numbers == list(range(len(numbers)))
    assert rest[-1]["type"] == "response.completed"
    assert rest[-1]["response"]["output"][0]["content"][0]["text"] == "Hello"
    whole = await waiting.call("GET", f"{place.batch_id}?stream=true")
    assert events_of(whole.body) == [*first, *rest]
    await check_once(waiting, place.batch_id)


async def test_c84_a_stream_that_was_read_does_not_begin_again() -> None:
    waiting = await slow(30.0)
    sent = waiting.asked(stream=True)
    asking = asyncio.create_task(sent.run(waiting.app))
    await waiting.is_woken.wait()
    id_ = waiting.woken[0].batch_id
    running = asyncio.create_task(waiting.run(id_, waiting.worker(fate := Fate(10**6))))
    await asyncio.sleep(10.0)
    fate.is_dead = True
    with pytest.raises(Died):
        await running
    assert (await waiting.run(id_)).status == "failed"
    await asking
    assert events_of(sent.body)[-1]["type"] == "response.failed"
    assert waiting.home.spent_nano_usd == 0


async def test_c84_a_cancelled_stream_ends_and_bills_what_was_read() -> None:
    waiting = await slow(600.0)
    sent = waiting.asked(stream=True)
    asking = asyncio.create_task(sent.run(waiting.app))
    await waiting.is_woken.wait()
    id_ = waiting.woken[0].batch_id
    running = asyncio.create_task(waiting.run(id_))
    await asyncio.sleep(10.0)
    await waiting.call("POST", f"{id_}/cancel")
    await asyncio.gather(asking, running)
    assert waiting.home.spent_nano_usd > 0
    assert waiting.home.held_nano_usd == 0


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"store": False}, "store: true"),
        ({"model": "none/such"}, "none/such"),
        ({"background": "yes"}, "background"),
        ({"input": [HELLO, {"type": "compaction_trigger"}]}, "compaction"),
    ],
)
async def test_c84_what_cannot_wait_is_refused_before_it_is_queued(
    fields: dict[str, Any], message: str
) -> None:
    waiting = await open_waiting()
    reply = await waiting.ask(**fields)
    assert reply.status in (400, 404), reply.body
    assert message in reply.error["message"]
    assert not waiting.woken
    assert not waiting.parts.parts


async def test_c84_a_key_without_stored_responses_is_refused() -> None:
    waiting = await open_waiting()
    secret = await waiting.key(label="forgets", response_days=None)
    reply = await waiting.ask(secret=secret)
    assert (reply.status, reply.error["param"]) == (400, "background")
    assert reply.error["message"].endswith("`tollgate keys update NAME --response-days 7`.")


async def test_c84_a_key_without_money_is_refused_before_it_is_queued() -> None:
    waiting = await open_waiting(funds_nano_usd=1)
    waiting.home.stores.books.wallets["acme"].available = 0
    reply = await waiting.ask()
    assert (reply.status, reply.error["code"]) == (429, "insufficient_credits")
    assert not waiting.woken


async def test_c70_c84_an_unknown_file_is_refused_before_its_response_is_queued() -> None:
    waiting = await open_waiting()
    part = {"type": "input_file", "file_id": "file-x"}
    reply = await waiting.ask(input=[{"role": "user", "content": [part]}])
    assert (reply.status, reply.error["code"]) == (400, "file_not_found")
    assert not waiting.woken


async def test_c84_another_tenants_or_members_response_is_not_found() -> None:
    waiting = await open_waiting()
    stranger = await waiting.key("other")
    id_ = (await waiting.ask()).json["id"]
    for method, path in (("GET", id_), ("POST", f"{id_}/cancel"), ("DELETE", id_)):
        assert (await waiting.call(method, path, key=stranger)).status == 404
    owned = BatchPlace("acme", id_)
    assert await waiting.store.change(owned, lambda job: replace(job, member_id="ana@acme"))
    for method, path in (("GET", id_), ("POST", f"{id_}/cancel"), ("DELETE", id_)):
        assert (await waiting.call(method, path)).status == 404
    assert (await waiting.job(id_)).status == "queued"


async def test_c84_a_response_without_a_stream_cannot_be_streamed() -> None:
    waiting = await open_waiting()
    id_ = (await waiting.ask()).json["id"]
    reply = await waiting.call("GET", f"{id_}?stream=true")
    assert (reply.status, reply.error["param"]) == (400, "stream")


async def test_c84_no_credentials_are_stored_with_a_request() -> None:
    waiting = await open_waiting()
    await waiting.ask()
    assert waiting.secret.encode() not in b"".join(waiting.parts.parts.values())


async def check_once(waiting: Waiting, id_: str) -> None:
    """The response is complete, and its generation is once among the records and on the bill."""
    job = await waiting.job(id_)
    assert job.status == "completed", job
    billed = [record for record in waiting.records if record.outcome == "ok"]
    assert [record.id for record in billed] == [job.generation_id]
    assert waiting.home.spent_nano_usd == billed[0].cost_nano_usd
    shown = (await waiting.call("GET", id_)).json
    assert shown["output"][0]["content"][0]["text"] == "Hello"
