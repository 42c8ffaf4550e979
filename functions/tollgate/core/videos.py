"""Videos: jobs that take a provider minutes, and whose results the gateway stores."""

from collections.abc import Mapping
from typing import Final, Literal

from msgspec import Struct, field
from typing_extensions import override

from tollgate.core.batches import StepTry
from tollgate.core.clock import DAY_S
from tollgate.core.jobs import Job

VIDEO_PREFIX: Final = "video_"
VideoStatus = Literal["queued", "in_progress", "completed", "failed"]
VideoVariant = Literal["video", "thumbnail", "spritesheet"]
# Days for which a video is stored after it is complete.
VIDEO_DAYS: Final = 7
# Seconds after which an incomplete video fails, and after which even a complete one is not billed.
# The bill has the day of the request, and a day is closed an hour after its end.
MADE_WITHIN_S: Final = 2_700
BILLED_WITHIN_S: Final = 3_300
VIDEO_BYTES_MAX: Final = 128 * 1024 * 1024


class VideoFailure(Struct, frozen=True, kw_only=True):
    """The reason why a video failed, which callers see in `error`."""

    code: str
    message: str


class VideoSubmission(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The only request for the video that was sent to a provider, which may have accepted it."""

    endpoint_id: str
    at_s: float
    job_id: str | None = None
    """The provider's id of the job; None until the provider has confirmed it."""


class Video(Job, frozen=True, kw_only=True, omit_defaults=True):
    """The stored state of a video; `stores/rules/videos.py` has its transitions."""

    created_s: int
    model: str
    """The model that the caller named."""
    seconds: int
    size: str
    status: VideoStatus = "queued"
    progress: int = 0
    """The provider's estimate, in percent."""
    ended_s: int | None = None
    trial: StepTry | None = None
    """The last try of a step; the next try may begin when its lease ends."""
    submission: VideoSubmission | None = None
    file_ids: Mapping[VideoVariant, str] = field(default_factory=dict)
    """The ids of the files with the contents, which are stored before the video is billed."""
    failure: VideoFailure | None = None

    @property
    def bare_id(self) -> str:
        """The id without its prefix, which is the id of the generation."""
        return self.id.removeprefix(VIDEO_PREFIX)

    @property
    @override
    def is_ended(self) -> bool:
        return self.status in ("completed", "failed")

    @property
    @override
    def hold_ids(self) -> frozenset[str]:
        return frozenset({self.bare_id})

    @property
    @override
    def event_type(self) -> str:
        return f"video.{self.status}"

    @property
    @override
    def kept_s(self) -> int:
        return VIDEO_DAYS * DAY_S

    def is_expired(self, now_s: float) -> bool:
        """Return whether a video that has ended is too old to be shown."""
        return self.ended_s is not None and self.ended_s + self.kept_s <= now_s

    @property
    def expires_s(self) -> int | None:
        """The Unix second at which a complete video expires; None for other videos."""
        return self.ended_s + self.kept_s if self.ended_s and self.status == "completed" else None
