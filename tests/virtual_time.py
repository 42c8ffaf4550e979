"""An event loop whose time passes only while everything waits, and then at once."""

import asyncio
import selectors
from collections.abc import Callable
from typing import Any

from tests.clocks import STARTED_S


class NothingLeftToWaitFor(Exception):
    """Every task waits for something that will never happen."""


class _Skipping(selectors.DefaultSelector):
    """Never sleeps: where a loop would wait, its time moves on."""

    loop: "VirtualTimeLoop"

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready:
            if timeout is None:
                raise NothingLeftToWaitFor
            self.loop.now_s += max(0.0, timeout)
        return ready


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """Timeouts and sleeps of hours take no time, and always end in the same order."""

    def __init__(self) -> None:
        self.now_s = 0.0
        selector = _Skipping()
        selector.loop = self
        super().__init__(selector)

    def time(self) -> float:
        return self.now_s

    def run_in_executor(
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        """Compute at once: while a thread computes, the loop would find nothing to wait for."""
        computed = self.create_future()
        try:
            computed.set_result(func(*args))
        except Exception as failure:
            computed.set_exception(failure)
        return computed


class LoopClock:
    """The clock of the loop that runs."""

    def now_s(self) -> float:
        return STARTED_S + self.monotonic_s()

    def monotonic_s(self) -> float:
        return asyncio.get_running_loop().time()

    async def sleep(self, delay_s: float) -> None:
        await asyncio.sleep(delay_s)


def loop_factories() -> dict[str, type[VirtualTimeLoop]]:
    """What a conftest returns from `pytest_asyncio_loop_factories` to run on virtual time."""
    return {"virtual_time": VirtualTimeLoop}
