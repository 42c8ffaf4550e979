"""A client that leaves, at every point where it can.

Keeps C36.
"""

import asyncio

import pytest

from tests.gateways import House, RecordedReply, house
from tests.scripted import FOREVER, Scripted, answers, calls, counts, says
from tollgate.engine.replies.sink import ClientGone


async def leave(home: House, *, after_s: float, times: int = 1, stream: bool = True) -> None:
    """Cancel a generation so many times, a second apart; it must end cancelled."""
    task = home.begin(reply=home.reply(), stream=stream)
    await asyncio.sleep(after_s)
    for _ in range(times):
        task.cancel()
        await asyncio.sleep(1)
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("times", [1, 2, 5])
async def test_c36_q32_a_client_that_leaves_pays_for_what_was_delivered_once(times: int) -> None:
    home = await house(near=Scripted([*says("12345678"), FOREVER]))
    home.ledger.settle_takes_s = 3
    await leave(home, after_s=1, times=times)
    record = home.record
    assert (record.outcome, record.error) == ("cancelled", None)
    assert (record.usage_source, record.usage.output_tokens) == ("estimated", 2)
    input_tokens = record.trace.estimated_input_tokens
    assert record.usage.uncached_input_tokens == input_tokens > 0
    assert record.cost_nano_usd == 3_000 * input_tokens + 15_000 * 2
    assert home.spent_nano_usd == record.cost_nano_usd
    assert home.ledger.settled == [record]
    assert home.journal.records == [record]


async def test_c36_what_the_provider_reported_wins_over_the_estimate() -> None:
    home = await house(near=Scripted([*says("12345678"), counts(10, 1), FOREVER]))
    await leave(home, after_s=1)
    usage = home.record.usage
    assert (usage.uncached_input_tokens, usage.output_tokens) == (10, 2)
    assert home.record.usage_source == "estimated"


async def test_c36_a_client_that_leaves_before_anything_came_pays_nothing() -> None:
    home = await house(near=Scripted([FOREVER]))
    await leave(home, after_s=1)
    record = home.record
    assert (record.outcome, record.cost_nano_usd, record.usage_source) == ("cancelled", 0, "none")
    assert [attempt.error for attempt in record.attempts] == ["cancelled"]


async def test_c36_a_tool_call_that_had_only_begun_is_not_estimated() -> None:
    home = await house(near=Scripted([calls("look_up")[0], FOREVER]))
    await leave(home, after_s=1)
    assert home.record.cost_nano_usd == 0


async def test_c36_a_client_that_leaves_while_money_is_being_held_leaves_no_hold() -> None:
    home = await house()
    home.ledger.hold_takes_s = 2
    await leave(home, after_s=1)
    record = home.record
    assert (record.outcome, record.cost_nano_usd) == ("cancelled", 0)
    assert home.near.requests == []


async def test_a_refused_hold_of_a_client_that_left_is_still_a_cancellation() -> None:
    home = await house(funds_nano_usd=1)
    home.stores.books.wallets["acme"].available = 0
    home.ledger.hold_takes_s = 2
    await leave(home, after_s=1)
    assert home.held_nano_usd == 0


async def test_c36_a_client_that_leaves_while_settling_is_billed_for_the_whole_answer() -> None:
    home = await house()
    home.ledger.settle_takes_s = 3
    await leave(home, after_s=1)
    assert (home.record.outcome, home.record.cost_nano_usd) == ("ok", 60_000)


async def test_c36_a_whole_answer_nobody_waits_for_is_billed_too() -> None:
    home = await house(near=Scripted([*says("12345678"), FOREVER]))
    await leave(home, after_s=1, stream=False)
    assert home.record.outcome == "cancelled"
    assert home.spent_nano_usd > 0


async def test_c36_a_reply_that_nobody_reads_ends_the_generation() -> None:
    home = await house(near=Scripted([*says("12345678"), *says("more"), FOREVER]))
    with pytest.raises(ClientGone):
        await home.serve(reply=home.reply(lost_at=1))
    record = home.record
    assert (record.outcome, record.error) == ("cancelled", None)
    assert record.cost_nano_usd == home.spent_nano_usd > 0
    assert home.journal.defects == []


async def test_a_reader_that_leaves_at_the_last_byte_has_had_its_answer() -> None:
    home = await house(near=Scripted(answers("Hello")))
    reply = home.reply(lost_at=2)
    with pytest.raises(ClientGone):
        await home.serve(reply=reply)
    assert home.record.outcome == "ok"


async def test_a_write_that_breaks_is_a_defect_and_settles() -> None:
    home = await house()
    with pytest.raises(RuntimeError, match="a defect of the server"):
        await home.serve(reply=home.reply(lost_at=1, broken=RuntimeError("a defect of the server")))
    record = home.record
    assert (record.outcome, record.cost_nano_usd) == ("error", 0)
    assert [str(error) for error, _ in home.journal.defects] == ["a defect of the server"]


async def test_a_slow_reader_that_leaves_settles_all_the_same() -> None:
    home = await house(near=Scripted([*says("12345678"), FOREVER]))
    reply: RecordedReply = home.reply(write_takes_s=1e6)
    task = home.begin(reply=reply)
    await asyncio.sleep(100)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert home.record.outcome == "cancelled"
