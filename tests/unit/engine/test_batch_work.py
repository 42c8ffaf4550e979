"""Batches run by the gateway: each line once, whatever dies in between.

Keeps C83.
"""

import asyncio
from decimal import Decimal
from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace

from tests.batches import CHAT, INPUT, Died, Fate, batch_of, file_of, line
from tests.gateways import House, house, store_is_away
from tests.scripted import Scripted, Silence, answers, ends, refuses, says
from tests.stores import TESTER
from tollgate.core.batches import FILE_BYTES_MAX, LINE_BYTES_MAX, Batch
from tollgate.core.principal import Principal
from tollgate.engine.batches.lines import BATCH_FORMATS
from tollgate.engine.batches.validation import FileCheck, LineParser
from tollgate.engine.batches.worker import LEASE_S
from tollgate.stores.ports.administration import NewKey
from tollgate.stores.ports.base import Admissions
from tollgate.stores.rules.batches import cancel


def lines(count: int) -> list[dict[str, Any]]:
    return [line(f"n{number}") for number in range(count)]


class AwayOnce:
    """Admissions whose store cannot be reached at first."""

    def __init__(self, admissions: Admissions) -> None:
        self._admissions = admissions
        self.was_away = False

    async def admit(self, principal: Principal, request_id: str, **limits: Any) -> None:
        if not self.was_away:
            self.was_away = True
            raise store_is_away()
        await self._admissions.admit(principal, request_id, **limits)

    def end(self, principal: Principal, request_id: str) -> None:
        self._admissions.end(principal, request_id)


async def slow_house() -> House:
    """A provider that takes a second, so that a worker can die while it answers."""
    return await house(near=Scripted([Silence(1.0), *says("Hello"), *ends()]))


async def test_c83_each_line_is_once_in_output_record_and_bill() -> None:
    home = await house()
    works = await batch_of(home, lines(70))
    await works.run()
    batch = await works.check_once(70)
    assert (batch.lines, batch.pieces, batch.error_file_id) == (70, 3, None)
    assert home.held_nano_usd == 0
    # Nothing of the lines remains but what the batch's files have.
    assert not works.objects.objects
    [first, *_] = works.lines(batch.output_file_id)
    assert first["response"]["status_code"] == 200
    assert first["response"]["body"]["choices"][0]["message"]["content"] == "Hello"
    record = next(it for it in works.records if it.id == first["response"]["request_id"])
    assert record.caller_labels == {"batch": batch.id}
    assert batch.bound_nano_usd > batch.tally.cost_nano_usd > 0


@pytest.mark.parametrize("applied", [False, True])
async def test_c83_a_worker_may_die_at_any_call_of_a_store(applied: bool) -> None:
    at = 0
    while True:
        works = await batch_of(await slow_house(), lines(3))
        fate = Fate(at, applied=applied)
        try:
            await works.run(works.worker(fate=fate))
        except Died:
            await works.run()
        await works.check_once(3)
        if not fate.is_dead:
            break
        at += 1
    # Validation, one piece with three lines, and the join.
    assert at > 20


async def test_c83_a_frozen_worker_that_goes_on_is_not_paid_for_what_another_did() -> None:
    at = 0
    while True:
        works = await batch_of(await slow_house(), lines(3))
        fate = Fate(at, freezes_s=3 * LEASE_S)
        frozen = asyncio.create_task(works.run(works.worker(fate=fate)))
        frozen.add_done_callback(lambda _, fate=fate: fate.met.set())
        await fate.met.wait()
        await asyncio.gather(frozen, works.run())
        await works.check_once(3)
        if fate.calls <= at:
            break
        at += 1
    assert at > 10


async def test_c83_workers_share_a_batch() -> None:
    home = await slow_house()
    works = await batch_of(home, lines(200))
    await asyncio.gather(*(works.run() for _ in range(4)))
    await works.check_once(200)
    assert len(home.near.requests) == 200


async def test_c83_a_line_that_fails_costs_nothing_and_is_in_the_error_file() -> None:
    works = await batch_of(await house(near=Scripted(refuses(400)), far=Scripted()), lines(2))
    await works.run()
    batch = await works.batch()
    assert (batch.status, batch.output_file_id) == ("completed", None)
    assert (batch.tally.completed, batch.tally.failed, batch.tally.cost_nano_usd) == (0, 2, 0)
    errors = works.lines(batch.error_file_id)
    assert [each["custom_id"] for each in errors] == ["n0", "n1"]
    assert errors[0]["response"]["status_code"] == 400
    assert errors[0]["response"]["body"]["error"]["message"]
    assert works.home.spent_nano_usd == 0


