"""The numbers of files and bytes that a workspace and each of its keys store, and their caps.

A file is counted before it exists, by one conditional write, so that concurrent uploads cannot
exceed a cap. Until the file's item is written, the count's item names the upload. So an upload that
a killed process has counted is found there, and released.
"""

from collections.abc import Mapping
from typing import Final

from tollgate.aws.attributes import AttributeValue, Item, number
from tollgate.aws.aws_json import AwsCaller
from tollgate.aws.failures import ConditionFailed
from tollgate.core.errors import AccessError, ErrorCode
from tollgate.core.files.stored import FileCap, FileUsage
from tollgate.stores.aws.decoding import read_number, read_numbers_by_name
from tollgate.stores.aws.expressions import (
    FILE_COMMIT,
    FILE_FREE,
    FILE_RELEASE,
    FILE_RESERVE,
    IF_ABSENT,
    ConditionalUpdate,
)
from tollgate.stores.aws.items import FileUsageItem
from tollgate.stores.aws.tables import file_usage_key, get_item

# Uploads of one workspace at a time: each makes the count's item longer.
UPLOADS_MAX: Final = 256
_ONE: Final = number(1)


class FileUsages:
    """The counts of files and bytes of all workspaces and keys."""

    def __init__(self, client: AwsCaller, table: str) -> None:
        self._client = client
        self._table = table

    async def read(self, workspace_id: str) -> FileUsage:
        """Return the number and size of a workspace's files."""
        item = await get_item(self._client, self._table, file_usage_key(workspace_id, None))
        return FileUsage() if item is None else _read_usage(item)

    async def reserve(self, place: Item, upload: str, size_bytes: int, cap: FileCap) -> Item | None:
        """Count a file that is about to be uploaded; return the count's item if it has no room.

        A retry for the same upload is safe: the upload is counted once.
        """
        values = {
            ":one": _ONE,
            ":x": number(size_bytes),
            ":files": number(cap.files_max),
            ":room": number(cap.bytes_max - size_bytes),
            ":max": number(UPLOADS_MAX),
        }
        while True:
            try:
                await self._update(FILE_RESERVE, place, upload, values)
            except ConditionFailed as failed:
                if failed.item is None:
                    await self._create(place)
                elif upload in read_uploads(failed.item):
                    return None
                else:
                    return failed.item
            else:
                return None

    async def commit(self, place: Item, upload: str, size_bytes: int) -> None:
        """Record that the file's item exists; an upload that was recorded already is ignored."""
        await self._end(FILE_COMMIT, place, upload, {":x": number(size_bytes)})

    async def release(self, place: Item, upload: str, size_bytes: int) -> None:
        """Take an abandoned upload off the count; an upload that has ended is ignored."""
        await self._end(FILE_RELEASE, place, upload, {":one": _ONE, ":x": number(size_bytes)})

    def free(self, place: Item, size_bytes: int) -> object:
        """Return the transaction's action that takes a file off a count."""
        return {
            "Update": {
                "TableName": self._table,
                "Key": place,
                "UpdateExpression": FILE_FREE.update,
                "ConditionExpression": FILE_FREE.condition,
                "ExpressionAttributeValues": {":one": _ONE, ":x": number(size_bytes)},
            }
        }

    async def _end(
        self,
        write: ConditionalUpdate,
        place: Item,
        upload: str,
        values: Mapping[str, AttributeValue],
    ) -> None:
        try:
            await self._update(write, place, upload, values)
        except ConditionFailed:
            return

    async def _update(
        self,
        write: ConditionalUpdate,
        place: Item,
        upload: str,
        values: Mapping[str, AttributeValue],
    ) -> None:
        await self._client.call(
            "UpdateItem",
            {
                "TableName": self._table,
                "Key": place,
                "UpdateExpression": write.update,
                "ConditionExpression": write.condition,
                "ExpressionAttributeNames": {"#h": upload},
                "ExpressionAttributeValues": values,
                "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
            },
        )

    async def _create(self, place: Item) -> None:
        item: Item = {
            **place,
            FileUsageItem.FILES: number(0),
            FileUsageItem.SIZE: number(0),
            FileUsageItem.UPLOADS: {"M": {}},
        }
        try:
            await self._client.call(
                "PutItem",
                {"TableName": self._table, "Item": item, "ConditionExpression": IF_ABSENT},
            )
        except ConditionFailed:
            return


def read_uploads(item: Item) -> dict[str, int]:
    """Return the uploads that a count's item names: bytes by id."""
    return read_numbers_by_name(item, FileUsageItem.UPLOADS)


def no_room(full: Item, cap: FileCap, whose: str, size_bytes: int) -> AccessError:
    """Return the refusal of a file that exceeds a cap."""
    if _read_usage(full).files >= cap.files_max:
        return AccessError(
            ErrorCode.FILE_COUNT_QUOTA_EXCEEDED,
            f"The {whose} has {cap.files_max:,} files, the most it may have; delete some "
            "with DELETE /v1/files/{id}.",
        )
    return AccessError(
        ErrorCode.STORAGE_QUOTA_EXCEEDED,
        f"The {whose} may store {cap.bytes_max:,} bytes of files and has no room for another "
        f"{size_bytes:,}; delete some with DELETE /v1/files/{{id}}.",
    )


def _read_usage(item: Item) -> FileUsage:
    return FileUsage(
        files=read_number(item, FileUsageItem.FILES),
        size_bytes=read_number(item, FileUsageItem.SIZE),
    )
