"""Background responses in DynamoDB, and the contents that belong to them as objects."""

import asyncio
from typing import Final

from tollgate.aws.failures import refusing_when_unavailable
from tollgate.aws.objects import ObjectStore
from tollgate.core.background import RESPONSE_PREFIX, BackgroundResponse
from tollgate.stores.batches.jobs import JobKind
from tollgate.stores.records.contents import ObjectContentLog

BACKGROUND: Final = JobKind(state=BackgroundResponse, prefix=RESPONSE_PREFIX, rows="R#")


class StoredBackgroundParts:
    """Implements `stores.ports.batches.BackgroundParts`, next to the response that is stored."""

    def __init__(self, objects: ObjectStore, responses: ObjectContentLog) -> None:
        self._objects = objects
        self._responses = responses

    async def put(self, job: BackgroundResponse, name: str, content: bytes) -> None:
        with refusing_when_unavailable():
            await self._objects.put(self._folder(job) + name, content)

    async def get(self, job: BackgroundResponse, name: str) -> bytes | None:
        with refusing_when_unavailable():
            return await self._objects.get(self._folder(job) + name)

    async def clear(self, job: BackgroundResponse) -> None:
        with refusing_when_unavailable():
            async for group in self._objects.list(self._folder(job)):
                await asyncio.gather(*(self._objects.delete(it.key) for it in group))
            await self._objects.delete(self._answer(job))

    async def answer(self, job: BackgroundResponse) -> bytes | None:
        return await self._responses.get(job.workspace_id, job.bare_id, days=job.days)

    async def keep(self, job: BackgroundResponse, content: bytes) -> None:
        with refusing_when_unavailable():
            await self._objects.put(self._answer(job), content)

    def _answer(self, job: BackgroundResponse) -> str:
        return self._responses.name(job.workspace_id, job.bare_id, job.days)

    def _folder(self, job: BackgroundResponse) -> str:
        return f"{self._answer(job)}.parts/"
