"""Wakes the workers of jobs."""

import logging
from typing import Final

from tollgate.core.errors import GatewayError
from tollgate.core.jobs import Job
from tollgate.stores.ports.batches import BatchPlace, BatchQueue

_log: Final = logging.getLogger(__name__)


async def wake_worker(queue: BatchQueue | None, job: Job) -> None:
    """Send a message that wakes a worker; if that fails, the sweeper wakes one later."""
    if queue is None:
        return
    try:
        await queue.send(BatchPlace(job.workspace_id, job.id))
    except GatewayError as failure:
        _log.warning("no worker was woken for %s: %s", job.id, failure.message)
