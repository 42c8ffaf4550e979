"""Keeps what a legal hold covers from expiring, until the hold is released.

A record on hold loses its time to live. Contents, responses and files that expire are copied below
`held/`, which no rule of the bucket empties.
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
    """Preserves the subjects on hold, round by round."""

    def __init__(
        self,
        client: AwsCaller,
        tables: Tables,
        standing: DynamoSubjectStore,
        records: StoredRecords,
        *,
        objects: ObjectStore | None,
        retention_s: int,
        clock: Clock,
    ) -> None:
        self._client = client
        self._table = tables.core
        self._standing = standing
        self._records = records
        self._objects = objects
        self._retention_s = retention_s
        self._clock = clock

    async def run(self, workspace_id: str) -> SubjectReport:
        """Preserve what the holds of a workspace cover, and let go what no hold covers any more."""
        report = SubjectReport()
        holds = await self._standing.all_holds(workspace_id)
        active = tuple(held for held in holds if held.released_s is None)
        for held in holds:
            if held.released_s is None:
                report += await self._preserve(held)
            else:
                await self._let_go(held, active)
                report += SubjectReport(released=1)
        return report

    async def _preserve(self, held: LegalHold) -> SubjectReport:
        began_s, report = int(self._clock.now_s()), SubjectReport()
        # Earlier rounds have read all days up to an hour before they began.
        since_s = None if held.preserved_s is None else held.preserved_s - WRITTEN_AFTER_S
        async for page in self._records.pages(held.subject, since_s=since_s):
            for record in page.found:
                await self._records.put(record, expires=False)
                copies = [await self._copy(held, name) for name in self._records.names(record)]
                report += SubjectReport(preserved=1, copied=sum(copies))
        report += SubjectReport(copied=await self._copy_files(held))
        await self._standing.note_preserved(held, began_s)
        return report

    async def _copy_files(self, held: LegalHold) -> int:
        """Copy the files that expire; no caller may delete the others during the hold."""
        copied, after = 0, None
        while True:
            with refusing_when_unavailable():
                rows, after = await query_rows(
                    self._client,
                    self._table,
                    file_partition(held.subject.workspace_id),
                    ROWS,
                    after=after,
                    limit=_ROWS_AT_ONCE,
                )
            files, _ = decode_items(decode_file, rows)
            for file in files:
                if held.subject.has_member(file.member_id) and file.expires_s is not None:
                    copied += await self._copy(held, object_of(file))
            if after is None:
                return copied

    async def _copy(self, held: LegalHold, name: str) -> bool:
        """Copy an object below the hold's folder, once; return True if it is copied now."""
        if self._objects is None:
            return False
        with refusing_when_unavailable():
            found = await self._objects.get_head(name, 1)
            to = f"{_folder(held)}{name}"
            if found is None or await self._objects.get_head(to, 1) is not None:
                return False
            return await self._objects.copy(name, to, _MEDIA_TYPE, etag=found.etag)

    async def _let_go(self, held: LegalHold, active: tuple[LegalHold, ...]) -> None:
        """Give records their time to live again unless another hold covers them; delete copies."""
        since_s = held.placed_s - self._retention_s - DAY_S
        async for page in self._records.pages(held.subject, since_s=since_s):
            for record in page.found:
                if not is_held(record, active):
                    await self._records.put(record, expires=True)
        if self._objects is not None:
            with refusing_when_unavailable():
                await delete_below(self._objects, _folder(held))
        await self._standing.forget_hold(held)


def _folder(held: LegalHold) -> str:
    return f"held/{workspace_folder(held.subject.workspace_id)}/{held.subject.place}/"
