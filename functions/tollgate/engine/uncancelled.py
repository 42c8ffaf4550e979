"""Finishes work that a cancellation must not interrupt, such as a hold or a settlement."""

import asyncio
from collections.abc import Coroutine
from functools import partial
from typing import Any, TypeVar

_Result = TypeVar("_Result")


async def run_uncancelled(
    work: Coroutine[Any, Any, _Result],
) -> tuple[_Result, asyncio.CancelledError | None]:
    """Finish the work even if this task is cancelled in the meantime.

    Returns the result and the cancellation, if there was one, which the caller must raise as soon
    as possible. If the work fails after a cancellation, the cancellation is raised.
    """
    task = asyncio.create_task(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        # Waiting for a future costs a third as much as `asyncio.wait`.
        ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        wake = partial(_end, ended)
        task.add_done_callback(wake)
        try:
            await ended
        except asyncio.CancelledError as request:
            cancelled = request
            task.remove_done_callback(wake)
    if cancelled is not None and (failure := task.exception()) is not None:
        raise cancelled from failure
    return task.result(), cancelled


def _end(waiting: asyncio.Future[None], _: object) -> None:
    if not waiting.done():
        waiting.set_result(None)
