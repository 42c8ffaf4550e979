"""Time that runs fast: deadlines of minutes and a midnight pass within a run of seconds."""

import asyncio
import time

RATE = 400.0


class FastClock:
    """`now` as every process with the same start sees it; waiting is not sped up."""

    def __init__(self, started_s: float, began_s: float) -> None:
        self._started_s = started_s
        self.began_s = began_s
        self.ahead_s = 0.0

    @property
    def now(self) -> float:
        return self.began_s + (time.time() - self._started_s) * RATE + self.ahead_s

    @now.setter
    def now(self, at_s: float) -> None:
        self.ahead_s += at_s - self.now

    def now_s(self) -> float:
        return self.now

    def monotonic_s(self) -> float:
        return time.monotonic()

    async def sleep(self, delay_s: float) -> None:
        await asyncio.sleep(delay_s)
