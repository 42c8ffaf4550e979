"""A limit on how long a stream may be silent, at the price of one timer for all of it.

A timeout for each read costs as much as reading: a tenth of the CPU of a paced stream.
"""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

_Result = TypeVar("_Result")


class SilenceLimit:
    """Limits each of many waits, of one task and in turn, to the same time; needs closing."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._loop = asyncio.get_running_loop()
        self._due_s = self._loop.time() + limit_s
        self._timer = self._loop.call_at(self._due_s, self._look)
        self._waiting: asyncio.Task[object] | None = None
        self._expired = False

    async def within(self, work: Awaitable[_Result]) -> _Result:
        """What `work` returns; TimeoutError, with the work cancelled, if it takes too long."""
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("only a task can wait")
        cancelled_before = task.cancelling()
        self._due_s = self._loop.time() + self._limit_s
        self._waiting = task
        try:
            return await work
        except asyncio.CancelledError:
            # Unless somebody else wants the task to end, too.
            if self._expired and task.uncancel() <= cancelled_before:
                raise TimeoutError from None
            raise
        finally:
            self._waiting = None

    def close(self) -> None:
        """Stop looking."""
        self._timer.cancel()

    def _look(self) -> None:
        """End the wait if it is due; else look again when it will be, or the next one could."""
        now_s = self._loop.time()
        if self._waiting is None:
            self._timer = self._loop.call_at(now_s + self._limit_s, self._look)
        elif now_s < self._due_s:
            self._timer = self._loop.call_at(self._due_s, self._look)
        else:
            self._expired = True
            self._waiting.cancel()
