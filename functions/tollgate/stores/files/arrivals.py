"""Contents that their uploaders send to the bucket themselves: checked at the first look."""

from typing import Final, Protocol

from msgspec.structs import replace

from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.file_types import HEAD_BYTES, read_media_type
from tollgate.core.files import FILE_PREFIX, StoredFile
from tollgate.stores.aws.attributes import string
from tollgate.stores.aws.aws_json import AwsCaller
from tollgate.stores.aws.expressions import FILE_ARRIVED
from tollgate.stores.aws.failures import ConditionFailed
from tollgate.stores.aws.objects import ObjectHead
from tollgate.stores.aws.tables import file_key
from tollgate.stores.files.rows import awaited_object_of, object_of

# An upload that began before its address expired may still be under way for so long.
LATE_S: Final = 3_600


class ArrivedContents(Protocol):
    """Contents by key, of which only the first bytes are read."""

    async def get_head(self, key: str, bytes_max: int) -> ObjectHead | None:
        """Return the size and the first bytes of a content; None if it is missing."""

    async def move(self, key: str, to: str, media_type: str) -> None:
        """Move a content, in place of one with that key; a repeated move may find none."""


class Arrivals:
    """The files of all workspaces whose content is awaited."""

    def __init__(self, client: AwsCaller, table: str, contents: ArrivedContents) -> None:
        self._client = client
        self._table = table
        self._contents = contents

    async def check(self, file: StoredFile) -> StoredFile | None:
        """Return an awaited file as one that has arrived; None as long as it has not.

        Raises RequestError if its content is not what was announced. A content that was checked is
        moved away from the address that its uploader may still write to.
        """
        arrived = await self._contents.get_head(awaited_object_of(file), HEAD_BYTES)
        if arrived is None:
            return None
        if arrived.size_bytes != file.size_bytes:
            raise RequestError(
                ErrorCode.INVALID_REQUEST,
                f"file: {file.size_bytes:,} bytes were announced, and {arrived.size_bytes:,} came.",
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
        try:
            await self._client.call(
                "UpdateItem",
                {
                    "TableName": self._table,
                    "Key": file_key(file.workspace_id, file.id.removeprefix(FILE_PREFIX)),
                    "UpdateExpression": FILE_ARRIVED.update,
                    "ConditionExpression": FILE_ARRIVED.condition,
                    "ExpressionAttributeValues": {":mt": string(media_type)},
                },
            )
        except ConditionFailed:
            # Another reader has checked it, or it was deleted meanwhile.
            return None
        return replace(file, media_type=media_type, awaited_until_s=None)
