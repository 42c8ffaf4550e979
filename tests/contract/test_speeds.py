"""The speed of an endpoint is measured by all instances, fades, and never stands in the way.

Keeps C19.
"""

import asyncio
from collections.abc import Mapping

import pytest

from tests.contract.test_dead_store import CountingDead
from tests.contract.test_unreadable import damage
from tests.stores import DynamoStores, HandClock, Stores, dynamo_stores
from tollgate.aws.attributes import string
from tollgate.aws.aws_json import AwsReply
from tollgate.core.clock import DAY_S
from tollgate.core.routing.endpoint_status import AnswerTime, Speed
from tollgate.stores.aws.tables import Tables, speed_key
from tollgate.stores.routing.cooldowns import DynamoCooldownStore
from tollgate.stores.routing.speeds import WINDOW_S, WRITE_EVERY_S, MeasuredWindows, window_of

NEAR = "near/large-1"
# 50 tokens in 2 s, the first one after 400 ms; most of the prompt was cached.
ANSWER = AnswerTime(
    first_token_ms=400, output_tokens=50, output_ms=2_000, prompt_tokens=100, cached_tokens=80
)
SLOW = AnswerTime(
    first_token_ms=1_000, output_tokens=10, output_ms=2_000, prompt_tokens=100, cached_tokens=0
)


def times(answer: AnswerTime, number: int) -> AnswerTime:
    """Return the sum of `number` equal answers."""
    return AnswerTime(
        answers=number,
        first_token_ms=answer.first_token_ms * number,
        output_tokens=answer.output_tokens * number,
        output_ms=answer.output_ms * number,
        prompt_tokens=answer.prompt_tokens * number,
        cached_tokens=answer.cached_tokens * number,
    )


async def measure(stores: Stores, times: AnswerTime, endpoint: str = NEAR) -> None:
    stores.cooldowns.add_answer(endpoint, times)
    await stores.cooldowns.write_speed(endpoint)


async def at_window(stores: Stores, later: float = 0) -> None:
    """Move on to the beginning of the next window, and `later` from there."""
    await stores.clock.sleep(WINDOW_S - stores.clock.now_s() % WINDOW_S + later)


async def test_c19_what_is_written_is_what_is_read(stores: Stores) -> None:
    assert await stores.cooldowns.find_speeds([NEAR, "far/L"]) == {}
    await stores.clock.sleep(31)
    await measure(stores, ANSWER)
    await measure(stores, SLOW)
    assert await stores.cooldowns.find_speeds([NEAR, "far/L"]) == {
        NEAR: Speed(
            latency_ms=700,
            tokens_per_s=15.0,
            output_tokens=30,
            cached_share=0.4,
            answers=2,
            since_s=window_of(stores.clock.now),
        )
    }


async def test_c19_without_counted_tokens_only_the_latency_is_known(stores: Stores) -> None:
    await measure(stores, AnswerTime(first_token_ms=90))
    speeds = await stores.cooldowns.find_speeds([NEAR])
    assert (speeds[NEAR].latency_ms, speeds[NEAR].tokens_per_s) == (90, None)


async def test_c19_answers_are_added_up_and_written_once_a_minute(stores: Stores) -> None:
    store = stores.cooldowns
    assert store.add_answer(NEAR, ANSWER)
    await store.write_speed(NEAR)
    assert not store.add_answer(NEAR, ANSWER)
    assert not store.add_answer(NEAR, SLOW)
    assert store.add_answer("far/L", SLOW)
    await stores.clock.sleep(WRITE_EVERY_S)
    assert store.add_answer(NEAR, SLOW)
    await store.write_speed(NEAR)
    speeds = await store.find_speeds([NEAR])
    assert (speeds[NEAR].latency_ms, speeds[NEAR].tokens_per_s) == (700, 15.0)
    assert speeds[NEAR].answers == 4
    await store.write_speed(NEAR)
    await stores.clock.sleep(31)
    assert await store.find_speeds([NEAR]) == speeds


async def test_c19_the_window_before_fades_while_the_new_one_fills(stores: Stores) -> None:
    await at_window(stores)
    await measure(stores, times(ANSWER, 20))
    await at_window(stores, WINDOW_S / 2)
    await measure(stores, times(SLOW, 20))
    # Half of the earlier window's answers count, and all of the current window's.
    assert await stores.cooldowns.find_speeds([NEAR]) == {
        NEAR: Speed(
            latency_ms=800,
            tokens_per_s=35 * 1000 / 3_000,
            output_tokens=round(700 / 30),
            cached_share=round(800 / 3_000, 3),
            answers=30,
            since_s=window_of(stores.clock.now) - WINDOW_S,
        )
    }
    await at_window(stores)
    assert await stores.cooldowns.find_speeds([NEAR]) == {
        NEAR: Speed(
            latency_ms=1_000,
            tokens_per_s=5.0,
            output_tokens=10,
            cached_share=0.0,
            answers=20,
            since_s=window_of(stores.clock.now - WINDOW_S),
        )
    }


async def test_c19_few_answers_replace_earlier_ones_only_one_by_one(stores: Stores) -> None:
    await at_window(stores)
    await measure(stores, times(ANSWER, 20))
    for number in (5, 10, 15, 20):
        # An hour passes without answers.
        await at_window(stores)
        await at_window(stores, WINDOW_S / 2)
        await measure(stores, times(SLOW, 5))
        await stores.clock.sleep(31)
        speed = (await stores.cooldowns.find_speeds([NEAR]))[NEAR]
        assert (speed.answers, speed.latency_ms) == (20, 400 + 30 * number)
    await stores.clock.sleep(DAY_S)
    await measure(stores, times(ANSWER, 3))
    await stores.clock.sleep(31)
    assert (await stores.cooldowns.find_speeds([NEAR]))[NEAR].answers == 3


