"""Jobs in this process's memory."""

from collections.abc import Callable, Sequence
from typing import Generic

from msgspec.structs import replace

from tollgate.core.background import BackgroundResponse
from tollgate.core.batches import Batch, BatchClient
from tollgate.core.clock import Clock
from tollgate.core.errors import ErrorCode, LedgerError, RequestError, invalid_request
from tollgate.core.ids import is_id
from tollgate.core.ownership import WHOLE_WORKSPACE, OwnerScope
from tollgate.core.pages import Page
from tollgate.core.videos import Video
from tollgate.engine.replies.content_log import ContentLog
from tollgate.stores.ports.batches import AnyJob, BatchPlace


class MemoryJobStore(Generic[AnyJob]):
    """Implements `stores.ports.batches.JobStore`."""

    def __init__(self) -> None:
        self._jobs: dict[BatchPlace, AnyJob] = {}

    async def create(self, job: AnyJob) -> None:
        self._jobs[BatchPlace(job.workspace_id, job.id)] = job

    async def get(self, place: BatchPlace) -> AnyJob | None:
        return self._jobs.get(place)

    async def change(
        self, place: BatchPlace, change: Callable[[AnyJob], AnyJob | None]
    ) -> AnyJob | None:
        stored = self._jobs.get(place)
        changed = None if stored is None else change(stored)
        if stored is None or changed is None or changed is stored:
            return changed
        self._jobs[place] = replace(changed, revision=stored.revision + 1)
        return self._jobs[place]

    async def delete(self, place: BatchPlace) -> bool:
        return self._jobs.pop(place, None) is not None

    async def open_jobs(self) -> Sequence[BatchPlace]:
        return [
            place
            for place, job in sorted(self._jobs.items(), key=lambda it: it[1].id)
            if not job.is_ended
        ]


class MemoryBatchStore(MemoryJobStore[Batch]):
    """Implements `stores.ports.batches.BatchStore`."""

    async def page(
        self,
        workspace_id: str,
        *,
        limit: int,
        after: str | None = None,
        reach: OwnerScope = WHOLE_WORKSPACE,
        client: BatchClient = "openai",
    ) -> Page[Batch]:
        if after is not None and not is_id(after.removeprefix("batch_")):
            raise invalid_request("after: must be the id of a batch.", "after")
        found = [
            batch
            for place, batch in sorted(self._jobs.items(), key=lambda it: it[1].id, reverse=True)
            if place.workspace_id == workspace_id
            and batch.client == client
            and reach.has(batch.member_id)
            and (after is None or batch.id < after)
        ]
        page = tuple(found[:limit])
        return Page(found=page, next=page[-1].id if len(found) > limit else None)


class MemoryBatchObjects:
    """Implements `stores.ports.batches.BatchObjects`; `files` are contents by file id."""

    def __init__(self, files: dict[str, bytes] | None = None) -> None:
        self.files = files or {}
        self.objects: dict[tuple[str, str], bytes] = {}

    async def input_bytes(self, batch: Batch) -> int | None:
        content = self.files.get(batch.input_file_id)
        return None if content is None else len(content)

    async def read_input(self, batch: Batch, start: int, length: int) -> bytes:
        if batch.input_file_id not in self.files:
            raise RequestError(ErrorCode.FILE_NOT_FOUND, "The file was deleted.")
        return self.files[batch.input_file_id][start : start + length]

    async def put(self, batch: Batch, name: str, content: bytes) -> None:
        self.objects[batch.id, name] = content

    async def get(self, batch: Batch, name: str) -> bytes | None:
        return self.objects.get((batch.id, name))

    async def clear(self, batch: Batch) -> None:
        for place in [place for place in self.objects if place[0] == batch.id]:
            del self.objects[place]

    async def create_file(
        self, batch: Batch, filename: str, parts: Sequence[tuple[str, int]]
    ) -> str:
        found = [self.objects.get((batch.id, name)) for name, _ in parts]
        if None in found:
            raise LedgerError(ErrorCode.SERVICE_UNAVAILABLE, "A part was deleted.")
        content = b"".join(filter(None, found))
        assert len(content) == sum(size for _, size in parts)
        file_id = f"file-{len(self.files)}-{filename}"
        self.files[file_id] = content
        return file_id


class MemoryBackgroundParts:
    """Implements `stores.ports.batches.BackgroundParts` next to the responses of a log."""

    def __init__(self, responses: ContentLog) -> None:
        self._responses = responses
        self.parts: dict[tuple[str, str], bytes] = {}

    async def put(self, job: BackgroundResponse, name: str, content: bytes) -> None:
        self.parts[job.id, name] = content

    async def get(self, job: BackgroundResponse, name: str) -> bytes | None:
        return self.parts.get((job.id, name))

    async def answer(self, job: BackgroundResponse) -> bytes | None:
        return await self._responses.get(job.workspace_id, job.bare_id, days=job.days)

    async def keep(self, job: BackgroundResponse, content: bytes) -> None:
        await self._responses.keep(job.workspace_id, job.bare_id, content, days=job.days)

    async def clear(self, job: BackgroundResponse) -> None:
        for place in [place for place in self.parts if place[0] == job.id]:
            del self.parts[place]


class MemoryVideoStore(MemoryJobStore[Video]):
    """Implements `stores.ports.batches.VideoStore`."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock

    async def page(
        self,
        workspace_id: str,
        *,
        limit: int,
        after: str | None = None,
        reach: OwnerScope = WHOLE_WORKSPACE,
        oldest_first: bool = False,
    ) -> Page[Video]:
        if after is not None and not is_id(after.removeprefix("video_")):
            raise invalid_request("after: must be the id of a video.", "after")
        jobs = sorted(self._jobs.items(), key=lambda it: it[1].id, reverse=not oldest_first)
        found = [
            video
            for place, video in jobs
            if place.workspace_id == workspace_id
            and reach.has(video.member_id)
            and not video.is_expired(self._clock.now_s())
            and (after is None or (video.id > after if oldest_first else video.id < after))
        ]
        page = tuple(found[:limit])
        return Page(found=page, next=page[-1].id if len(found) > limit else None)


class MemoryVideoRequests:
    """Implements `stores.ports.batches.VideoRequests`."""

    def __init__(self) -> None:
        self.requests: dict[str, bytes] = {}

    async def put(self, video: Video, content: bytes) -> None:
        self.requests[video.id] = content

    async def get(self, video: Video) -> bytes | None:
        return self.requests.get(video.id)

    async def delete(self, video: Video) -> None:
        self.requests.pop(video.id, None)
