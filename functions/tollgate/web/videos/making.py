"""The steps of a video at its provider: submit, poll, store the contents, bill."""

import asyncio
import logging
from functools import partial
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tollgate.core.clock import DAY_S
from tollgate.core.errors import ErrorCode, GatewayError, MissingCredentials, UpstreamError
from tollgate.core.files.stored import NewFile
from tollgate.core.videos import (
    BILLED_WITHIN_S,
    MADE_WITHIN_S,
    VIDEO_BYTES_MAX,
    VIDEO_DAYS,
    VideoSubmission,
    VideoVariant,
)
from tollgate.core.work.video import VideoRequest
from tollgate.engine.batches.line_run import WAITS_FOR, wait_after
from tollgate.engine.choices import lacks_kind
from tollgate.engine.files.media import RequestMedia
from tollgate.engine.files.named_files import find_files_of
from tollgate.engine.gateway import Call, Gateway
from tollgate.engine.generate import planning_request
from tollgate.providers.ports.base import (
    BatchCodec,
    JobCalls,
    Target,
    UpstreamRefused,
    WireRequest,
)
from tollgate.providers.ports.provider_jobs import JobCodec
from tollgate.providers.shared.refusals import malformed_error
from tollgate.routing.planning.batch_planner import BatchPlanner
from tollgate.stores.ports.administration import FileStore
from tollgate.stores.rules.videos import keep, note_submission
from tollgate.web.videos.billing import bill_video
from tollgate.web.videos.lease import RETRY_S, VideoLease
from tollgate.web.videos.starting import QueuedVideo, VideoOffer

_log: Final = logging.getLogger(__name__)

# The pause between polls is a quarter of the age of the submission, within these bounds.
_POLL_MIN_S: Final = 5.0
_POLL_MAX_S: Final = 60.0
_REPLY_BYTES_MAX: Final = 1024 * 1024
_SERVER_ERROR: Final = 500
_GONE: Final = frozenset({404, 410})
_MEDIA_TYPES: Final[dict[VideoVariant, tuple[str, str]]] = {
    "video": ("video/mp4", "mp4"),
    "thumbnail": ("image/webp", "webp"),
    "spritesheet": ("image/jpeg", "jpg"),
}
# The box `ftyp` begins MP4, and the EBML header WebM; everything else is no video.
_MP4: Final = b"ftyp"
_WEBM: Final = b"\x1a\x45\xdf\xa3"


class _JobPlace(Struct, frozen=True, kw_only=True):
    """An endpoint that makes videos, and the means to call it."""

    target: Target
    codec: BatchCodec[VideoRequest]
    jobs: JobCodec
    calls: JobCalls


