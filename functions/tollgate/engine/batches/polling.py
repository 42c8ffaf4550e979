"""Works on open jobs in a server, alongside its requests."""

import asyncio
import logging
from contextlib import suppress
from functools import partial
from typing import Final, Generic, Protocol

from tollgate.core.clock import Clock, Deadline
from tollgate.core.errors import GatewayError
from tollgate.stores.ports.batches import AnyJob, BatchPlace, JobStore

_log = logging.getLogger(__name__)

_POLL_S: Final = 5.0
_WORK_S: Final = 3_600.0


class JobWorker(Protocol):
    """Works on the jobs of a kind."""

    stop: asyncio.Event
    """Set when nothing further may begin in this process."""

    async def work(self, place: BatchPlace, deadline: Deadline) -> float | None:
        """Run a job; return the seconds until more can be done, or None if it has ended."""


class BatchPolling(Generic[AnyJob]):
    """Looks for open jobs of a kind, and works on several at a time; wakes up for new ones.

    Once a process works on `at_once` jobs, the others follow in turn.
    """

    def __init__(
        self, worker: JobWorker, store: JobStore[AnyJob], clock: Clock, *, at_once: int
    ) -> None:
        self._at_once = at_once
        self._worker = worker
        self._store = store
        self._clock = clock
        self._woken = asyncio.Event()
        self._running: dict[BatchPlace, asyncio.Task[float | None]] = {}

    async def send(self, place: BatchPlace, *, delay_s: int = 0) -> None:
        """Look for open jobs now; implements `BatchQueue`."""
        self._woken.set()

    async def run(self) -> None:
        """Run open jobs until `stop` is called."""
        while not self._worker.stop.is_set():
            try:
                await self._begin_work()
            except GatewayError as failure:
                _log.warning("open jobs cannot be listed: %s", failure.message)
            with suppress(TimeoutError):
                async with asyncio.timeout(_POLL_S):
                    await self._woken.wait()
            self._woken.clear()
        await asyncio.gather(*self._running.values(), return_exceptions=True)

    def stop(self) -> None:
        """Stop new lines from beginning; `run` returns once the lines in progress have ended."""
        self._worker.stop.set()
        self._woken.set()

    async def _begin_work(self) -> None:
        for place in await self._store.open_jobs():
            if len(self._running) >= self._at_once:
                return
            if place not in self._running:
                deadline = Deadline.within(self._clock, _WORK_S)
                task = asyncio.create_task(self._worker.work(place, deadline))
                self._running[place] = task
                task.add_done_callback(partial(self._end, place))

    def _end(self, place: BatchPlace, task: "asyncio.Task[float | None]") -> None:
        del self._running[place]
        failure = None if task.cancelled() else task.exception()
        if isinstance(failure, GatewayError):
            _log.warning("work on %s failed: %s", place.batch_id, failure.message)
        elif failure is not None:
            _log.error("work on %s failed", place.batch_id, exc_info=failure)
