"""Contents of files in a local folder, for a server without S3."""

import asyncio
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path
from tempfile import NamedTemporaryFile

from typing_extensions import override

from tollgate.aws.failures import StoreRejected
from tollgate.aws.objects import FolderObjects
from tollgate.core.files.stored import FileDownload, SignedUpload
from tollgate.stores.files.contents import cut_into_pieces
from tollgate.stores.files.local_uploads import LocalUploads
from tollgate.stores.files.rows import UPLOADS


class FolderFiles(FolderObjects):
    """Implements `stores.files.contents.FileContents`."""

    def __init__(self, folder: Path, uploads: LocalUploads | None = None) -> None:
        super().__init__(folder)
        self._uploads = uploads

    @override
    async def put(self, key: str, content: bytes, media_type: str = "") -> None:
        await super().put(key, content)

    async def download(self, key: str, *, filename: str, media_type: str) -> FileDownload | None:
        path = self._folder / key
        return FileDownload(path=path) if await asyncio.to_thread(path.is_file) else None

    async def sign_upload(
        self, key: str, *, size_bytes: int, media_type: str
    ) -> SignedUpload | None:
        if self._uploads is None:
            return None
        return self._uploads.sign(key, size_bytes=size_bytes, media_type=media_type)

    async def get_range(self, key: str, start: int, length: int) -> bytes:
        return await asyncio.to_thread(self._read_range, key, start, length)

    async def join(
        self,
        sources: Sequence[tuple[str, int]],
        to: str,
        media_type: str,
        *,
        observe: Callable[[bytes], None],
    ) -> None:
        await asyncio.to_thread(self._join, sources, self._folder / to, observe)

    async def delete_all(self, keys: Sequence[str]) -> None:
        for key in keys:
            await self.delete(key)

    def _read_range(self, key: str, start: int, length: int) -> bytes:
        try:
            with (self._folder / key).open("rb") as file:
                file.seek(start)
                return file.read(length)
        except FileNotFoundError as missing:
            raise StoreRejected("NoSuchKey", "reading of a range") from missing

    def _join(
        self, sources: Sequence[tuple[str, int]], to: Path, observe: Callable[[bytes], None]
    ) -> None:
        to.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        unfinished = self._folder / UPLOADS
        unfinished.mkdir(parents=True, exist_ok=True, mode=0o700)
        # Concurrent joins write to separate temporary files, which only this user may read. If the
        # process is killed, the sweeper removes the file of the join.
        with NamedTemporaryFile(dir=unfinished, delete=False) as file:
            written = Path(file.name)
            try:
                for source in chain.from_iterable(cut_into_pieces(sources)):
                    content = self._read_range(source.key, source.start, source.length)
                    observe(content)
                    file.write(content)
            except (OSError, StoreRejected):
                written.unlink()
                raise
        written.replace(to)