async def test_c83_a_busy_provider_is_asked_again_later() -> None:
    busy = refuses(429, retry_after="30")
    near = Scripted(busy, busy, answers("Hello"))
    home = await house(near=near, far=Scripted(busy, busy, answers("Hi")))
    works = await batch_of(home, [line("n0", model="acme/small")])
    await works.run()
    await works.check_once(1)
    assert len(near.requests) >= 2


async def test_c83_the_limits_of_the_key_hold_when_a_line_runs() -> None:
    """A line above the rate waits; a line that the rest of the money does not admit fails."""
    key = NewKey(workspace_id="acme", label="slow", requests_per_minute=60, burst=2)
    works = await batch_of(await house(key=key), lines(8))
    before_s = asyncio.get_running_loop().time()
    await works.run()
    await works.check_once(8)
    assert asyncio.get_running_loop().time() - before_s > 5


async def test_c83_a_line_without_money_fails_and_costs_nothing() -> None:
    home = await house(funds_nano_usd=100_000)
    works = await batch_of(home, lines(40))
    await works.run(works.worker(lines_at_once=1))
    batch = await works.batch()
    assert batch.status == "completed"
    assert 0 < batch.tally.completed < 40
    assert batch.tally.completed + batch.tally.failed == 40
    assert home.spent_nano_usd == batch.tally.cost_nano_usd
    # The answer that uses up the money may cost more than what is left.
    assert home.spent_nano_usd <= 100_000 + 60_000
    assert works.lines(batch.error_file_id)[0]["response"]["status_code"] == 402


async def test_c83_a_cancelled_batch_settles_what_ran() -> None:
    home = await slow_house()
    works = await batch_of(home, lines(100))
    clock = home.gateway.clock
    running = asyncio.create_task(works.run(works.worker(lines_at_once=4)))
    await clock.sleep(5.0)
    await works.store.change(works.place, lambda found: cancel(found, clock.now_s()))
    batch = await running
    assert batch.status == "cancelled"
    output, errors = works.lines(batch.output_file_id), works.lines(batch.error_file_id)
    assert 0 < len(output) < 100
    assert len(output) + len(errors) == 100
    assert {each["error"]["code"] for each in errors} == {"batch_cancelled"}
    assert home.spent_nano_usd == batch.tally.cost_nano_usd
    assert len(home.near.requests) == len(output)


async def test_c83_lines_that_do_not_run_in_time_expire() -> None:
    home = await slow_house()
    works = await batch_of(home, lines(100))
    now_s = home.gateway.clock.now_s()
    await works.store.change(works.place, lambda found: replace(found, expires_s=int(now_s) + 4))
    batch = await works.run(works.worker(lines_at_once=4))
    assert batch.status == "expired"
    errors = works.lines(batch.error_file_id)
    assert len(works.lines(batch.output_file_id)) + len(errors) == 100
    assert errors[-1]["error"]["code"] == "batch_expired"
    assert batch.not_run == len(errors) > 0