class VideoMaking(Struct, kw_only=True):
    """The steps of one video, each of which a worker may repeat."""

    lease: VideoLease
    gateway: Gateway
    call: Call
    queued: QueuedVideo
    files: FileStore
    downloads: asyncio.Semaphore
    """Limits the contents in memory."""

    async def advance(self) -> float | None:
        """Try the next step; return the seconds until another one, or None at the end."""
        submission = self.lease.video.submission
        if self.lease.age_s >= BILLED_WITHIN_S:
            return await self._fail(_too_late())
        if submission is None:
            return await self._submit()
        if submission.job_id is None:
            # The worker died while it was sending, so that the provider may have accepted.
            return await self._fail(_unknown_outcome())
        return await self._poll(submission, submission.job_id)

    async def _submit(self) -> float | None:
        """Send the video to one endpoint after another, until one may have accepted it."""
        refusal: GatewayError = _unknown_outcome()
        for offer in self.queued.offers:
            try:
                place = await self._place(offer)
                request = await self._encode(place)
            except GatewayError as failure:
                return await self._refused(failure)
            claim = VideoSubmission(endpoint_id=offer.endpoint_id, at_s=self.gateway.clock.now_s())
            if not await self._store(claim):
                return RETRY_S
            try:
                reply = await place.calls.submit(request)
                job_id = place.jobs.read_id(reply, place.target.provider)
            except MissingCredentials as missing:
                refusal = missing
            except UpstreamRefused as refused:
                if refused.status >= _SERVER_ERROR:
                    _log.warning("it is unknown whether %s runs: %s", self.lease.video.id, refused)
                    return await self._fail(_unknown_outcome())
                refusal = place.codec.error(refused, place.target)
            except UpstreamError as failure:
                _log.warning("it is unknown whether %s runs: %s", self.lease.video.id, failure)
                return await self._fail(_unknown_outcome())
            else:
                # If the lease is lost here, the next try fails the video, and bills nothing.
                await self._store(replace(claim, job_id=job_id))
                return await self.lease.wait(_POLL_MIN_S, progress=0)
            if not await self._store(None):
                return RETRY_S
            is_unset = isinstance(refusal, MissingCredentials)
            if refusal.code not in self.queued.next_on and not is_unset:
                break
        return await self._refused(refusal)

    async def _refused(self, refusal: GatewayError) -> float | None:
        """Wait for a refusal that may pass, or fail the video; no provider has accepted it."""
        if refusal.code in WAITS_FOR and not self.lease.is_late:
            return await self.lease.wait(wait_after(refusal).for_s)
        return await self._fail(refusal)

    async def _poll(self, submission: VideoSubmission, job_id: str) -> float | None:
        place = await self._place(self._offer)
        age_s = self.gateway.clock.now_s() - submission.at_s
        pause_s = min(max(age_s / 4, _POLL_MIN_S), _POLL_MAX_S)
        try:
            reply = await place.calls.get(place.jobs.path(job_id), bytes_max=_REPLY_BYTES_MAX)
            state = place.jobs.read_state(reply, place.target.provider)
            if state.status == "running":
                if self.lease.is_late:
                    return await self._fail(_too_late())
                return await self.lease.wait(pause_s, progress=state.progress)
            if state.status == "completed" and not await self._keep_contents(place, job_id):
                return RETRY_S
        except UpstreamRefused as refused:
            if refused.status in _GONE:
                return await self._fail(place.codec.error(refused, place.target))
            return await self._poll_again(refused, pause_s)
        except UpstreamError as failure:
            return await self._poll_again(failure, pause_s)
        except GatewayError as failure:
            if failure.code is ErrorCode.SERVICE_UNAVAILABLE:
                raise
            # The caps of the workspace or the key leave no room for the content.
            return await self._fail(failure)
        return await self._bill(reply)

    async def _poll_again(self, failure: Exception, pause_s: float) -> float | None:
        _log.warning("the provider of %s does not answer: %s", self.lease.video.id, failure)
        if self.lease.is_late:
            return await self._fail(_too_late())
        return await self.lease.wait(pause_s)

    async def _keep_contents(self, place: _JobPlace, job_id: str) -> bool:
        """Store the contents once; return False if the try has lost its lease."""
        video = self.lease.video
        if video.file_ids:
            return True
        file_ids: dict[VideoVariant, str] = {}
        for variant in _MEDIA_TYPES:
            path = place.jobs.contents.get(variant)
            if path is None:
                continue
            try:
                async with self.downloads:
                    file_ids[variant] = await self._keep(place, variant, path(job_id))
            except (UpstreamRefused, UpstreamError):
                # Some servers have no pictures of a video.
                if variant == "video":
                    raise
        return await self.lease.change(partial(keep, try_id=self.lease.try_id, file_ids=file_ids))

    async def _keep(self, place: _JobPlace, variant: VideoVariant, path: str) -> str:
        """Fetch one content, and return the id of its file, which expires."""
        video, (media_type, suffix) = self.lease.video, _MEDIA_TYPES[variant]
        content = await place.calls.get(path, bytes_max=VIDEO_BYTES_MAX)
        if variant == "video":
            media_type, suffix = _check_video(content, place.target.provider)
        new = NewFile(
            workspace_id=video.workspace_id,
            key_id=video.key_id,
            member_id=video.member_id,
            filename=f"{video.id}-{variant}.{suffix}",
            purpose="video_output",
            media_type=media_type,
            expires_after_s=VIDEO_DAYS * DAY_S,
        )
        return (await self.files.create(new, content)).id

    async def _bill(self, ended: bytes | UpstreamError) -> float | None:
        """Bill the video by its provider's last reply, and end it."""
        planner = self._planner(self._offer)
        bill = await bill_video(
            self.gateway, self.call, self.queued.hold, planner=planner, ended=ended
        )
        await self.lease.end(None if bill.record.outcome == "ok" else bill.failure)
        return None

    async def _fail(self, failure: GatewayError) -> float | None:
        if isinstance(failure, UpstreamError):
            return await self._bill(failure)
        return await self._bill(UpstreamError(failure.code, failure.message, param=failure.param))

    async def _store(self, submission: VideoSubmission | None) -> bool:
        return await self.lease.change(
            partial(note_submission, try_id=self.lease.try_id, submission=submission)
        )

    @property
    def _offer(self) -> VideoOffer:
        """The endpoint that may have accepted the video, or else the first one."""
        submission, offers = self.lease.video.submission, self.queued.offers
        if submission is None:
            return offers[0]
        return next(it for it in offers if it.endpoint_id == submission.endpoint_id)

    async def _place(self, offer: VideoOffer) -> _JobPlace:
        """Return the means to call an endpoint; raise RequestError if it was removed."""
        planner, now_s = self._planner(offer), self.gateway.clock.now_s()
        plan = await self.gateway.computations(self.call).run(
            lambda: planner.plan(planning_request(self.call), now_s=now_s)
        )
        target, kind = plan.attempts[0].target, self.call.parsed.request.kind
        provider = self.gateway.providers.provider(target.provider, self.call.principal)
        load, load_jobs = provider.batch_codecs.get(kind), provider.job_codecs.get(kind)
        if load is None or load_jobs is None or provider.job_calls is None:
            raise lacks_kind(plan.attempts[0], kind)
        return _JobPlace(target=target, codec=load(), jobs=load_jobs(), calls=provider.job_calls())

    def _planner(self, offer: VideoOffer) -> BatchPlanner:
        return BatchPlanner(self.gateway.planner.catalog, offer.endpoint_id, offer.prices)

    async def _encode(self, place: _JobPlace) -> WireRequest:
        """Return the request for the provider, with the bytes of its picture."""
        gateway, call = self.gateway, self.call
        if call.parsed.request.names_files:
            call = await find_files_of(gateway, call)
        work, computations = call.parsed.request, gateway.computations(call)
        media = RequestMedia(gateway.media, work, gateway.files, computations)
        inlined = await media.inline(place.target)
        if not isinstance(inlined, VideoRequest):
            raise TypeError("not a request for a video")
        return await computations.run(partial(place.codec.encode, inlined, place.target))


def _check_video(content: bytes, provider: str) -> tuple[str, str]:
    """Return the media type and the suffix of a video; raise UpstreamError for other bytes."""
    if content[4:8] == _MP4:
        return _MEDIA_TYPES["video"]
    if content.startswith(_WEBM):
        return "video/webm", "webm"
    raise malformed_error(provider, "a video that is neither MP4 nor WebM")


def _too_late() -> UpstreamError:
    message = (
        f"The video was not complete within {MADE_WITHIN_S // 60} minutes, the longest that one "
        "may take."
    )
    return UpstreamError(ErrorCode.PROVIDER_TIMEOUT, message)


def _unknown_outcome() -> UpstreamError:
    message = "It is unknown whether the provider has accepted the video, so it is not sent again."
    return UpstreamError(ErrorCode.PROVIDER_UNAVAILABLE, message)
