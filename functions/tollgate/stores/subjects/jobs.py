"""Erases the batches, background responses and videos of a subject."""

from collections import Counter
from collections.abc import AsyncIterator
from typing import Final

from tollgate.aws.attributes import Item
from tollgate.aws.aws_json import AwsCaller
from tollgate.aws.failures import refusing_when_unavailable
from tollgate.aws.objects import ObjectStore
from tollgate.core.background import BackgroundResponse
from tollgate.core.batches import Batch
from tollgate.core.clock import Clock
from tollgate.core.ids import IdSource, created_s
from tollgate.core.records.subjects import Erasure
from tollgate.core.videos import Video
from tollgate.stores.aws.decoding import decode_items
from tollgate.stores.aws.tables import Tables, query_rows
from tollgate.stores.batches.background import BACKGROUND, StoredBackgroundParts
from tollgate.stores.batches.jobs import BATCHES, DynamoJobStore, JobKind
from tollgate.stores.batches.keys import batch_partition
from tollgate.stores.batches.videos import VIDEO_JOBS, StoredVideoRequests
from tollgate.stores.files.files import DynamoFileStore
from tollgate.stores.ports.batches import AnyJob, BatchPlace
from tollgate.stores.records.contents import ObjectContentLog
from tollgate.stores.rules.object_names import batch_folder
from tollgate.stores.subjects.standing import DynamoSubjectStore
from tollgate.stores.subjects.stored import delete_below

# Number of items in a page.
_PAGE: Final = 250


class JobErasure:
    """Erases ended jobs with their contents; files of batches and videos are uploaded files."""

    def __init__(
        self,
        client: AwsCaller,
        tables: Tables,
        store: DynamoSubjectStore,
        *,
        objects: ObjectStore,
        files: DynamoFileStore | None,
        clock: Clock,
    ) -> None:
        self._client = client
        self._table = tables.core
        self._store = store
        self._objects = objects
        self._files = files
        responses = ObjectContentLog(objects, clock=clock, kind="responses")
        self._parts = StoredBackgroundParts(objects, responses)
        self._video_requests = StoredVideoRequests(objects, responses)
        self._clock = clock

    async def erase(self, erasure: Erasure, waiting: Counter[str]) -> int:
        """Delete the jobs of a subject, and return their number.

        Jobs that run or are on legal hold are added to `waiting`. The jobs of a removed member or
        of a locked workspace end by themselves, because their key is refused.
        """
        erased = await self._erase_kind(BATCHES, erasure, waiting)
        erased += await self._erase_kind(BACKGROUND, erasure, waiting)
        return erased + await self._erase_kind(VIDEO_JOBS, erasure, waiting)

    async def _erase_kind(
        self, kind: JobKind[AnyJob], erasure: Erasure, waiting: Counter[str]
    ) -> int:
        erased, subject = 0, erasure.subject
        jobs = DynamoJobStore(
            self._client, self._table, kind, ids=IdSource(self._clock), clock=self._clock
        )
        async for rows in self._rows(batch_partition(subject.workspace_id), kind.rows):
            holds = await self._store.check(subject)
            decoded, corrupt = decode_items(jobs.decode, rows)
            waiting.update({"corrupt jobs": len(corrupt)} if corrupt else {})
            for job in decoded:
                if not subject.has_job(job) or created_s(jobs.bare(job.id)) >= erasure.until_s:
                    continue
                if any(hold.subject.has_job(job) for hold in holds):
                    waiting["jobs on legal hold"] += 1
                elif not job.is_ended:
                    waiting["jobs that have not ended"] += 1
                elif not await self._delete_contents(job):
                    waiting["files that cannot be deleted yet"] += 1
                else:
                    await jobs.delete(BatchPlace(job.workspace_id, job.id))
                    erased += 1
        return erased

    async def _delete_contents(self, job: Batch | BackgroundResponse | Video | AnyJob) -> bool:
        """Delete the contents of a job; return False if a file is deleted only later."""
        match job:
            case Batch():
                with refusing_when_unavailable():
                    await delete_below(self._objects, batch_folder(job))
            case BackgroundResponse():
                await self._parts.clear(job)
            case Video():
                await self._video_requests.delete(job)
                return await self._delete_files(job)
            case _:
                raise TypeError(f"{job.id} is of an unknown kind")
        return True

    async def _delete_files(self, video: Video) -> bool:
        """Delete the contents of a video, which may name an end user, unlike uploaded files."""
        is_done = True
        if self._files is not None:
            for file_id in video.file_ids.values():
                file = await self._files.get(video.workspace_id, file_id)
                is_done &= file is None or await self._files.remove_quietly(file)
        return is_done

    async def _rows(self, partition: str, prefix: str) -> AsyncIterator[list[Item]]:
        after: Item | None = None
        while True:
            with refusing_when_unavailable():
                rows, after = await query_rows(
                    self._client, self._table, partition, prefix, after=after, limit=_PAGE
                )
            yield rows
            if after is None:
                return
