"""Works on jobs in the process of a server: batches, background responses, shadow runs."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from tollgate.engine.batches.polling import BatchPolling


@asynccontextmanager
async def working_on_jobs(
    pollings: Sequence[BatchPolling[Any] | None], drain_s: int
) -> AsyncIterator[None]:
    """Run open jobs within a `with` block; at its end, work in progress may run `drain_s`.

    Lines and answers that run longer are cancelled; they cost nothing, and run again later.
    """
    at_work = [polling for polling in pollings if polling is not None]
    tasks = [asyncio.create_task(polling.run()) for polling in at_work]
    try:
        yield
    finally:
        for polling in at_work:
            polling.stop()
        with suppress(TimeoutError):
            async with asyncio.timeout(drain_s):
                await asyncio.gather(*tasks)
