"""Erases the keys, sessions, files, members and webhooks of a subject."""

from collections import Counter
from collections.abc import AsyncIterator
from typing import Final

from msgspec.structs import replace

from tollgate.aws.attributes import Item, number
from tollgate.aws.aws_json import AwsCaller
from tollgate.aws.failures import StoreUnavailable, refusing_when_unavailable
from tollgate.core.clock import Clock
from tollgate.core.records.audit import Actor
from tollgate.core.records.subjects import PrivacySubject
from tollgate.stores.aws.decoding import decode_items
from tollgate.stores.aws.expressions import MEMBER_FORGET
from tollgate.stores.aws.items import AnyItem, MemberItem
from tollgate.stores.aws.tables import (
    Tables,
    file_partition,
    level_rows_prefix,
    query_rows,
    sign_ins_prefix,
    try_update,
    webhook_partition,
    workspace_partition,
)
from tollgate.stores.files.files import DynamoFileStore
from tollgate.stores.files.rows import ROWS, decode_file
from tollgate.stores.keys.administration import DynamoKeyStore
from tollgate.stores.people.level_items import (
    encode_level_settings,
    id_of_row,
    is_tombstone,
    read_member_settings,
)
from tollgate.stores.subjects.standing import DynamoSubjectStore

# Number of items in a page.
_PAGE: Final = 250
_ERASER: Final = Actor(kind="process", id="erasure")


class PeopleErasure:
    """Erases everything that belongs to a member or a workspace, except for records and their
    contents.

    The books refer to keys and members, so their tombstones stay, without people's names.
    """

    def __init__(
        self,
        client: AwsCaller,
        tables: Tables,
        store: DynamoSubjectStore,
        keys: DynamoKeyStore,
        *,
        files: DynamoFileStore | None,
        clock: Clock,
    ) -> None:
        self._client = client
        self._table = tables.core
        self._store = store
        self._keys = keys
        self._files = files
        self._clock = clock

    async def erase(
        self, subject: PrivacySubject, waiting: Counter[str]
    ) -> AsyncIterator[tuple[str, int]]:
        """Delete one class of items after another; yield each class with its number of items.

        Items that cannot be erased yet are added to `waiting`.
        """
        yield "keys", await self._delete_keys(subject, waiting)
        partition = workspace_partition(subject.workspace_id)
        yield "sessions", await self._delete_rows(partition, _sessions(subject))
        if self._files is not None:
            yield "files", await self._delete_files(self._files, subject, waiting)
        yield "members", await self._forget_members(subject)
        if subject.kind == "workspace":
            partition = webhook_partition(subject.workspace_id)
            # Endpoints, pending deliveries and ended deliveries.
            for prefix in ("E#", "P#", "D#"):
                yield "webhooks", await self._delete_rows(partition, prefix)

    async def _delete_keys(self, subject: PrivacySubject, waiting: Counter[str]) -> int:
        deleted, after = 0, None
        while True:
            page = await self._keys.list(subject.workspace_id, after=after)
            for key in page.found:
                if not subject.has_member(key.member_id):
                    continue
                if await self._keys.delete(subject.workspace_id, key.id, by=_ERASER) is False:
                    waiting["keys with running requests"] += 1
                else:
                    deleted += 1
            after = page.next
            if after is None:
                return deleted

    async def _delete_files(
        self, files: DynamoFileStore, subject: PrivacySubject, waiting: Counter[str]
    ) -> int:
        """Delete files and pending uploads, without audit entries, which would name the files."""
        deleted = 0
        async for rows in self._rows(file_partition(subject.workspace_id), ROWS):
            await self._store.check(subject)
            decoded, corrupt = decode_items(decode_file, rows)
            waiting.update({"corrupt files": len(corrupt)} if corrupt else {})
            for file in decoded:
                if not subject.has_member(file.member_id):
                    continue
                if await files.remove_quietly(file):
                    deleted += 1
                else:
                    waiting["files"] += 1
        return deleted

    async def _forget_members(self, subject: PrivacySubject) -> int:
        """Remove names, addresses and identities from members, and make them tombstones."""
        forgotten = 0
        prefix = level_rows_prefix("member")
        async for rows in self._rows(workspace_partition(subject.workspace_id), prefix):
            for row in rows:
                if not subject.has_member(id_of_row(row)):
                    continue
                old = read_member_settings(row)
                new = replace(old, display_name=None, email=None)
                if new == old and is_tombstone(row) and MemberItem.SUBJECT not in row:
                    continue
                values: Item = {
                    ":cfg": encode_level_settings(new),
                    ":now": number(int(self._clock.now_s())),
                    ":rev": row[MemberItem.REVISION],
                }
                write = MEMBER_FORGET.build(self._table, _key_of(row), values)
                with refusing_when_unavailable():
                    if not await try_update(self._client, write):
                        raise StoreUnavailable("a member keeps changing", maybe_applied=False)
                forgotten += 1
        return forgotten

    async def _delete_rows(self, partition: str, prefix: str) -> int:
        deleted = 0
        async for rows in self._rows(partition, prefix):
            for row in rows:
                with refusing_when_unavailable():
                    await self._client.call(
                        "DeleteItem", {"TableName": self._table, "Key": _key_of(row)}
                    )
                deleted += 1
        return deleted

    async def _rows(self, partition: str, prefix: str) -> AsyncIterator[list[Item]]:
        """Yield the pages of a partition's items."""
        after: Item | None = None
        while True:
            with refusing_when_unavailable():
                rows, after = await query_rows(
                    self._client, self._table, partition, prefix, after=after, limit=_PAGE
                )
            yield rows
            if after is None:
                return


def _key_of(row: Item) -> Item:
    return {name: row[name] for name in (AnyItem.PARTITION, AnyItem.SORT)}


def _sessions(subject: PrivacySubject) -> str:
    """Return the prefix of a member's sessions, or of all sessions of a workspace."""
    return sign_ins_prefix(subject.id) if subject.kind == "member" else "S#"
