"""Answers for identical requests, as objects below the answers of the workspace."""

import asyncio
from typing import Final

from tollgate.aws.failures import refusing_when_unavailable
from tollgate.aws.objects import ObjectStore
from tollgate.stores.records.kept_answers import answers_folder

# A new answer takes longer than a read; while the store is away, each request waits for two tries.
_READ_LIMIT_S: Final = 1.0
# Deletions at the same time.
_DELETIONS_MAX: Final = 20
# Objects that one call deletes, so that it ends within the time of a function.
CLEARED_MAX: Final = 1_000


class ObjectAnswerCache:
    """Implements `stores.ports.base.AnswerCache`."""

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects

    async def get(self, workspace_id: str, name: str) -> bytes | None:
        """Return a workspace's answer; None if there is none."""
        with refusing_when_unavailable():
            name = f"{cached_folder(workspace_id)}{name}"
            return await self._objects.get(name, timeout_s=_READ_LIMIT_S)

    async def put(self, workspace_id: str, name: str, answer: bytes) -> None:
        """Store an answer in place of an earlier one."""
        with refusing_when_unavailable():
            await self._objects.put(f"{cached_folder(workspace_id)}{name}", answer)

    async def clear(self, workspace_id: str) -> int:
        """Delete a workspace's answers, and return their number, which is at most CLEARED_MAX."""
        cleared = 0
        with refusing_when_unavailable():
            async for group in self._objects.list(cached_folder(workspace_id)):
                due = [stored.key for stored in group[: CLEARED_MAX - cleared]]
                for start in range(0, len(due), _DELETIONS_MAX):
                    keys = due[start : start + _DELETIONS_MAX]
                    await asyncio.gather(*map(self._objects.delete, keys))
                cleared += len(due)
                if cleared == CLEARED_MAX:
                    break
        return cleared


def cached_folder(workspace_id: str) -> str:
    """Return the key prefix of the answers that identical requests of a workspace may get."""
    return f"{answers_folder(workspace_id)}cached/"
