"""The worker of videos, which tries one step of a video at a time under a lease."""

import asyncio
import logging
from functools import partial
from typing import Final

from msgspec import MsgspecError, Struct, json

from tollgate.core.batches import StepTry
from tollgate.core.clock import Clock, Deadline
from tollgate.core.errors import GatewayError, InternalError
from tollgate.core.ids import IdSource
from tollgate.core.tracing import PlatformIds
from tollgate.core.videos import Video
from tollgate.engine.batches.line_run import WAITS_FOR, wait_after
from tollgate.engine.batches.worker import GatewaySource
from tollgate.engine.gateway import Call, Gateway
from tollgate.stores.ports.administration import FileStore
from tollgate.stores.ports.base import KeyDirectory
from tollgate.stores.ports.batches import BatchPlace, VideoServices
from tollgate.stores.rules.videos import begin_step, may_begin_step
from tollgate.web.access import METERED
from tollgate.web.background.payers import find_payer
from tollgate.web.chat_app import MeteredEndpoint
from tollgate.web.generation.entrance import Entered
from tollgate.web.http.reply import is_large_body
from tollgate.web.videos.lease import RETRY_S, VideoLease
from tollgate.web.videos.making import VideoMaking
from tollgate.web.videos.starting import QueuedVideo, unmade_record

_log: Final = logging.getLogger(__name__)

# Maximum duration of a step, shorter than its lease. A worker with less time left begins none.
_STEP_S: Final = 300.0
_LEASE_S: Final = 360.0
# Maximum number of contents that a process has in memory at a time.
DOWNLOADS_MAX: Final = 4


class VideoWorkerServices(Struct, frozen=True, kw_only=True):
    """Services that workers use."""

    videos: VideoServices
    files: FileStore
    keys: KeyDirectory
    gateways: GatewaySource
    endpoint: MeteredEndpoint
    """The endpoint that parses stored requests into calls."""
    ids: IdSource
    clock: Clock


class VideoWorker:
    """Makes videos, one step at a time."""

    def __init__(self, services: VideoWorkerServices) -> None:
        self._services = services
        self._downloads = asyncio.Semaphore(DOWNLOADS_MAX)
        self.stop = asyncio.Event()
        self.steps = 0
        """The number of steps that this worker has tried."""

    async def work(self, place: BatchPlace, deadline: Deadline) -> float | None:
        """Try a step of a video.

        Returns the seconds after which the next step can be tried; None if the video has ended.
        """
        services, now_s = self._services, self._services.clock.now_s()
        store = services.videos.store
        video = await store.get(place)
        if video is None or video.is_ended:
            return None
        if video.trial is not None and not may_begin_step(video, now_s):
            return max(video.trial.until_s - now_s, 1.0)
        if self.stop.is_set() or deadline.remaining_s() < _STEP_S:
            return 0.0
        trial = StepTry(services.ids.new_id(), now_s + _LEASE_S)
        begun = await store.change(place, partial(begin_step, trial=trial, now_s=now_s))
        if begun is None:
            return 1.0
        self.steps += 1
        lease = VideoLease(store, services.clock, begun, trial.id)
        try:
            async with asyncio.timeout(_STEP_S):
                return await self._step(lease)
        except (GatewayError, TimeoutError) as failure:
            _log.warning("a step of %s failed: %s", begun.id, failure)
            return await lease.wait(RETRY_S)

    async def _step(self, lease: VideoLease) -> float | None:
        services, video = self._services, lease.video
        queued = await self._read(video)
        if queued is None:
            # The sweeper releases the hold, because no open video names it any more.
            await lease.end(InternalError())
            return None
        gateway = await services.gateways.for_key(video.key_id)
        try:
            call = await self._call(gateway, video, queued)
        except GatewayError as refusal:
            if refusal.code in WAITS_FOR and not lease.is_late:
                return await lease.wait(wait_after(refusal).for_s)
            await gateway.ledger.settle(queued.hold, unmade_record(queued.hold, refusal))
            await lease.end(refusal)
            return None
        making = VideoMaking(
            lease=lease,
            gateway=gateway,
            call=call,
            queued=queued,
            files=services.files,
            downloads=self._downloads,
        )
        return await making.advance()

    async def _read(self, video: Video) -> QueuedVideo | None:
        """Return the stored request; None if it is missing or corrupt."""
        stored = await self._services.videos.requests.get(video)
        try:
            return None if stored is None else json.decode(stored, type=QueuedVideo)
        except MsgspecError:
            _log.exception("the request of %s is corrupt", video.id)
            return None

    async def _call(self, gateway: Gateway, video: Video, queued: QueuedVideo) -> Call:
        """Return the call that the caller made; raise GatewayError if its key is refused now."""
        services = self._services
        has_run = video.submission is not None
        principal = await find_payer(services.keys, video, has_run=has_run)
        entered = Entered(
            headers=queued.headers,
            principal=principal,
            request_id=queued.hold.id,
            reach=METERED.reach(principal),
            gateway=gateway,
            body=queued.body,
            is_large=is_large_body(queued.body),
        )
        deadline = Deadline.within(services.clock, _STEP_S)
        try:
            call, _ = await services.endpoint.read_call(entered, deadline, PlatformIds())
        finally:
            gateway.admissions.end(principal, entered.request_id)
        return call
