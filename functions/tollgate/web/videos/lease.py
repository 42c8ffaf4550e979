"""A worker's lease on a video, under which alone it may change the video's state."""

from collections.abc import Callable
from functools import partial
from typing import Final

from msgspec import Struct

from tollgate.core.clock import Clock
from tollgate.core.errors import GatewayError
from tollgate.core.videos import MADE_WITHIN_S, Video, VideoFailure
from tollgate.stores.ports.batches import BatchPlace, VideoStore
from tollgate.stores.rules.videos import finish, wait

RETRY_S: Final = 10.0


class VideoLease(Struct):
    """The video of one try of a step, as it was last stored."""

    store: VideoStore
    clock: Clock
    video: Video
    try_id: str

    @property
    def age_s(self) -> float:
        """The seconds since the request for the video."""
        return self.clock.now_s() - self.video.created_s

    @property
    def is_late(self) -> bool:
        """True if the video fails unless it is complete."""
        return self.age_s >= MADE_WITHIN_S

    async def change(self, change: Callable[[Video], Video | None]) -> bool:
        """Change the stored video; return False if the try has lost its lease."""
        place = BatchPlace(self.video.workspace_id, self.video.id)
        changed = await self.store.change(place, change)
        if changed is not None:
            self.video = changed
        return changed is not None

    async def wait(self, for_s: float, *, progress: int | None = None) -> float:
        """End the step, and return the seconds until the next one."""
        until_s = self.clock.now_s() + for_s
        await self.change(partial(wait, try_id=self.try_id, until_s=until_s, progress=progress))
        return for_s

    async def end(self, error: GatewayError | None) -> None:
        """End the video, as failed if there is an error."""
        failure = None
        if error is not None:
            failure = VideoFailure(code=error.code.value, message=error.message)
        now_s = self.clock.now_s()
        await self.change(partial(finish, try_id=self.try_id, now_s=now_s, failure=failure))
