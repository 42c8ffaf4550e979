"""Erases subjects in rounds, which can be repeated after an interruption and can overlap."""

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
from tollgate.stores.records.answer_cache import cached_folder
from tollgate.stores.records.kept_answers import answers_folder
from tollgate.stores.rules.reports import SubjectReport
from tollgate.stores.subjects.jobs import JobErasure
from tollgate.stores.subjects.people import PeopleErasure
from tollgate.stores.subjects.standing import DynamoSubjectStore
from tollgate.stores.subjects.stored import StoredRecords, delete_below, without_person

_log: Final = logging.getLogger(__name__)


class ErasureRounds:
    """Carries out the requested erasures.

    Each round deletes everything that it finds. Calls that were running when the erasure was
    requested may write data up to an hour later, so only a round that begins after that hour
    finishes the erasure.
    """

    def __init__(
        self,
        store: DynamoSubjectStore,
        records: StoredRecords,
        people: PeopleErasure,
        objects: ObjectStore | None,
        *,
        jobs: JobErasure | None,
        clock: Clock,
    ) -> None:
        self._store = store
        self._records = records
        self._people = people
        self._objects = objects
        self._jobs = jobs
        self._clock = clock

    async def run(self, workspace_id: str) -> SubjectReport:
        """Carry out the open erasures of a workspace; an erasure that fails stays open."""
        report = SubjectReport()
        for erasure in await self._store.open_erasures(workspace_id):
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
        await self._store.check(subject)
        waiting: Counter[str] = Counter()
        days = set(erasure.days)
        erased = Counter(erasure.erased)
        async for name, count in self._erase(erasure, waiting, days):
            erased[name] += count
            # Progress is stored after each class, so that an interrupted round does not lose the
            # counts.
            new = replace(erasure, erased=dict(erased), days=tuple(sorted(days)))
            await self._store.note_progress(erasure, new)
            erasure = new
        new = replace(erasure, waiting=tuple(f"{name}: {waiting[name]}" for name in waiting))
        if not waiting and began_s >= erasure.until_s + WRITTEN_AFTER_S:
            new = new.end(int(self._clock.now_s()))
        await self._store.note_progress(erasure, new)
        done = new.finished_s is not None
        return SubjectReport(finished=int(done), open=int(not done))

    async def _erase(
        self, erasure: Erasure, waiting: Counter[str], days: set[str]
    ) -> AsyncIterator[tuple[str, int]]:
        """Delete one class of items after another; yield each class with its number of items.

        Holds are read again for each page. Raise AccessError once a hold covers the subject.
        """
        subject = erasure.subject
        if subject.kind != "user":
            async for name, count in self._people.erase(subject, waiting):
                yield name, count
        if self._jobs is not None:
            yield "jobs", await self._jobs.erase(erasure, waiting)
        if self._objects is not None:
            # Answers are found through their records, so they are deleted before the records.
            with refusing_when_unavailable():
                yield "answers", await self._erase_answers(self._objects, erasure)
        yield "records", await self._erase_records(erasure, waiting, days)
        if subject.kind == "workspace" and self._objects is not None:
            with refusing_when_unavailable():
                for folder in self._records.folders(subject.workspace_id):
                    await self._store.check(subject)
                    yield "contents", await delete_below(self._objects, folder)

    async def _erase_answers(self, objects: ObjectStore, erasure: Erasure) -> int:
        """Delete a subject's answers, and all cached answers of its workspace."""
        subject, erased = erasure.subject, 0
        folder, cached = answers_folder(subject.workspace_id), cached_folder(subject.workspace_id)
        if subject.kind == "workspace":
            await self._store.check(subject)
            return await delete_below(objects, folder)
        async for group in objects.list(folder):
            holds = await self._store.check(subject)
            for answer in group:
                # Cached answers may be lost, and their names do not tell whose they are.
                if answer.key.startswith(cached):
                    await objects.delete(answer.key)
                    erased += 1
                    continue
                generation_id = answer.key.rpartition("/")[2]
                record = await self._records.get(subject.workspace_id, generation_id)
                if record is None or not subject.has_record(record) or is_held(record, holds):
                    continue
                await objects.delete(answer.key)
                erased += 1
        return erased

    async def _erase_records(self, erasure: Erasure, waiting: Counter[str], days: set[str]) -> int:
        """Delete contents and responses, and remove the person from records, page by page."""
        erased, now_s = 0, self._clock.now_s()
        pages = self._records.pages(erasure.subject, until_s=erasure.until_s)
        async for page in pages:
            holds = await self._store.check(erasure.subject)
            waiting.update({"corrupt records": len(page.unreadable)} if page.unreadable else {})
            for record in page.found:
                if is_held(record, holds):
                    waiting["records on legal hold"] += 1
                    continue
                await self._records.delete_content(record)
                bare = without_person(record)
                # Contents and answers that are still to be written are found through the record,
                # so a young record keeps the person until a later round.
                if bare == record or record.created_s + WRITTEN_AFTER_S > now_s:
                    continue
                await self._records.put(bare, expires=True)
                days.add(page.day)
                erased += 1
        return erased
