"""Show the supervisor of several processes that the event loop of this one turns."""

import asyncio
import contextlib
import faulthandler
import os
import signal
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from typing import Final

from tollgate.core.clock import SystemClock

BEAT_S: Final = 1.0
# Lets a process write the stacks of its threads to standard error.
STACKS_SIGNAL: Final = signal.SIGUSR1


@contextlib.contextmanager
def beat(heart: Connection, on_orphaned: Callable[[], None]) -> Iterator[None]:
    """Write a beat each second meanwhile.

    `on_orphaned` is called once the supervisor has gone: nobody would start this process again.
    """
    clock = SystemClock()
    os.set_blocking(heart.fileno(), False)
    faulthandler.register(STACKS_SIGNAL, all_threads=True)

    async def beat_on() -> None:
        while True:
            # A supervisor that is stopped reads nothing, and counts beats by its own time.
            with contextlib.suppress(BlockingIOError):
                try:
                    os.write(heart.fileno(), b".")
                except BrokenPipeError:
                    on_orphaned()
                    return
            await clock.sleep(BEAT_S)

    beating = asyncio.create_task(beat_on())
    try:
        yield
    finally:
        beating.cancel()
