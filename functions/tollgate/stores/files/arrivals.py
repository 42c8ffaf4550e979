"""Checks files that clients upload directly to the bucket. A file is checked when it is
first read.
"""

from contextlib import suppress
from typing import Final, Protocol

from msgspec.structs import replace

from tollgate.aws.attributes import string
from tollgate.aws.aws_json import AwsCaller
from tollgate.aws.failures import StoreError
from tollgate.aws.objects import ObjectHead
from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.files.file_types import HEAD_BYTES, read_media_type
from tollgate.core.files.stored import StoredFile
from tollgate.stores.aws.expressions import FILE_ARRIVED
from tollgate.stores.aws.tables import get_item, try_update
from tollgate.stores.files.rows import (
    awaited_object_of,
    decode_file,
    is_being_deleted,
    key_of_file,
    object_of,
)

# Maximum time for which an upload may continue after its signed URL has expired.
LATE_S: Final = 3_600


class ArrivedContents(Protocol):
    """A store of file contents by key that can read the first bytes of a file and copy files."""

    async def get_head(self, key: str, bytes_max: int) -> ObjectHead | None:
        """Return the size and first bytes of a file, or None if it is missing."""

    async def copy(self, key: str, to: str, media_type: str, *, etag: str) -> bool:
        """Copy the version `etag` of a file; return False if that version does not exist."""

    async def seal(self, key: str) -> None:
        """Replace a file with an empty one, which blocks further uploads to its signed URL."""


class Arrivals:
    """Checks files that clients upload to the bucket."""

    def __init__(self, client: AwsCaller, table: str, contents: ArrivedContents) -> None:
        self._client = client
        self._table = table
        self._contents = contents

    async def check(self, file: StoredFile) -> StoredFile | None:
        """Return a file whose content has arrived; None if it has not arrived yet.

        Raises RequestError if the content differs from the announcement. The version that was
        checked is copied to another key. Then the signed URL is sealed, so that nothing more can be
        stored there.
        """
        arrived = await self._contents.get_head(awaited_object_of(file), HEAD_BYTES)
        if arrived is None:
            return None
        if arrived.size_bytes != file.size_bytes:
            raise RequestError(
                ErrorCode.INVALID_REQUEST,
                f"file: {file.size_bytes:,} bytes were announced, {arrived.size_bytes:,} arrived.",
                param="file",
            )
        media_type = read_media_type(
            arrived.head,
            is_whole=arrived.size_bytes <= HEAD_BYTES,
            filename=file.filename,
            stated=file.media_type,
            purpose=file.purpose,
        )
        copied = await self._contents.copy(
            awaited_object_of(file), object_of(file), media_type, etag=arrived.etag
        )
        write = FILE_ARRIVED.build(self._table, key_of_file(file), {":mt": string(media_type)})
        if not copied or not await try_update(self._client, write):
            return await self._result_of_race(file)
        with suppress(StoreError):
            # If sealing fails now, the sweeper removes the content later.
            await self._contents.seal(awaited_object_of(file))
        return replace(file, media_type=media_type, awaited_until_s=None)

    async def _result_of_race(self, file: StoredFile) -> StoredFile | None:
        """Return a file that another reader has checked; None if the file was deleted."""
        item = await get_item(self._client, self._table, key_of_file(file))
        if item is None or is_being_deleted(item):
            # If the copy was made after the file was deleted, nothing else would delete it.
            await self._contents.seal(object_of(file))
            return None
        current = decode_file(item)
        if current.awaited_until_s is None:
            return current
        raise RequestError(
            ErrorCode.INVALID_REQUEST,
            "file: the content was replaced while it was checked; announce the file again.",
            param="file",
        )