@pytest.mark.parametrize(
    ("content", "code", "number"),
    [
        (b"", "empty_file", None),
        (b"\n\n", "empty_file", None),
        (b"no JSON\n", "invalid_json_line", 1),
        (b"\xff\xfe{}\n", "invalid_json_line", 1),
        (file_of([line("n0")]) + b"[]\n", "invalid_json_line", 2),
        (file_of([line("n0"), line("n1"), line("n0")]), "duplicate_custom_id", 3),
        (file_of([line("")]), "invalid_custom_id", 1),
        (file_of([line("n0", method="GET")]), "invalid_method", 1),
        (file_of([line("n0"), line("n1", url="/v1/embeddings")]), "mismatched_endpoint", 2),
        (file_of([line("n0", body=[])]), "missing_body", 1),
        (file_of([line("n0", model="acme/none")]), "model_not_found", 1),
        (file_of([line("n0", model="acme/none:batch")]), "model_not_found", 1),
        (file_of(lines(1)).replace(b"acme/large", b"\xff:batch"), "invalid_request", 1),
        (file_of([line("n0", body={"model": "acme/large"})]), "invalid_request", 1),
        (
            file_of([line("n0", body={**line("n0")["body"], "stream": True})]),
            "invalid_request",
            1,
        ),
        (file_of([line("n0", body="x" * (LINE_BYTES_MAX + 1))]), "line_too_long", 1),
        (b'{"custom_id": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "invalid_json_line", 1),
        (file_of(lines(1))[:-2] + b', "x": ' + b"[" * 100_000, "invalid_json_line", 1),
    ],
)
async def test_c83_a_bad_file_is_refused_before_anything_is_spent(
    content: bytes, code: str, number: int | None
) -> None:
    home = await house()
    works = await batch_of(home, content)
    batch = await works.run()
    assert batch.status == "failed"
    assert (batch.faults[0].code, batch.faults[0].line) == (code, number)
    assert not home.near.requests
    assert not home.stores.books.records


async def test_c83_a_store_that_is_away_fails_no_batch() -> None:
    home = await house()
    works = await batch_of(home, lines(2))
    away = AwayOnce(home.gateway.admissions)
    home.gateway = replace(home.gateway, admissions=away)
    await works.run()
    await works.check_once(2)
    assert away.was_away


async def test_c83_a_key_without_money_is_refused_before_anything_is_read() -> None:
    works = await batch_of(await house(funds_nano_usd=1), lines(1))
    works.home.stores.books.wallets["acme"].available = 0
    batch = await works.run()
    assert (batch.status, batch.faults[0].code) == ("failed", "insufficient_credits")


async def test_c83_a_deleted_file_is_refused() -> None:
    works = await batch_of(await house(), lines(1))
    del works.objects.files[INPUT]
    batch = await works.run()
    assert (batch.status, batch.faults[0].code) == ("failed", "file_not_found")


async def test_c83_no_line_runs_for_a_key_that_is_disabled_meanwhile() -> None:
    home = await house()
    works = await batch_of(home, lines(3))
    put = works.objects.put

    async def put_then_disable(batch: Batch, name: str, content: bytes) -> None:
        await put(batch, name, content)
        await home.stores.keys.change(
            "acme", batch.key_id, lambda settings: replace(settings, disabled=True), by=TESTER
        )

    works.objects.put = put_then_disable  # type: ignore[method-assign]
    await works.run()
    batch = await works.batch()
    assert (batch.is_ended, home.near.requests, home.spent_nano_usd) == (True, [], 0)


@pytest.mark.parametrize(("count", "reads"), [(2, 1), (70, 2), (70, 3)])
async def test_c83_a_batch_whose_file_is_deleted_ends_with_the_lines_that_ran(
    count: int, reads: int
) -> None:
    home = await house()
    works = await batch_of(home, lines(count))
    read, left = works.objects.read_input, reads

    async def read_before_deletion(batch: Batch, start: int, length: int) -> bytes:
        nonlocal left
        if left == 0:
            works.objects.files.pop(INPUT, None)
        left = max(0, left - 1)
        return await read(batch, start, length)

    works.objects.read_input = read_before_deletion
    await works.run(time_s=90_000)
    batch = await works.batch()
    ran = [] if batch.output_file_id is None else works.lines(batch.output_file_id)
    assert len(ran) == len(home.near.requests) == len(works.records) < count
    assert (batch.status, batch.not_run) == ("expired", count - len(ran))
    assert home.held_nano_usd == 0


async def test_c83_too_many_lines_are_refused() -> None:
    home, content = await house(), file_of(lines(12))
    works = await batch_of(home, content)
    services, batch = works.services, await works.batch()
    parser = LineParser(
        gateway=home.gateway,
        principal=home.principal,
        format=BATCH_FORMATS[CHAT],
        ingress=services.ingresses["chat_completions"],
    )
    read = partial(works.objects.read_input, batch)
    checked = await FileCheck(parser, batch.id, lines_max=10).run(read, len(content))
    assert [fault.code for fault in checked.faults] == ["too_many_lines"]
    large = await FileCheck(parser, batch.id).run(read, FILE_BYTES_MAX + 1)
    assert [fault.code for fault in large.faults] == ["file_too_large"]


async def test_c83_c95_a_line_without_a_session_is_refused_where_sessions_are_limited() -> None:
    works = await batch_of(await house(key=limited(requests=2)), lines(1))
    batch = await works.run()
    assert (batch.status, batch.faults[0].param) == ("failed", "body.session_id")


async def test_c83_c95_the_lines_of_a_session_stay_within_its_limits() -> None:
    bodies = [{**each["body"], "session_id": "run-1"} for each in lines(5)]
    content = [line(f"n{at}", body=body) for at, body in enumerate(bodies)]
    for key, count in ((limited(requests=2), 2), (limited(budget="0.2"), None)):
        home = await house(key=key)
        works = await batch_of(home, content)
        batch = await works.run()
        assert batch.tally.completed + batch.tally.failed == 5
        assert batch.tally.completed == count or (count is None and batch.tally.failed)
        [refused, *_] = works.lines(batch.error_file_id)
        assert refused["response"]["body"]["error"]["limit"]["level"] == "session"


def limited(*, budget: str | None = None, requests: int | None = None) -> NewKey:
    amount = None if budget is None else Decimal(budget)
    return NewKey(workspace_id="acme", label="k", session_budget=amount, session_requests=requests)
