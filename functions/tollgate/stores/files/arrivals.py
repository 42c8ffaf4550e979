"""Checks of files that clients upload directly to the bucket. A file is checked when it is first
read.
"""

from typing import Final, Protocol

from msgspec.structs import replace

from tollgate.aws.attributes import string
from tollgate.aws.aws_json import AwsCaller
from tollgate.aws.objects import ObjectHead
from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.files.file_types import HEAD_BYTES, read_media_type
from tollgate.core.files.stored import StoredFile
from tollgate.stores.aws.expressions import FILE_ARRIVED
from tollgate.stores.aws.tables import try_update
from tollgate.stores.files.rows import awaited_object_of, key_of_file, object_of

# Maximum time for which an upload may go on after its signed address has expired.
LATE_S: Final = 3_600


class ArrivedContents(Protocol):
    """A store of file contents by key, which can read the first bytes of a file and move files."""

    async def get_head(self, key: str, bytes_max: int) -> ObjectHead | None:
        """Return the size and first bytes of a file, or None if it is missing."""

    async def move(self, key: str, to: str, media_type: str) -> None:
        """Move a file to `to`, replacing any file there; ignore a missing file, as in a retry."""


class Arrivals:
    """Checks of files that a client uploads to the bucket."""

    def __init__(self, client: AwsCaller, table: str, contents: ArrivedContents) -> None:
        self._client = client
        self._table = table
        self._contents = contents

    async def check(self, file: StoredFile) -> StoredFile | None:
        """Return a file after its content has arrived, or None if it has not arrived yet.

        Raise RequestError if the content differs from the announcement. Checked content is moved to
        another key, because the client can write to the signed address until it expires.
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
        await self._contents.move(awaited_object_of(file), object_of(file), media_type)
        write = FILE_ARRIVED.build(self._table, key_of_file(file), {":mt": string(media_type)})
        # The condition fails if another reader has checked the file, or if the file was deleted in
        # the meantime.
        if not await try_update(self._client, write):
            return None
        return replace(file, media_type=media_type, awaited_until_s=None)
