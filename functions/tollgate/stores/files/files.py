"""Uploaded files. Each file has an item and an object, and is counted until both are deleted."""

import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

from msgspec.structs import replace

from tollgate.aws.attributes import Item, number
from tollgate.aws.aws_json import AwsCaller
from tollgate.aws.failures import (
    StoreError,
    StoreUnavailable,
    TransactionCancelled,
    refusing_when_unavailable,
)
from tollgate.core.clock import Clock
from tollgate.core.errors import RequestError
from tollgate.core.files.stored import (
    FILE_PREFIX,
    FileCaps,
    FileDownload,
    FilePurpose,
    FileUsage,
    NewFile,
    SignedUpload,
    StoredFile,
)
from tollgate.core.ids import IdSource, created_s
from tollgate.core.ownership import WHOLE_WORKSPACE, OwnerScope
from tollgate.core.pages import Page
from tollgate.core.records.audit import Actor
from tollgate.stores.aws.expressions import FILE_DELETING, IF_ABSENT, IF_PRESENT
from tollgate.stores.aws.row_ranges import all_rows
from tollgate.stores.aws.tables import (
    Tables,
    file_key,
    file_partition,
    file_usage_key,
    get_item,
    query_rows,
)
from tollgate.stores.aws.transactions import transact
from tollgate.stores.files.arrivals import LATE_S, Arrivals
from tollgate.stores.files.contents import FileContents
from tollgate.stores.files.rows import (
    ROWS,
    FileChange,
    awaited_object_of,
    bare_id_of,
    encode_file,
    find_file,
    key_of_file,
    object_of,
    objects_of,
    part_object_of,
    read_cursor,
    sort_files,
)
from tollgate.stores.files.usage import FileUsages, RecentSearches, no_room, read_uploads
from tollgate.stores.records.audit_log import AuditWriter
from tollgate.stores.rules.audit_entries import AuditedChange

_log: Final = logging.getLogger(__name__)

# Maximum page size, whatever limit a caller requests.
PAGE_MAX: Final = 1_000
# Maximum number of items that one query reads.
_ROWS_MAX: Final = 500
# Maximum number of expired files that are removed after one query.
_REMOVED_MAX: Final = 10
# Maximum number of awaited files that are checked after one query.
_LOOKS_MAX: Final = 10
# Age at which an upload without an item counts as abandoned; all uploads through the gateway end
# sooner.
_ABANDONED_S: Final = 1_800
# Maximum number of attempts; concurrent deletions in a workspace conflict because they change the
# same count.
_REMOVAL_ATTEMPTS: Final = 8


