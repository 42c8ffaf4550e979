"""Silence on a stream: the early commit and what keeps the connection open.

Keeps C27, C32, C36.
"""

import asyncio
import gc
import json

import pytest
from msgspec.structs import replace

from tests.gateways import House, RecordedReply, house
from tests.scripted import FOREVER, Scripted, Silence, answers, ends, refuses, says
from tollgate.engine.gateway import StreamTiming
from tollgate.engine.generate import generate
from tollgate.engine.replies.reply_sink import reply_sink
from tollgate.engine.replies.sink import ClientGone
from tollgate.ingress.base import KEEP_ALIVE_COMMENT as KEEP_ALIVE
from tollgate.ingress.responses import Responses


def refused_after(silence_s: float, status: int = 500) -> Scripted:
    return Scripted([Silence(silence_s), *refuses(status)])


async def served(home: House, reply: RecordedReply | None = None) -> RecordedReply:
    reply = await home.serve(reply=reply)
    assert home.record.id
    return reply


async def test_c32_d6_silence_commits_early_and_then_keeps_alive() -> None:
    home = await house(near=Scripted([Silence(45), *answers("Hello")]))
    reply = await served(home)
    assert reply.status == 200
    assert reply.times_of(KEEP_ALIVE) == [10, 25, 40]
    assert KEEP_ALIVE == b": keep-alive\n"
    assert home.record.outcome == "ok"


async def test_c32_a_stream_that_speaks_is_left_alone() -> None:
    home = await house(near=Scripted([Silence(9), *says("Hel"), Silence(14), *ends()]))
    assert (await served(home)).times_of(KEEP_ALIVE) == []


async def test_c32_silence_is_counted_from_the_last_byte() -> None:
    home = await house(near=Scripted([Silence(9), *says("Hel"), Silence(31), *ends()]))
    assert (await served(home)).times_of(KEEP_ALIVE) == [24, 39]


async def test_c27_after_an_early_commit_the_models_headers_are_absent() -> None:
    home = await house(near=Scripted([Silence(11), *answers("Hello")]))
    reply = await served(home)
    assert reply.headers["x-request-id"] == home.record.id
    assert "x-model-used" not in reply.headers
    assert b'"model_used":"acme/large"' in reply.body


async def test_d6_an_early_commit_fixes_the_status_not_the_model() -> None:
    home = await house(near=refused_after(11, 429))
    reply = await served(home)
    assert (reply.status, home.record.provider, home.record.outcome) == (200, "far", "ok")
    assert reply.times_of(KEEP_ALIVE) == [10]


async def test_d6_a_total_failure_after_an_early_commit_goes_in_band() -> None:
    home = await house(near=refused_after(11, 401), far=refused_after(11, 401))
    reply = await served(home)
    assert reply.status == 200
    assert reply.headers["content-type"].startswith("text/event-stream")
    assert reply.error["code"] == "provider_auth"
    assert reply.error["request_id"] == home.record.id
    assert home.record.cost_nano_usd == 0


async def test_d6_zero_never_commits_early_but_keeps_alive_after_the_commit() -> None:
    speech = [Silence(100), *says("Hel"), Silence(31), *ends()]
    home = await house(near=Scripted(speech), timing=StreamTiming(early_commit_after_s=0))
    reply = await served(home)
    assert reply.pieces[0][0] == 100
    assert reply.times_of(KEEP_ALIVE) == [115, 130]
    assert reply.headers["x-model-used"] == "acme/large"


async def test_d6_with_zero_a_late_failure_keeps_its_status() -> None:
    home = await house(
        near=refused_after(100, 401),
        far=refused_after(100, 401),
        timing=StreamTiming(early_commit_after_s=0),
    )
    assert (await served(home)).status == 502


async def test_c32_settling_slowly_does_not_starve_the_connection() -> None:
    home = await house(timing=StreamTiming(keep_alive_s=2))
    home.ledger.settle_takes_s = 5
    assert (await served(home)).times_of(KEEP_ALIVE) == [2, 4]


async def test_c32_a_keep_alive_never_parts_an_event() -> None:
    near = Scripted([Silence(9.5), *says("one", "two"), Silence(20), *says("three"), *ends()])
    home = await house(near=near)
    # Writes take longer than the pauses: the first event and the early commit fall together.
    reply = await served(home, home.reply(start_takes_s=1, write_takes_s=7))
    for _, piece in reply.pieces:
        assert piece == KEEP_ALIVE or (piece.startswith(b"data: ") and piece.endswith(b"\n\n"))
    assert home.record.outcome == "ok"


@pytest.mark.parametrize("start_s", [9.5, 9.99, 10.0, 10.2])
async def test_c32_the_first_event_and_the_early_commit_do_not_collide(start_s: float) -> None:
    home = await house(near=Scripted([Silence(start_s), *answers("Hello")]))
    reply = await served(home, home.reply(start_takes_s=1))
    assert reply.status == 200
    assert reply.body.endswith(b"data: [DONE]\n\n")
    assert (home.record.outcome, home.journal.defects) == ("ok", [])


async def test_c32_no_keep_alive_comes_between_the_halves_of_a_slow_write() -> None:
    home = await house(near=Scripted([*says("one"), Silence(1), *says("two"), *ends()]))
    reply = await served(home, home.reply(write_takes_s=40))
    assert (home.record.outcome, home.journal.defects) == ("ok", [])
    assert reply.times_of(KEEP_ALIVE) == []


async def test_d6_a_failure_during_the_early_commit_waits_for_the_status() -> None:
    home = await house(near=refused_after(10.2, 401), far=Scripted(refuses(401)))
    reply = await served(home, home.reply(start_takes_s=1))
    assert (reply.status, reply.error["code"]) == (200, "provider_auth")


async def test_c36_a_keep_alive_that_nobody_reads_is_no_defect() -> None:
    home = await house(near=Scripted([FOREVER]))
    reply = home.reply(lost_at=0)
    with pytest.raises(ClientGone):
        await home.serve("acme/small", reply=reply, time_s=60)
    assert home.record.outcome == "error"
    assert home.journal.defects == []


async def test_a_keep_alive_that_breaks_is_not_swallowed() -> None:
    home = await house(near=Scripted([Silence(20), *answers("Hello")]))
    broken = RuntimeError("a defect of the server")
    with pytest.raises(RuntimeError, match="a defect of the server"):
        await home.serve(reply=home.reply(lost_at=0, broken=broken, mends=True))
    assert home.record.outcome == "ok"


async def test_c36_a_keep_alive_that_nobody_reads_leaves_no_noise_behind() -> None:
    noise: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: noise.append(context))
    home = await house(near=Scripted([FOREVER]))
    task = home.begin(reply=home.reply(lost_at=0))
    await asyncio.sleep(20)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    del task
    gc.collect()
    await asyncio.sleep(0)
    assert (home.record.outcome, noise) == ("cancelled", [])


async def test_c32_a_format_may_have_another_sign_of_life_once_it_has_begun() -> None:
    home = await house(near=Scripted([Silence(26), *says("Hel"), Silence(16), *ends()]))
    responses, reply = Responses(home.gateway.ids), home.reply()
    asked = {"model": "acme/large", "input": "Hi", "stream": True}
    call = replace(home.call("acme/large"), parsed=responses.parse(json.dumps(asked).encode()))
    await generate(home.gateway, call, reply_sink(home.gateway, reply, responses, call.parsed))
    assert reply.times_of(responses.early_keep_alive) == [10, 25]
    assert reply.times_of(responses.keep_alive) == [41]
    assert b"event: response.completed" in reply.body
