"""Pure rules of the work on a video: one worker at a time tries a step, under a lease.

The steps submit the video, poll its provider, and store and bill the result. A worker that dies
lets its lease run out, and the next try goes on from the stored state.
"""

from collections.abc import Mapping

from msgspec.structs import replace

from tollgate.core.batches import StepTry
from tollgate.core.videos import Video, VideoFailure, VideoSubmission, VideoVariant


def may_begin_step(video: Video, now_s: float) -> bool:
    """Return whether a worker may try a step now."""
    return not video.is_ended and (video.trial is None or video.trial.until_s <= now_s)


def begin_step(video: Video, trial: StepTry, now_s: float) -> Video | None:
    """Return the video with a new try of a step; None if no step is to be tried now."""
    if _holds_lease(video, trial.id):
        return video
    return replace(video, trial=trial) if may_begin_step(video, now_s) else None


def note_submission(video: Video, try_id: str, submission: VideoSubmission | None) -> Video | None:
    """Return the video with its submission, or without any; None if the try has lost its lease."""
    return replace(video, submission=submission) if _holds_lease(video, try_id) else None


def wait(video: Video, try_id: str, until_s: float, *, progress: int | None = None) -> Video | None:
    """Return the video whose next step is tried later; None if the try has lost its lease.

    A `progress` shows that the provider makes the video.
    """
    if not _holds_lease(video, try_id) or video.trial is None:
        return None
    waiting = replace(video, trial=replace(video.trial, id="", until_s=until_s))
    if progress is None:
        return waiting
    return replace(waiting, status="in_progress", progress=max(video.progress, progress))


def keep(video: Video, try_id: str, file_ids: Mapping[VideoVariant, str]) -> Video | None:
    """Return the video with its stored contents; None if the try has lost its lease."""
    return replace(video, file_ids=file_ids) if _holds_lease(video, try_id) else None


def finish(video: Video, try_id: str, now_s: float, failure: VideoFailure | None) -> Video | None:
    """Return the video at its end; None if the try has lost its lease."""
    if not _holds_lease(video, try_id):
        return None
    ended = replace(video, ended_s=int(now_s), trial=None)
    if failure is None:
        return replace(ended, status="completed", progress=100)
    return replace(ended, status="failed", failure=failure, file_ids={})


def _holds_lease(video: Video, try_id: str) -> bool:
    return not video.is_ended and video.trial is not None and video.trial.id == try_id
