"""Parses a request for a transcript, from a form or from JSON."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Final, TypeVar

from msgspec.structs import replace

from tollgate.core.content import FileReference
from tollgate.core.files.media_types import is_form
from tollgate.core.work.recording import RECORDING_BYTES_MAX
from tollgate.core.work.transcription import TranscriptDetail, TranscriptionRequest
from tollgate.ingress.base import AwaitedMedia, ParsedWork
from tollgate.ingress.form_body import Form, parse_form
from tollgate.ingress.shared.ignored_fields import extra_fields, printable_names
from tollgate.ingress.shared.media import base64_of, decode_content, field_refusal, parse_address
from tollgate.ingress.shared.preferences import parse_preferences, unknown_preferences
from tollgate.ingress.validation import validate_body, validate_texts
from tollgate.ingress.work.transcription.recordings import read_recording
from tollgate.ingress.work.transcription.wire.transcription_request import (
    TranscriptionBody,
    TranslationBody,
)

_Asked = TranscriptionBody | TranslationBody
_Body = TypeVar("_Body", TranscriptionBody, TranslationBody)
_LISTS: Final = frozenset({"include", "models", "timestamp_granularities"})
_OBJECTS: Final = frozenset({"chunking_strategy", "metadata", "provider"})
_TEXT: Final = "text/plain; charset=utf-8"
TEXT_TYPES: Final[Mapping[str, str]] = {
    "text": _TEXT,
    "srt": _TEXT,
    "vtt": "text/vtt; charset=utf-8",
}
_BY_GRANULARITY: Final[Mapping[str, TranscriptDetail]] = {"segment": "segments", "word": "words"}
# The formats that are made of the stretches of a transcript.
_OF_SEGMENTS: Final = frozenset({"srt", "verbose_json", "vtt"})


class ParsedTranscription(ParsedWork, frozen=True, kw_only=True):
    """A parsed request, and the form of its reply."""

    request: TranscriptionRequest
    response_format: str = "json"


def parse_transcription(body: bytes, headers: Mapping[str, str]) -> ParsedTranscription:
    """Parse a request to write down what is spoken; raise RequestError with the field at fault."""
    asked, form = _read(TranscriptionBody, body, headers)
    if asked.include and (asked.response_format or "json") != "json":
        raise field_refusal("include", "has logprobs for the response_format json alone")
    request = replace(
        _request(asked),
        language=asked.language,
        details=_details(asked),
        logprobs=bool(asked.include),
        chunking=asked.chunking_strategy,
    )
    return _with_input(asked, form, request)


def parse_translation(body: bytes, headers: Mapping[str, str]) -> ParsedTranscription:
    """Parse a request to write in English what is spoken; raise RequestError as above."""
    asked, form = _read(TranslationBody, body, headers)
    details = _details_of_format(asked.response_format)
    return _with_input(asked, form, replace(_request(asked), translates=True, details=details))


def _read(model: type[_Body], body: bytes, headers: Mapping[str, str]) -> tuple[_Body, Form | None]:
    content_type = headers.get("content-type", "")
    if not is_form(content_type):
        return validate_body(model, body), None
    form = parse_form(body, content_type)
    return validate_texts(model, form.values(lists=_LISTS, objects=_OBJECTS)), form


def _request(asked: _Asked) -> TranscriptionRequest:
    return TranscriptionRequest(
        model=asked.model,
        recording=None,
        prompt=asked.prompt,
        temperature=asked.temperature,
        stream=bool(asked.stream),
        user=asked.user,
        metadata=asked.metadata or {},
        preferences=parse_preferences(asked),
    )


def _details(asked: TranscriptionBody) -> frozenset[TranscriptDetail]:
    """Return the parts of a transcript that are due beside its text."""
    granularities = frozenset(asked.timestamp_granularities or ())
    if asked.response_format != "verbose_json":
        if "word" in granularities:
            raise field_refusal(
                "timestamp_granularities", "has words for the response_format verbose_json alone"
            )
        return _details_of_format(asked.response_format)
    return frozenset(_BY_GRANULARITY[each] for each in granularities or {"segment"})


def _details_of_format(response_format: str | None) -> frozenset[TranscriptDetail]:
    if response_format == "diarized_json":
        return frozenset({"speakers"})
    return frozenset({"segments"}) if response_format in _OF_SEGMENTS else frozenset()


def _with_input(
    asked: _Asked, form: Form | None, request: TranscriptionRequest
) -> ParsedTranscription:
    """Return the parsed request with its recording, or with the address that has it."""
    response_format = asked.response_format or "json"
    if request.stream and response_format in _OF_SEGMENTS:
        raise field_refusal("stream", f"cannot be true with the response_format {response_format}")
    parsed = ParsedTranscription(
        request=request,
        stream=request.stream,
        media_type="" if request.stream else TEXT_TYPES.get(response_format, ""),
        ignored=printable_names((*_unknown(asked), *(form.unread_files("file") if form else ()))),
        response_format=response_format,
        described=b"" if form is None else form.described(),
    )
    content = form.file("file") if form else _decoded(asked.file)
    if asked.url is None and asked.file_id is None:
        if content is None:
            raise field_refusal("file", "is required")
        return replace(parsed, request=_with_recording(request, "file", content))
    field = "file_id" if asked.url is None else "url"
    if content is not None or (asked.url is not None and asked.file_id is not None):
        raise field_refusal(field, "cannot be beside file, url or file_id")
    awaited = AwaitedMedia(
        source=FileReference(id=asked.file_id or "", field=field)
        if asked.url is None
        else parse_address(asked.url, field),
        field=field,
        bytes_max=RECORDING_BYTES_MAX,
        complete=partial(_with_recording, request, field),
    )
    return replace(parsed, awaits=awaited)


def _with_recording(
    request: TranscriptionRequest, field: str, content: bytes
) -> TranscriptionRequest:
    return replace(request, recording=read_recording(content, field))


def _decoded(text: str | None) -> bytes | None:
    if text is None:
        return None
    return decode_content(base64_of(text), "file", RECORDING_BYTES_MAX)


def _unknown(asked: _Asked) -> Iterator[str]:
    yield from extra_fields(asked)
    yield from unknown_preferences(asked)
