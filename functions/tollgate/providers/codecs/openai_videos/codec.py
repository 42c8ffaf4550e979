"""Encodes video requests in OpenAI's format, and reads the jobs of servers with this format.

The shapes are those of openai-python 3.52.0 (types/video.py, 2026-11-28). OpenAI ended its own
Videos API on 2026-09-24 (developers.openai.com/api/docs/deprecations, 2026-11-28). vLLM-Omni
serves the same API without thumbnails (docs.vllm.ai/projects/vllm-omni, "Videos API",
2026-11-28).
"""

from base64 import b64decode
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote

from msgspec import DecodeError, Struct, json

from tollgate.core.usage import Usage
from tollgate.core.work.base import WorkResult
from tollgate.core.work.video import VideoRequest
from tollgate.providers.ports.base import BatchCodec, FormPart, Frame, Target, WireRequest
from tollgate.providers.ports.provider_jobs import JobCodec, JobState, JobStatus
from tollgate.providers.shared.openai_errors import (
    parse_openai_reply_error,
    parse_openai_stream_error,
)
from tollgate.providers.shared.pictures import inline_source
from tollgate.providers.shared.refusals import UNREADABLE, malformed_error

_PATH: Final = "/videos"
_ID_LENGTH_MAX: Final = 256
_REPLY_BYTES_MAX: Final = 1024 * 1024
_ENDS: Final[Mapping[str, JobStatus]] = {
    "completed": "completed",
    "failed": "failed",
    "cancelled": "failed",
    "expired": "failed",
}


class _Job(Struct, frozen=True):
    id: str
    status: str = ""
    progress: object = None
    seconds: object = None
    model: object = None
    error: Any = None


def encode_video(work: VideoRequest, target: Target) -> WireRequest:
    """Encode a request as a form, which every server with this API accepts."""
    return WireRequest(
        path=_PATH, body={}, form=tuple(_form(work, target)), reply_bytes_max=_REPLY_BYTES_MAX
    )


def decode_job(frame: Frame, work: VideoRequest, target: Target) -> WorkResult:
    """Return the result of an ended job; raise UpstreamError for a failed one."""
    job = _parse(frame.data, target.provider)
    if _ENDS.get(job.status) != "completed":
        error = job.error if job.error is not None else {"message": "the video failed"}
        raise parse_openai_stream_error(error, target.provider)
    return WorkResult(
        pieces=(),
        usage=Usage(
            uncached_input_tokens=0, output_tokens=0, video_seconds=_seconds(job.seconds, work)
        ),
        upstream_id=job.id,
        served_model=job.model if isinstance(job.model, str) else None,
    )


def read_id(reply: bytes, provider: str) -> str:
    job = _parse(reply, provider)
    if not 0 < len(job.id) <= _ID_LENGTH_MAX:
        raise malformed_error(provider, "a video without an id")
    return job.id


def read_state(reply: bytes, provider: str) -> JobState:
    job = _parse(reply, provider)
    progress = job.progress if isinstance(job.progress, int | float) else 0
    return JobState(
        status=_ENDS.get(job.status, "running"), progress=int(min(max(progress, 0), 99))
    )


def _parse(reply: bytes, provider: str) -> _Job:
    try:
        return json.decode(reply, type=_Job)
    except (DecodeError, *UNREADABLE) as invalid:
        raise malformed_error(provider, "a video of unknown form") from invalid


def _seconds(reported: object, work: VideoRequest) -> int:
    """Return the seconds that the server states, or else those of the request."""
    text = str(reported)
    return int(text) if text.isascii() and text.isdigit() and len(text) < 6 else work.seconds


def _form(work: VideoRequest, target: Target) -> Iterator[FormPart]:
    fields = {
        "model": target.upstream_model,
        "prompt": work.prompt,
        "seconds": str(work.seconds),
        "size": work.size,
    }
    for name, value in fields.items():
        yield FormPart(name=name, content=value.encode())
    if work.reference is not None:
        source = inline_source(work.reference)
        yield FormPart(
            name="input_reference",
            content=b64decode(source.base64),
            file_name=f"picture.{source.media_type.rpartition('/')[2]}",
            media_type=source.media_type,
        )


def _job_path(job_id: str) -> str:
    return f"{_PATH}/{quote(job_id, safe='')}"


CODEC: Final = BatchCodec(
    split=lambda work, target: (work,),
    encode=encode_video,
    decode=decode_job,
    error=parse_openai_reply_error,
)
JOB_CODEC: Final = JobCodec(
    read_id=read_id,
    path=_job_path,
    read_state=read_state,
    contents={
        "video": lambda job_id: f"{_job_path(job_id)}/content",
        "thumbnail": lambda job_id: f"{_job_path(job_id)}/content?variant=thumbnail",
        "spritesheet": lambda job_id: f"{_job_path(job_id)}/content?variant=spritesheet",
    },
)