class DynamoFileStore:
    """Implements `stores.ports.administration.FileStore`."""

    def __init__(
        self,
        client: AwsCaller,
        tables: Tables,
        contents: FileContents,
        caps: FileCaps,
        *,
        ids: IdSource,
        clock: Clock,
    ) -> None:
        self.caps = caps
        self._client = client
        self._table = tables.core
        self._contents = contents
        self._usages = FileUsages(client, tables.core)
        self._arrivals = Arrivals(client, tables.core, contents)
        self._entries = AuditWriter(tables.core, ids=ids, clock=clock)
        self._ids = ids
        self._clock = clock
        self._searches = RecentSearches()

    async def create(self, new: NewFile, content: bytes) -> StoredFile:
        file = self._new(new, len(content))
        write = partial(self._contents.put, object_of(file), content, file.media_type)
        return await self._store(file, write, is_funded=new.is_funded)

    async def create_joined(self, new: NewFile, sources: Sequence[tuple[str, int]]) -> StoredFile:
        """Store a file that consists of other objects, given as keys and sizes."""
        file = self._new(new, sum(size for _, size in sources))
        join, place = self._contents.join, object_of(file)
        write = partial(join, sources, place, file.media_type, observe=lambda _: None)
        return await self._store(file, write, is_funded=new.is_funded)

    async def _store(
        self, file: StoredFile, write: Callable[[], Awaitable[None]], *, is_funded: bool
    ) -> StoredFile:
        with refusing_when_unavailable():
            await self._reserve(file, is_funded=is_funded)
            try:
                await write()
            except StoreError:
                await self._give_up(file)
                raise
            await self._put(file)
        return file

    async def announce(
        self, new: NewFile, size_bytes: int
    ) -> tuple[StoredFile, SignedUpload] | None:
        file = self._new(new, size_bytes)
        with refusing_when_unavailable():
            upload = await self._contents.sign_upload(
                awaited_object_of(file), size_bytes=size_bytes, media_type=new.media_type
            )
            if upload is None:
                return None
            file = replace(file, awaited_until_s=upload.expires_s + LATE_S)
            await self._await(file, is_funded=new.is_funded)
        return file, upload

    async def await_parts(self, new: NewFile, size_bytes: int, until_s: int) -> StoredFile:
        """Reserve room for a file in parts; the file can be found once the parts are joined."""
        file = replace(self._new(new, size_bytes), awaited_until_s=until_s + LATE_S, parts={})
        await self._await(file, is_funded=new.is_funded)
        return file

    async def _await(self, file: StoredFile, *, is_funded: bool) -> None:
        with refusing_when_unavailable():
            await self._reserve(file, is_funded=is_funded)
            await self._put(file)

    def _new(self, new: NewFile, size_bytes: int) -> StoredFile:
        now_s = int(self._clock.now_s())
        return StoredFile(
            id=FILE_PREFIX + self._ids.new_id(),
            workspace_id=new.workspace_id,
            key_id=new.key_id,
            member_id=new.member_id,
            filename=new.filename,
            purpose=new.purpose,
            media_type=new.media_type,
            size_bytes=size_bytes,
            created_s=now_s,
            expires_s=None if new.expires_after_s is None else now_s + new.expires_after_s,
        )

    async def _put(self, file: StoredFile) -> None:
        """Write the item of a file that has been counted.

        If the reply is lost, the item may exist, so the count is kept and corrected later.
        """
        await self._client.call(
            "PutItem",
            {
                "TableName": self._table,
                "Item": encode_file(file),
                "ConditionExpression": IF_ABSENT,
            },
        )
        for count_key in _places(file):
            await self._usages.commit(count_key, bare_id_of(file), file.size_bytes)

    async def get(self, workspace_id: str, file_id: str) -> StoredFile | None:
        with refusing_when_unavailable():
            file = await find_file(
                self._client, self._table, workspace_id, file_id, now_s=self._clock.now_s()
            )
            if file is None or file.awaited_until_s is None:
                return file
            return await self._check(file)

    async def _arrived(self, files: Iterable[StoredFile]) -> list[StoredFile]:
        """Return the files whose content has arrived, checking only a few of the awaited files."""
        arrived_files, looks = list[StoredFile](), 0
        for file in files:
            if file.awaited_until_s is None:
                arrived_files.append(file)
            elif file.parts is None and looks < _LOOKS_MAX:
                looks += 1
                with suppress(RequestError):
                    arrived = await self._check(file)
                    arrived_files += [arrived] if arrived else []
        return arrived_files

    async def _check(self, file: StoredFile) -> StoredFile | None:
        """Return a file if its content has arrived; delete it if the content is wrong."""
        try:
            return await self._arrivals.check(file)
        except RequestError:
            await self.remove_quietly(file)
            raise

    async def page(
        self,
        workspace_id: str,
        *,
        limit: int,
        after: str | None = None,
        purpose: FilePurpose | None = None,
        reach: OwnerScope = WHOLE_WORKSPACE,
        oldest_first: bool = False,
    ) -> Page[StoredFile]:
        limit = min(limit, PAGE_MAX)
        start = None if after is None else file_key(workspace_id, read_cursor(after))
        page_files: list[StoredFile] = []
        corrupt: list[str] = []
        with refusing_when_unavailable():
            while len(page_files) <= limit:
                rows, start = await query_rows(
                    self._client,
                    self._table,
                    file_partition(workspace_id),
                    ROWS,
                    after=start,
                    limit=_ROWS_MAX,
                    backwards=not oldest_first,
                )
                files, removable, names = sort_files(rows, self._clock.now_s())
                page_files += await self._arrived(
                    stored
                    for stored in files
                    if purpose in (None, stored.purpose) and reach.has(stored.member_id)
                )
                corrupt += names
                for file in removable[:_REMOVED_MAX]:
                    await self.remove_quietly(file)
                if start is None:
                    break
        more = len(page_files) > limit
        page = tuple(page_files[:limit])
        return Page(found=page, next=page[-1].id if more else None, unreadable=tuple(corrupt))

    async def delete(self, workspace_id: str, file_id: str, *, by: Actor) -> bool:
        """Delete a file and its content; return False if it does not exist.

        One transaction marks the file as deleted and writes the audit log entry; from then on, the
        file cannot be found.
        """
        file = await self.get(workspace_id, file_id)
        if file is None:
            return False
        change = AuditedChange(
            action="file.delete",
            target=file.id,
            workspace_id=workspace_id,
            before=FileChange(
                filename=file.filename, purpose=file.purpose, size_bytes=file.size_bytes
            ),
        )
        now = {":now": number(int(self._clock.now_s()))}
        mark = {"Update": FILE_DELETING.build(self._table, key_of_file(file), now)}
        with refusing_when_unavailable():
            try:
                await transact(self._client, self._ids, [mark, *self._entries.puts(change, by)])
            except TransactionCancelled:
                return False
        await self.remove_quietly(file)
        return True

    async def download(self, file: StoredFile) -> FileDownload | None:
        with refusing_when_unavailable():
            return await self._contents.download(
                object_of(file), filename=file.filename, media_type=file.media_type
            )

    async def read_range(self, file: StoredFile, start: int, length: int) -> bytes:
        """Return a range of a file's content."""
        with refusing_when_unavailable():
            return await self._contents.get_range(object_of(file), start, length)

    async def usage(self, workspace_id: str) -> FileUsage:
        with refusing_when_unavailable():
            return await self._usages.read(workspace_id)

    async def aclose(self) -> None:
        """Close the connections to the contents."""
        await self._contents.close()

    async def _reserve(self, file: StoredFile, *, is_funded: bool) -> None:
        """Count a file that is about to be uploaded, for its key and its workspace."""
        counted: list[Item] = []
        caps = (self.caps.key, self.caps.of_workspace(is_funded=is_funded))
        names = ("key", "workspace" if is_funded else "workspace without credit")
        for count_key, cap, whose in zip(_places(file), caps, names, strict=True):
            full = await self._usages.reserve(count_key, bare_id_of(file), file.size_bytes, cap)
            if full is not None and await self._reclaim(file.workspace_id, count_key, full):
                full = await self._usages.reserve(count_key, bare_id_of(file), file.size_bytes, cap)
            if full is not None:
                for counted_place in counted:
                    await self._usages.release(counted_place, bare_id_of(file), file.size_bytes)
                raise no_room(full, cap, whose, file.size_bytes)
            counted.append(count_key)

    async def _give_up(self, file: StoredFile) -> None:
        """Undo a failed upload; if the count cannot be corrected now, `_reclaim` does it later."""
        try:
            await self._contents.delete(object_of(file))
            for count_key in _places(file):
                await self._usages.release(count_key, bare_id_of(file), file.size_bytes)
        except StoreError as failed:
            _log.warning("the failed upload of %s is still counted: %s", file.id, failed)

    async def _reclaim(self, workspace_id: str, full_key: Item, full: Item) -> bool:
        """Release abandoned uploads and remove expired files; return True if that made room."""
        now_s = self._clock.now_s()
        freed = False
        for upload, size_bytes in read_uploads(full).items():
            if created_s(upload) + _ABANDONED_S > now_s:
                continue
            key = file_key(workspace_id, upload)
            is_missing = await get_item(self._client, self._table, key) is None
            if is_missing:
                await self._contents.delete_all(objects_of(workspace_id, upload))
            end = self._usages.release if is_missing else self._usages.commit
            # An upload that a key's count includes is also in the workspace's count, which does not
            # name the key. The key's count is therefore reclaimed only when it is full itself.
            for count_key in (full_key, file_usage_key(workspace_id, None)):
                await end(count_key, upload, size_bytes)
            freed |= is_missing
        if not self._searches.begin(workspace_id, now_s):
            return freed
        partition = file_partition(workspace_id)
        rows = await all_rows(self._client, self._table, partition, ROWS)
        _, removable, _ = sort_files(rows, now_s)
        for file in removable:
            freed |= await self.remove_quietly(file)
        return freed

    async def remove_quietly(self, file: StoredFile) -> bool:
        """Remove a deleted or expired file; return False if that fails and will be
        retried later.
        """
        try:
            await self._remove(file)
        except StoreError as failed:
            _log.warning("the file %s cannot be removed now: %s", file.id, failed)
            return False
        return True

    async def _remove(self, file: StoredFile) -> None:
        """Delete the content, then the item, and subtract the file from the counts."""
        if file.parts:
            await self._contents.delete_all([part_object_of(file, part) for part in file.parts])
        elif file.awaited_until_s is not None:
            await self._contents.seal(awaited_object_of(file))
        await self._contents.delete(object_of(file))
        item = {
            "Delete": {
                "TableName": self._table,
                "Key": key_of_file(file),
                "ConditionExpression": IF_PRESENT,
            }
        }
        freed = [self._usages.free(count_key, file.size_bytes) for count_key in _places(file)]
        try:
            await self._client.call(
                "TransactWriteItems",
                {"ClientRequestToken": self._ids.new_id(), "TransactItems": [item, *freed]},
                attempts_max=_REMOVAL_ATTEMPTS,
            )
        except TransactionCancelled as cancelled:
            if cancelled.reasons[0].code != "ConditionalCheckFailed":
                raise StoreUnavailable(str(cancelled), maybe_applied=False) from cancelled


def _places(file: StoredFile) -> tuple[Item, Item]:
    """Return the keys of the two counts that include a file: that of its API key and that of its
    workspace.
    """
    return (
        file_usage_key(file.workspace_id, file.key_id),
        file_usage_key(file.workspace_id, None),
    )
