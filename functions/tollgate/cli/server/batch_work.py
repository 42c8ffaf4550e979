"""Runs batches in the process of a server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from tollgate.engine.batches.polling import BatchPolling


@asynccontextmanager
async def working_on_batches(polling: BatchPolling | None, drain_s: int) -> AsyncIterator[None]:
    """Run open batches within a `with` block; at its end, lines may run `drain_s` seconds.

    Lines that run longer are cancelled; they cost nothing, and run again later.
    """
    if polling is None:
        yield
        return
    working = asyncio.create_task(polling.run())
    try:
        yield
    finally:
        polling.stop()
        with suppress(TimeoutError):
            async with asyncio.timeout(drain_s):
                await working
