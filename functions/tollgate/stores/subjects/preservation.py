"""Keeps data on legal hold from expiring until the hold is released.

Records on hold lose their time to live. Expiring contents, responses and files are copied to the
prefix `held/`, which the bucket's expiration rules leave alone.
"""

from typing import Final

from tollgate.aws.aws_json import AwsCaller
from tollgate.aws.failures import refusing_when_unavailable
from tollgate.aws.objects import ObjectStore
from tollgate.core.clock import DAY_S, Clock
from tollgate.core.records.subjects import WRITTEN_AFTER_S, LegalHold, is_held
from tollgate.stores.aws.decoding import decode_items
from tollgate.stores.aws.tables import Tables, file_partition, query_rows
from tollgate.stores.files.rows import ROWS, decode_file, object_of
from tollgate.stores.rules.object_names import workspace_folder
from tollgate.stores.rules.reports import SubjectReport
from tollgate.stores.subjects.standing import DynamoSubjectStore
from tollgate.stores.subjects.stored import StoredRecords, delete_below

_ROWS_AT_ONCE: Final = 250
_MEDIA_TYPE: Final = "application/octet-stream"


class Preservation:
    """Preserves the data of subjects on legal hold, in rounds."""

    def __init__(
        self,
        client: AwsCaller,
        tables: Tables,
        store: DynamoSubjectStore,
        records: StoredRecords,
        *,
        objects: ObjectStore | None,
        retention_s: int,
        clock: Clock,
    ) -> None:
        self._client = client
        self._table = tables.core
        self._store = store
        self._records = records
        self._objects = objects
        self._retention_s = retention_s
        self._clock = clock

    async def run(self, workspace_id: str) -> SubjectReport:
        """Preserve data on hold in a workspace, and restore the expiry for released holds."""
        report = SubjectReport()
        holds = await self._store.all_holds(workspace_id)
        active = tuple(hold for hold in holds if hold.released_s is None)
        for hold in holds:
            if hold.released_s is None:
                report += await self._preserve(hold)
            else:
                await self._let_go(hold, active)
                report += SubjectReport(released=1)
        return report

    async def _preserve(self, hold: LegalHold) -> SubjectReport:
        began_s, report = int(self._clock.now_s()), SubjectReport()
        # The last round covered all records up to an hour before it began.
        since_s = None if hold.preserved_s is None else hold.preserved_s - WRITTEN_AFTER_S
        async for page in self._records.pages(hold.subject, since_s=since_s):
            for record in page.found:
                await self._records.put(record, expires=False)
                copies = [await self._copy(hold, name) for name in self._records.names(record)]
                report += SubjectReport(preserved=1, copied=sum(copies))
        report += SubjectReport(copied=await self._copy_files(hold))
        await self._store.note_preserved(hold, began_s)
        return report

    async def _copy_files(self, hold: LegalHold) -> int:
        """Copy the files that expire. The others need no copy, because callers cannot
        delete them.
        """
        copied, after = 0, None
        while True:
            with refusing_when_unavailable():
                rows, after = await query_rows(
                    self._client,
                    self._table,
                    file_partition(hold.subject.workspace_id),
                    ROWS,
                    after=after,
                    limit=_ROWS_AT_ONCE,
                )
            files, _ = decode_items(decode_file, rows)
            for file in files:
                if hold.subject.has_member(file.member_id) and file.expires_s is not None:
                    copied += await self._copy(hold, object_of(file))
            if after is None:
                return copied

    async def _copy(self, hold: LegalHold, name: str) -> bool:
        """Copy an object to the hold's folder, unless a copy exists; return True for a new copy."""
        if self._objects is None:
            return False
        with refusing_when_unavailable():
            head = await self._objects.get_head(name, 1)
            to = f"{_folder(hold)}{name}"
            if head is None or await self._objects.get_head(to, 1) is not None:
                return False
            return await self._objects.copy(name, to, _MEDIA_TYPE, etag=head.etag)

    async def _let_go(self, hold: LegalHold, active: tuple[LegalHold, ...]) -> None:
        """Delete the copies, and restore the expiry of records that no other hold covers."""
        since_s = hold.placed_s - self._retention_s - DAY_S
        async for page in self._records.pages(hold.subject, since_s=since_s):
            for record in page.found:
                if not is_held(record, active):
                    await self._records.put(record, expires=True)
        if self._objects is not None:
            with refusing_when_unavailable():
                await delete_below(self._objects, _folder(hold))
        await self._store.forget_hold(hold)


def _folder(hold: LegalHold) -> str:
    return f"held/{workspace_folder(hold.subject.workspace_id)}/{hold.subject.place}/"
