"""Clocks that tests hold in their hands."""

import asyncio

from typing_extensions import override

from tollgate.core.clock import Clock, SystemClock

STARTED_S = 1_645_557_742.0
# Shorter ones are pauses between attempts.
LONG_SLEEP_S = 5.0


class FixedClock:
    """A clock that stands still."""

    def __init__(self, now_s: float = STARTED_S) -> None:
        self._now_s = now_s

    def now_s(self) -> float:
        return self._now_s

    def monotonic_s(self) -> float:
        return self._now_s

    async def sleep(self, delay_s: float) -> None:
        raise AssertionError(f"asked to sleep {delay_s} s on a clock that stands still")


class ShiftedClock(SystemClock):
    """The clock of another time."""

    def __init__(self, ahead_s: float) -> None:
        self._ahead_s = ahead_s

    @override
    def now_s(self) -> float:
        return super().now_s() + self._ahead_s


class HaltedClock:
    """Another clock, on which nobody wakes from a long sleep until `going` is set."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.going = asyncio.Event()

    def now_s(self) -> float:
        return self._clock.now_s()

    def monotonic_s(self) -> float:
        return self._clock.monotonic_s()

    async def sleep(self, delay_s: float) -> None:
        if delay_s >= LONG_SLEEP_S:
            await self.going.wait()
        await self._clock.sleep(delay_s)
