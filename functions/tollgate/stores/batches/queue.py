"""The queues in SQS that wake the batch function."""

from typing import Any, Generic

from msgspec import json

from tollgate.aws.aws_json import AwsJson
from tollgate.aws.failures import refusing_when_unavailable
from tollgate.stores.ports.batches import AnyJob, BatchPlace, JobStore


class SqsBatchQueue:
    """Implements `stores.ports.batches.BatchQueue`."""

    def __init__(self, client: AwsJson, url: str) -> None:
        self._client = client
        self._url = url

    async def send(self, place: BatchPlace, *, delay_s: int = 0) -> None:
        with refusing_when_unavailable():
            await self._client.call(
                "SendMessage",
                {
                    "QueueUrl": self._url,
                    "MessageBody": json.encode(place).decode(),
                    "DelaySeconds": delay_s,
                },
            )

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.close()


class OpenJobs(Generic[AnyJob]):
    """Wakes the workers of all open jobs of a kind, because a message may be lost."""

    def __init__(self, store: JobStore[AnyJob], queue: SqsBatchQueue | None) -> None:
        self._store = store
        self._queue = queue

    async def wake(self) -> int:
        """Send a message for each open job, and return their number; 0 without a queue."""
        if self._queue is None:
            return 0
        places = await self._store.open_jobs()
        for place in places:
            await self._queue.send(place)
        return len(places)

    async def aclose(self) -> None:
        """Close the connections."""
        if self._queue is not None:
            await self._queue.aclose()


async def find_job_holds(*stores: JobStore[Any]) -> frozenset[str]:
    """Return the ids of the holds under which providers run jobs of these stores."""
    found = frozenset[str]()
    for store in stores:
        for place in await store.open_jobs():
            job = await store.get(place)
            if job is not None:
                found |= job.hold_ids
    return found
