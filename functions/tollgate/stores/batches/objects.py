"""The contents of batches: their files, and the results of lines until they are joined."""

import asyncio
from collections.abc import Sequence
from typing import Final

from tollgate.aws.failures import refusing_when_unavailable
from tollgate.aws.objects import ObjectStore
from tollgate.core.batches import Batch
from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.files.stored import NewFile, StoredFile
from tollgate.stores.files.files import DynamoFileStore
from tollgate.stores.rules.object_names import batch_folder

_DELETED_AT_ONCE: Final = 32


class StoredBatchObjects:
    """Implements `stores.ports.batches.BatchObjects`."""

    def __init__(self, objects: ObjectStore, files: DynamoFileStore) -> None:
        self._objects = objects
        self._files = files

    async def input_bytes(self, batch: Batch) -> int | None:
        file = await self._files.get(batch.workspace_id, batch.input_file_id)
        return None if file is None else file.size_bytes

    async def read_input(self, batch: Batch, start: int, length: int) -> bytes:
        return await self._files.read_range(await self._input(batch), start, length)

    async def put(self, batch: Batch, name: str, content: bytes) -> None:
        with refusing_when_unavailable():
            await self._objects.put(_object(batch, name), content)

    async def get(self, batch: Batch, name: str) -> bytes | None:
        with refusing_when_unavailable():
            return await self._objects.get(_object(batch, name))

    async def clear(self, batch: Batch) -> None:
        with refusing_when_unavailable():
            async for group in self._objects.list(batch_folder(batch)):
                for first in range(0, len(group), _DELETED_AT_ONCE):
                    some = group[first : first + _DELETED_AT_ONCE]
                    await asyncio.gather(*(self._objects.delete(it.key) for it in some))

    async def create_file(
        self, batch: Batch, filename: str, parts: Sequence[tuple[str, int]]
    ) -> str:
        new = NewFile(
            workspace_id=batch.workspace_id,
            key_id=batch.key_id,
            member_id=batch.member_id,
            filename=filename,
            purpose="batch_output",
            media_type="application/jsonl",
            expires_after_s=batch.output_expires_s,
        )
        sources = [(_object(batch, name), size_bytes) for name, size_bytes in parts]
        return (await self._files.create_joined(new, sources)).id

    async def _input(self, batch: Batch) -> StoredFile:
        file = await self._files.get(batch.workspace_id, batch.input_file_id)
        if file is None:
            raise RequestError(
                ErrorCode.FILE_NOT_FOUND,
                f"The file {batch.input_file_id} was deleted or has expired.",
                param="input_file_id",
            )
        return file


def _object(batch: Batch, name: str) -> str:
    return batch_folder(batch) + name
