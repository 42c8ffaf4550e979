"""The client format for creating videos, whose reply is rendered when a worker is to make one."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace
from typing_extensions import override

from tollgate.core.content import Image
from tollgate.core.files.media_types import is_form
from tollgate.core.records.generation import GenerationRecord
from tollgate.core.response import GenerationResponse
from tollgate.core.videos import Video
from tollgate.core.work.video import VideoRequest
from tollgate.ingress.base import NO_HEADERS, ParsedWork
from tollgate.ingress.form_body import Form, parse_form
from tollgate.ingress.shared.fields import parse_preferences, printable_names, unknown_fields
from tollgate.ingress.shared.openai_format import WholeReplyFormat, WholeReplyRenderer
from tollgate.ingress.shared.pictures import parse_referenced_picture, parse_uploaded_picture
from tollgate.ingress.validation import validate_body, validate_texts
from tollgate.ingress.work.videos.models import (
    VideoBody,
    VideoError,
    VideoObject,
    VideoOptions,
)

_REFERENCE = "input_reference"
_NAMED = frozenset({"metadata", "provider", _REFERENCE})


class VideoRenderer(WholeReplyRenderer):
    """Renders nothing: a worker stores the result, and callers poll it."""

    @override
    def whole(self, responses: Sequence[GenerationResponse], record: GenerationRecord) -> bytes:
        return b""


class Videos(WholeReplyFormat):
    """The format of POST /v1/videos."""

    renderer_type = VideoRenderer

    def parse(self, body: bytes, headers: Mapping[str, str] = NO_HEADERS) -> ParsedWork:
        """Parse a JSON body or a form; raise RequestError with the field at fault."""
        content_type = headers.get("content-type", "")
        if is_form(content_type):
            return _parse_form(parse_form(body, content_type))
        fields = validate_body(VideoBody, body)
        return _parsed(fields, _referenced(fields))


def show_video(video: Video) -> VideoObject:
    """Return a video as callers see it."""
    failure = video.failure
    return VideoObject(
        id=video.id,
        created_at=video.created_s,
        completed_at=video.ended_s if video.status == "completed" else None,
        expires_at=video.expires_s,
        error=None if failure is None else VideoError(code=failure.code, message=failure.message),
        model=video.model,
        progress=video.progress,
        seconds=str(video.seconds),
        size=video.size,
        status=video.status,
    )


def _parse_form(form: Form) -> ParsedWork:
    texts = form.values(lists=frozenset({"models"}), objects=_NAMED)
    content = form.file(_REFERENCE) if _REFERENCE in form.files else None
    if content is None:
        fields = validate_texts(VideoBody, texts)
        parsed = _parsed(fields, _referenced(fields))
    else:
        options = validate_texts(VideoOptions, texts)
        parsed = _parsed(options, parse_uploaded_picture(content, _REFERENCE))
    unread = printable_names(form.unread_files(_REFERENCE))
    return replace(parsed, ignored=(*parsed.ignored, *unread), described=form.described())


def _referenced(fields: VideoBody) -> Image | None:
    if fields.input_reference is None:
        return None
    return parse_referenced_picture(fields.input_reference, _REFERENCE)


def _parsed(fields: VideoOptions, reference: Image | None) -> ParsedWork:
    request = VideoRequest(
        model=fields.model,
        prompt=fields.prompt,
        seconds=fields.seconds,
        size=fields.size,
        reference=reference,
        user=fields.user,
        metadata=fields.metadata or {},
        preferences=parse_preferences(fields),
    )
    return ParsedWork(request=request, ignored=printable_names(unknown_fields(fields)))
