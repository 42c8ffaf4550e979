"""Contents of files in a folder, for a machine without S3."""

import asyncio
from pathlib import Path

from tollgate.core.files import FileDownload, SignedUpload
from tollgate.stores.aws.objects import FolderObjects, ObjectHead


class FolderFiles:
    """Implements `stores.files.contents.FileContents`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._objects = FolderObjects(folder)

    async def put(self, key: str, content: bytes, media_type: str) -> None:
        await self._objects.put(key, content)

    async def delete(self, key: str) -> None:
        await self._objects.delete(key)

    async def download(self, key: str, *, filename: str, media_type: str) -> FileDownload | None:
        path = self._folder / key
        return FileDownload(path=path) if await asyncio.to_thread(path.is_file) else None

    async def sign_upload(
        self, key: str, *, size_bytes: int, media_type: str
    ) -> SignedUpload | None:
        return None

    async def get_head(self, key: str, bytes_max: int) -> ObjectHead | None:
        return await self._objects.get_head(key, bytes_max)

    async def move(self, key: str, to: str, media_type: str) -> None:
        await self._objects.move(key, to, media_type)

    async def close(self) -> None:
        await self._objects.close()
