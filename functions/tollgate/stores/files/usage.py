"""Counts the files and bytes stored by each workspace and each of its keys, and enforces caps on
these counts.

A file is counted before its upload, in one conditional write, so concurrent uploads cannot exceed a
cap. Until the file's item is written, the upload is listed in the count's item. If the process is
killed before that, the listed upload is found later and subtracted.
"""

from collections import OrderedDict
from typing import Final

from tollgate.aws.attributes import Item, number
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
from tollgate.stores.aws.tables import file_usage_key, get_item, try_update

# Maximum number of concurrent uploads per count, because each upload makes the count's item larger.
UPLOADS_MAX: Final = 256
_ONE: Final = number(1)
# Maximum number of searches to remember; a workspace that was forgotten is searched again.
SEARCHED_MAX: Final = 1_000
# Minimum interval between two searches of a workspace that has reached its cap.
_SEARCH_EVERY_S: Final = 60


class FileUsages:
    """File and byte counts, one for each workspace and each key."""

    def __init__(self, client: AwsCaller, table: str) -> None:
        self._client = client
        self._table = table

    async def read(self, workspace_id: str) -> FileUsage:
        """Return the number and size of a workspace's files."""
        item = await get_item(self._client, self._table, file_usage_key(workspace_id, None))
        return FileUsage() if item is None else _read_usage(item)

    async def reserve(
        self, count_key: Item, upload: str, size_bytes: int, cap: FileCap
    ) -> Item | None:
        """Count a file before its upload; return the count's item if the cap is reached.

        A retry for the same upload is safe, because the upload is counted only once.
        """
        values = {
            ":one": _ONE,
            ":x": number(size_bytes),
            ":files": number(cap.files_max),
            ":room": number(cap.bytes_max - size_bytes),
            ":max": number(UPLOADS_MAX),
        }
        while True:
            parameters = FILE_RESERVE.build(self._table, count_key, values, {"#h": upload})
            parameters["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
            try:
                await self._client.call("UpdateItem", parameters)
            except ConditionFailed as failed:
                if failed.item is None:
                    await self._create(count_key)
                elif upload in read_uploads(failed.item):
                    return None
                else:
                    return failed.item
            else:
                return None

    async def commit(self, count_key: Item, upload: str, size_bytes: int) -> None:
        """Record that the file's item exists; ignore an upload that has already been recorded."""
        await self._end(FILE_COMMIT, count_key, upload, {":x": number(size_bytes)})

    async def release(self, count_key: Item, upload: str, size_bytes: int) -> None:
        """Subtract an abandoned upload from a count; ignore an upload that has ended."""
        await self._end(FILE_RELEASE, count_key, upload, {":one": _ONE, ":x": number(size_bytes)})

    def free(self, count_key: Item, size_bytes: int) -> object:
        """Return the transaction action that subtracts a deleted file from a count."""
        values = {":one": _ONE, ":x": number(size_bytes)}
        return {"Update": FILE_FREE.build(self._table, count_key, values)}

    async def _end(
        self, write: ConditionalUpdate, count_key: Item, upload: str, values: Item
    ) -> None:
        await try_update(self._client, write.build(self._table, count_key, values, {"#h": upload}))

    async def _create(self, count_key: Item) -> None:
        item: Item = {
            **count_key,
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


class RecentSearches:
    """The times of the last searches for expired files, keyed by workspace; the latest
    comes last.
    """

    def __init__(self) -> None:
        self._searched_s: OrderedDict[str, float] = OrderedDict()

    def __len__(self) -> int:
        return len(self._searched_s)

    def begin(self, workspace_id: str, now_s: float) -> bool:
        """Return True if a search is due, and record that it is starting."""
        if self._searched_s.get(workspace_id, 0.0) + _SEARCH_EVERY_S > now_s:
            return False
        self._searched_s[workspace_id] = now_s
        self._searched_s.move_to_end(workspace_id)
        if len(self._searched_s) > SEARCHED_MAX:
            self._searched_s.popitem(last=False)
        return True


def read_uploads(item: Item) -> dict[str, int]:
    """Return the sizes in bytes of the uploads that a count's item lists, by upload id."""
    return read_numbers_by_name(item, FileUsageItem.UPLOADS)


def no_room(full: Item, cap: FileCap, whose: str, size_bytes: int) -> AccessError:
    """Return the error for a file that would exceed a cap."""
    if _read_usage(full).files >= cap.files_max:
        return AccessError(
            ErrorCode.FILE_COUNT_QUOTA_EXCEEDED,
            f"The {whose} has the maximum number of {cap.files_max:,} files; delete some "
            "with DELETE /v1/files/{id}.",
        )
    return AccessError(
        ErrorCode.STORAGE_QUOTA_EXCEEDED,
        f"The {whose} may store {cap.bytes_max:,} bytes of files, which this file of "
        f"{size_bytes:,} bytes would exceed; delete some files with DELETE /v1/files/{{id}}.",
    )


def _read_usage(item: Item) -> FileUsage:
    return FileUsage(
        files=read_number(item, FileUsageItem.FILES),
        size_bytes=read_number(item, FileUsageItem.SIZE),
    )
