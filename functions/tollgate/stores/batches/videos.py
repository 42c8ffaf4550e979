"""Videos in DynamoDB, and the requests that wait for their workers as objects."""

from typing import Final

from tollgate.aws.aws_json import AwsCaller
from tollgate.aws.failures import refusing_when_unavailable
from tollgate.aws.objects import ObjectStore
from tollgate.core.clock import Clock
from tollgate.core.ids import IdSource
from tollgate.core.ownership import WHOLE_WORKSPACE, OwnerScope
from tollgate.core.pages import Page
from tollgate.core.videos import VIDEO_PREFIX, Video
from tollgate.stores.batches.jobs import DynamoJobStore, JobKind
from tollgate.stores.records.contents import ObjectContentLog

VIDEO_JOBS: Final = JobKind(state=Video, prefix=VIDEO_PREFIX, rows="V#")
# Requests are stored among the responses of one day, because a video ends within an hour.
_REQUEST_DAYS: Final = 1


class DynamoVideoStore(DynamoJobStore[Video]):
    """Implements `stores.ports.batches.VideoStore`."""

    def __init__(self, client: AwsCaller, table: str, *, ids: IdSource, clock: Clock) -> None:
        super().__init__(client, table, VIDEO_JOBS, ids=ids, clock=clock)

    async def page(
        self,
        workspace_id: str,
        *,
        limit: int,
        after: str | None = None,
        reach: OwnerScope = WHOLE_WORKSPACE,
        oldest_first: bool = False,
    ) -> Page[Video]:
        now_s = self._clock.now_s()
        return await self.page_of(
            workspace_id,
            # The table deletes expired items only after a while.
            lambda it: reach.has(it.member_id) and not it.is_expired(now_s),
            limit=limit,
            after=after,
            oldest_first=oldest_first,
        )


class StoredVideoRequests:
    """Implements `stores.ports.batches.VideoRequests`."""

    def __init__(self, objects: ObjectStore, responses: ObjectContentLog) -> None:
        self._objects = objects
        self._responses = responses

    async def put(self, video: Video, content: bytes) -> None:
        with refusing_when_unavailable():
            await self._objects.put(self._name(video), content)

    async def get(self, video: Video) -> bytes | None:
        with refusing_when_unavailable():
            return await self._objects.get(self._name(video))

    async def delete(self, video: Video) -> None:
        with refusing_when_unavailable():
            await self._objects.delete(self._name(video))

    def _name(self, video: Video) -> str:
        folder = self._responses.name(video.workspace_id, video.bare_id, _REQUEST_DAYS)
        return f"{folder}.parts/request"
