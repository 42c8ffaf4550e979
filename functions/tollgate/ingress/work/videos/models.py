"""Models for requests for videos, and for videos.

openai-python 3.52.0, types/video_create_params.py and types/video.py (2026-11-28).
"""

import re
from typing import Annotated, Final, Literal

from pydantic import BaseModel, BeforeValidator, Field, StringConstraints, WithJsonSchema

from tollgate.core.videos import VideoStatus
from tollgate.core.work.video import SECONDS_DEFAULT, SECONDS_MAX, SIZE_DEFAULT
from tollgate.ingress.shared.wire.picture_reference import PictureReference
from tollgate.ingress.shared.wire.request_fields import EndUser, RoutingFields

PROMPT_LENGTH_MAX: Final = 32_000
_SIZE: Final = r"^[1-9][0-9]{1,4}x[1-9][0-9]{1,4}$"
_DIGITS: Final = re.compile(r"[0-9]{1,4}", re.ASCII)


def _read_seconds(value: object) -> object:
    return int(value) if isinstance(value, str) and _DIGITS.fullmatch(value) else value


class VideoOptions(EndUser, RoutingFields):
    """The fields of POST /v1/videos without the picture."""

    prompt: Annotated[str, Field(min_length=1, max_length=PROMPT_LENGTH_MAX)]
    seconds: Annotated[
        int,
        BeforeValidator(_read_seconds),
        Field(ge=1, le=SECONDS_MAX),
        WithJsonSchema({"type": ["string", "integer"]}),
    ] = Field(default=SECONDS_DEFAULT, description="The duration, which determines the price.")
    size: Annotated[str, StringConstraints(pattern=_SIZE)] = Field(
        default=SIZE_DEFAULT, description="Width and height, such as 1280x720."
    )


class VideoBody(VideoOptions):
    """The body of POST /v1/videos as JSON."""

    input_reference: PictureReference | None = Field(
        default=None, description="A picture that guides the video."
    )


class VideoForm(VideoOptions):
    """The fields of POST /v1/videos as a form."""

    input_reference: bytes | None = Field(
        default=None, description="A picture that guides the video, as a file."
    )


class VideoError(BaseModel):
    """The reason why a video failed."""

    code: str
    message: str


class VideoObject(BaseModel):
    """A video, whose content can be downloaded once its status is `completed`."""

    id: str
    object: Literal["video"] = "video"
    created_at: int
    completed_at: int | None
    expires_at: int | None = Field(description="When a completed video is deleted.")
    error: VideoError | None
    model: str
    progress: int = Field(description="The provider's estimate, in percent.")
    prompt: None = Field(default=None, description="Always null: prompts are not stored.")
    remixed_from_video_id: None = None
    seconds: str
    size: str
    status: VideoStatus