async def test_c19_what_is_older_than_a_day_is_no_speed(stores: Stores) -> None:
    await at_window(stores)
    await measure(stores, ANSWER)
    await stores.clock.sleep(DAY_S)
    assert NEAR in await stores.cooldowns.find_speeds([NEAR])
    await stores.clock.sleep(WINDOW_S)
    assert await stores.cooldowns.find_speeds([NEAR]) == {}
    # The window of yesterday counts no more beside the one of today.
    await measure(stores, SLOW)
    await stores.clock.sleep(31)
    assert (await stores.cooldowns.find_speeds([NEAR]))[NEAR].latency_ms == 1_000


async def test_c19_instances_add_up_and_do_not_overwrite(honest: DynamoStores) -> None:
    others = [
        DynamoCooldownStore(honest.client, honest.tables.core, honest.clock) for _ in range(8)
    ]
    for store in others:
        store.add_answer(NEAR, ANSWER)
    await asyncio.gather(*(store.write_speed(NEAR) for store in others))
    await measure(honest, AnswerTime(first_token_ms=4_900, output_tokens=0))
    speed = (await honest.cooldowns.find_speeds([NEAR]))[NEAR]
    assert (speed.latency_ms, speed.tokens_per_s) == ((8 * 400 + 4_900) // 9, 25.0)
    assert speed.answers == 9


async def test_c96_an_item_of_an_earlier_release_lacks_the_tokens_of_prompts(
    dynamo: DynamoStores,
) -> None:
    await at_window(dynamo)
    await measure(dynamo, times(SLOW, 20))
    gone: dict[str, None] = {"i": None, "c": None}
    await damage(dynamo, dynamo.tables.core, speed_key(NEAR), **gone)
    assert (await dynamo.cooldowns.find_speeds([NEAR]))[NEAR].cached_share is None
    await measure(dynamo, ANSWER)
    await dynamo.clock.sleep(31)
    assert (await dynamo.cooldowns.find_speeds([NEAR]))[NEAR].cached_share == 0.8
    await damage(dynamo, dynamo.tables.core, speed_key(NEAR), **gone)
    await at_window(dynamo)
    await measure(dynamo, ANSWER)
    assert (await dynamo.cooldowns.find_speeds([NEAR]))[NEAR].cached_share == 0.8


async def test_c19_an_endpoint_whose_speed_makes_no_sense_is_not_measured(
    dynamo: DynamoStores,
) -> None:
    await measure(dynamo, ANSWER)
    await measure(dynamo, ANSWER, "far/L")
    await damage(dynamo, dynamo.tables.core, speed_key(NEAR), f=string("x"))
    assert set(await dynamo.cooldowns.find_speeds([NEAR, "far/L"])) == {"far/L"}


async def test_c19_a_dead_store_measures_nothing_and_is_not_asked_at_once_again() -> None:
    client, clock = CountingDead(), HandClock()
    stores = dynamo_stores(client, Tables(core="c", ledger="l", generations="g"), clock)
    for _ in range(3):
        await measure(stores, ANSWER)
        assert not stores.cooldowns.add_answer(NEAR, ANSWER)
        assert await stores.cooldowns.find_speeds([NEAR]) == {}
    assert client.calls == {"UpdateItem": 3, "BatchGetItem": 1}


async def test_c19_a_slow_store_does_not_keep_a_request_waiting() -> None:
    class Slow:
        async def call(
            self, operation: str, payload: Mapping[str, object], *, attempts_max: int = 3
        ) -> AwsReply:
            await asyncio.Event().wait()
            raise AssertionError("unreachable")

    stores = dynamo_stores(Slow(), Tables(core="c", ledger="l", generations="g"), HandClock())
    assert await stores.cooldowns.find_speeds([NEAR]) == {}


async def test_c19_an_instance_writes_once_a_minute_whatever_it_serves() -> None:
    client, clock = CountingDead(), HandClock()
    stores = dynamo_stores(client, Tables(core="c", ledger="l", generations="g"), clock)
    for _ in range(3_600):
        if stores.cooldowns.add_answer(NEAR, ANSWER):
            await stores.cooldowns.write_speed(NEAR)
        clock.now += 1
    assert client.calls == {"UpdateItem": 60}


@pytest.mark.parametrize(
    ("later_s", "weight"), [(0, 1.0), (900, 0.5), (1_799, 1 / 1_800), (1_800, 0.0), (5_000, 0.0)]
)
def test_c19_the_window_before_fades_and_is_never_less_than_nothing(
    later_s: int, weight: float
) -> None:
    since_s = 100 * WINDOW_S
    windows = MeasuredWindows(
        since_s=since_s,
        times=times(SLOW, 20),
        before_s=since_s - WINDOW_S,
        before=times(ANSWER, 20),
    )
    latency_ms = round((1_000 + weight * 400) / (1 + weight))
    tokens_per_s = (10 + weight * 50) / (2 + weight * 2)
    assert windows.speed(since_s + later_s) == Speed(
        latency_ms=latency_ms,
        tokens_per_s=pytest.approx(tokens_per_s),
        output_tokens=round((200 + weight * 1_000) / (20 + weight * 20)),
        cached_share=round(weight * 1_600 / (2_000 + weight * 2_000), 3),
        answers=round(20 + 20 * weight),
        since_s=since_s - WINDOW_S if weight else since_s,
    )


def test_c19_answers_without_counted_tokens_have_no_speed_of_tokens() -> None:
    times = AnswerTime(first_token_ms=400, output_tokens=0, output_ms=2_000)
    windows = MeasuredWindows(since_s=0, times=times)
    assert windows.speed(1) == Speed(latency_ms=400, tokens_per_s=None, answers=1)
