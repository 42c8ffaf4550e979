"""Timeouts that let the event loop deliver what has arrived before they expire."""

import asyncio
from types import TracebackType
from typing import Final

# The share of a limit that begins only when the event loop gets to it.
_LAST_PART: Final = 0.05


class LoopTimeout:
    """A limit like that of `asyncio.timeout`, which raises TimeoutError; None is no limit.

    If a process had no CPU for longer than the limit, the awaited result and the timer are due at
    the same time when it wakes up. asyncio then discards the result; here the last twentieth of the
    limit begins when the event loop gets to it.
    """

    __slots__ = ("_limit_s", "_timeout", "_timer")

    def __init__(self, limit_s: float | None) -> None:
        self._limit_s = limit_s
        self._timeout = asyncio.timeout(None)
        self._timer: asyncio.TimerHandle | None = None

    async def __aenter__(self) -> None:
        if self._limit_s is not None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._limit_s * (1 - _LAST_PART), self._begin_last_part)
        await self._timeout.__aenter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        await self._timeout.__aexit__(kind, error, traceback)

    def _begin_last_part(self) -> None:
        loop = asyncio.get_running_loop()
        self._timeout.reschedule(loop.time() + (self._limit_s or 0) * _LAST_PART)
