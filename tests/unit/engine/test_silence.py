"""A stream may be silent for so long and no longer, however often it was waited for.

Keeps C34.
"""

import asyncio
from contextlib import closing, suppress

import pytest

from tollgate.engine.silence import SilenceLimit

LIMIT_S = 10.0


def now_s() -> float:
    return asyncio.get_running_loop().time()


async def test_c34_a_wait_ends_at_the_limit_and_not_before() -> None:
    with closing(SilenceLimit(LIMIT_S)) as silence:
        await silence.wait_for(asyncio.sleep(LIMIT_S - 0.001))
        start_s = now_s()
        with pytest.raises(TimeoutError):
            await silence.wait_for(asyncio.Event().wait())
        assert now_s() - start_s == pytest.approx(LIMIT_S)


async def test_c34_many_waits_have_the_whole_limit_each() -> None:
    with closing(SilenceLimit(LIMIT_S)) as silence:
        for _ in range(5):
            assert await silence.wait_for(asyncio.sleep(0.9 * LIMIT_S, "said")) == "said"


async def test_c34_what_the_reader_does_between_two_waits_is_not_silence() -> None:
    with closing(SilenceLimit(LIMIT_S)) as silence:
        await silence.wait_for(asyncio.sleep(1))
        await asyncio.sleep(3.5 * LIMIT_S)
        start_s = now_s()
        with pytest.raises(TimeoutError):
            await silence.wait_for(asyncio.Event().wait())
        assert now_s() - start_s == pytest.approx(LIMIT_S)


async def test_whoever_cancels_the_task_is_heard_even_when_the_limit_is_reached() -> None:
    async def wait() -> None:
        with closing(SilenceLimit(LIMIT_S)) as silence:
            await silence.wait_for(asyncio.Event().wait())

    task = asyncio.create_task(wait())
    # At the same instant as the limit, and after it.
    await asyncio.sleep(0)
    asyncio.get_running_loop().call_later(LIMIT_S, task.cancel)
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_cancellation_that_was_ignored_before_does_not_hide_the_limit() -> None:
    async def wait() -> None:
        # As those do who must finish first; nobody has uncancelled the task.
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(1)
        with closing(SilenceLimit(LIMIT_S)) as silence, pytest.raises(TimeoutError):
            await silence.wait_for(asyncio.Event().wait())

    task = asyncio.create_task(wait())
    await asyncio.sleep(0)
    task.cancel()
    await task


async def test_a_limit_that_is_closed_ends_nothing() -> None:
    silence = SilenceLimit(LIMIT_S)
    with closing(silence):
        await silence.wait_for(asyncio.sleep(1))
    await asyncio.sleep(10 * LIMIT_S)
