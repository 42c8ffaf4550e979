"""Erases subjects in rounds, which continue after an interruption and may run at the same time."""

import logging
from collections import Counter
from collections.abc import AsyncIterator
from typing import Final

from msgspec.structs import replace

from tollgate.aws.failures import refusing_when_unavailable
from tollgate.aws.objects import ObjectStore
from tollgate.core.clock import Clock
from tollgate.core.errors import AccessError, GatewayError
from tollgate.core.records.subjects import (
    WRITTEN_AFTER_S,
    Erasure,
    is_held,
)
from tollgate.stores.records.kept_answers import answers_folder
from tollgate.stores.rules.reports import SubjectReport
from tollgate.stores.subjects.people import PeopleErasure
from tollgate.stores.subjects.standing import DynamoSubjectStore
from tollgate.stores.subjects.stored import StoredRecords, delete_below, without_person

_log: Final = logging.getLogger(__name__)


class ErasureRounds:
    """Carries out the requested erasures.

    Each round deletes what it finds. A round that begins an hour after the request finds what
    requests of that time have written late, and ends the erasure.
    """

    def __init__(
        self,
        standing: DynamoSubjectStore,
        records: StoredRecords,
        people: PeopleErasure,
        objects: ObjectStore | None,
        *,
        clock: Clock,
    ) -> None:
        self._standing = standing
        self._records = records
        self._people = people
        self._objects = objects
        self._clock = clock

    async def run(self, workspace_id: str) -> SubjectReport:
        """Carry out the open erasures of a workspace; a failed one stays open."""
        report = SubjectReport()
        for erasure in await self._standing.open_erasures(workspace_id):
            try:
                report += await self._continue(erasure)
            except AccessError:
                report += SubjectReport(held=1)
            except GatewayError as failed:
                _log.warning("the erasure %s failed: %s", erasure.subject.place, failed.message)
                report += SubjectReport(failed=1)
        return report

    async def _continue(self, erasure: Erasure) -> SubjectReport:
        began_s = int(self._clock.now_s())
        subject = erasure.subject
        await self._standing.check(subject)
        waiting: Counter[str] = Counter()
        days = set(erasure.days)
        erased = Counter(erasure.erased)
        async for name, count in self._erase(erasure, waiting, days):
            erased[name] += count
            # An interrupted round has stored the counts of its finished classes.
            new = replace(erasure, erased=dict(erased), days=tuple(sorted(days)))
            await self._standing.note_progress(erasure, new)
            erasure = new
        new = replace(erasure, waiting=tuple(f"{name}: {waiting[name]}" for name in waiting))
        if not waiting and began_s >= erasure.until_s + WRITTEN_AFTER_S:
            new = new.end(int(self._clock.now_s()))
        await self._standing.note_progress(erasure, new)
        done = new.finished_s is not None
        return SubjectReport(finished=int(done), open=int(not done))

    async def _erase(
        self, erasure: Erasure, waiting: Counter[str], days: set[str]
    ) -> AsyncIterator[tuple[str, int]]:
        """Delete one class after the other; yield the name of each with the number of items.

        Raise AccessError once a legal hold covers the subject: holds are read again for each page.
        """
        subject = erasure.subject
        if subject.kind != "user":
            async for name, count in self._people.erase(subject, waiting):
                yield name, count
        if self._objects is not None:
            # Answers are found by their records, so they go first.
            with refusing_when_unavailable():
                yield "answers", await self._erase_answers(self._objects, erasure)
        yield "records", await self._erase_records(erasure, waiting, days)
        if subject.kind == "workspace" and self._objects is not None:
            with refusing_when_unavailable():
                for folder in self._records.folders(subject.workspace_id):
                    await self._standing.check(subject)
                    yield "contents", await delete_below(self._objects, folder)

    async def _erase_answers(self, objects: ObjectStore, erasure: Erasure) -> int:
        """Delete the stored answers of a subject's requests, one group in memory at a time."""
        subject, erased = erasure.subject, 0
        folder = answers_folder(subject.workspace_id)
        if subject.kind == "workspace":
            await self._standing.check(subject)
            return await delete_below(objects, folder)
        async for group in objects.list(folder):
            holds = await self._standing.check(subject)
            for found in group:
                record = await self._records.get(subject.workspace_id, found.key.rpartition("/")[2])
                if record is None or not subject.has_record(record) or is_held(record, holds):
                    continue
                await objects.delete(found.key)
                erased += 1
        return erased

    async def _erase_records(self, erasure: Erasure, waiting: Counter[str], days: set[str]) -> int:
        """Delete contents and responses, and remove the person from the records, page by page."""
        erased, now_s = 0, self._clock.now_s()
        pages = self._records.pages(erasure.subject, until_s=erasure.until_s)
        async for page in pages:
            holds = await self._standing.check(erasure.subject)
            waiting.update({"corrupt records": len(page.unreadable)} if page.unreadable else {})
            for record in page.found:
                if is_held(record, holds):
                    waiting["records on legal hold"] += 1
                    continue
                await self._records.delete_content(record)
                bare = without_person(record)
                # A late content or answer is found by its record, so young records change later.
                if bare == record or record.created_s + WRITTEN_AFTER_S > now_s:
                    continue
                await self._records.put(bare, expires=True)
                days.add(page.day)
                erased += 1
        return erased
