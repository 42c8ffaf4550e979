"""Clocks that tests hold in their hands."""

from typing_extensions import override

from tollgate.core.clock import SystemClock

STARTED_S = 1_645_557_742.0


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
