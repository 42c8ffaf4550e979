"""The client formats of OpenAI's APIs for transcribing and translating recordings."""

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from functools import partial
from typing import Final, TypeVar

from msgspec import to_builtins
from msgspec.json import decode as decode_json
from msgspec.structs import replace
from pydantic_core import to_json
from typing_extensions import override

from tollgate.core.content import FileReference
from tollgate.core.errors import GatewayError
from tollgate.core.events import Output, Partial, StreamEvent
from tollgate.core.files.media_types import is_form
from tollgate.core.json_value import JsonValue
from tollgate.core.records.generation import GenerationRecord
from tollgate.core.response import GenerationResponse
from tollgate.core.work.recording import RECORDING_BYTES_MAX
from tollgate.core.work.transcription import (
    Segment,
    TokenLogprob,
    Transcript,
    TranscriptDetail,
    TranscriptionRequest,
    TranscriptPreview,
)
from tollgate.ingress.base import NO_HEADERS, AwaitedMedia, ErrorReply, ParsedWork, Routed, ServedBy
from tollgate.ingress.errors import openai_reply, tollgate_metadata
from tollgate.ingress.form_body import Form, parse_form
from tollgate.ingress.shared.accounts import ReplyAccounts
from tollgate.ingress.shared.fields import parse_preferences, printable_names, unknown_fields
from tollgate.ingress.shared.media import base64_of, decode_content, field_refusal, parse_address
from tollgate.ingress.shared.openai_format import OpenAIFormat
from tollgate.ingress.validation import validate_body, validate_texts
from tollgate.ingress.work.transcription.models import TranscriptionBody, TranslationBody
from tollgate.ingress.work.transcription.recordings import read_recording
from tollgate.ingress.work.transcription.subtitles import write_srt, write_vtt

_Fields = TranscriptionBody | TranslationBody
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
# Response formats that contain the segments of a transcript.
_OF_SEGMENTS: Final = frozenset({"srt", "verbose_json", "vtt"})


class ParsedTranscription(ParsedWork, frozen=True, kw_only=True):
    """A parsed request and the format of its reply."""

    request: TranscriptionRequest
    response_format: str = "json"


def parse_transcription(
    body: bytes, headers: Mapping[str, str] = NO_HEADERS
) -> ParsedTranscription:
    """Parse a transcription request; raise RequestError with the field at fault."""
    fields, form = _read(TranscriptionBody, body, headers)
    if fields.include and (fields.response_format or "json") != "json":
        raise field_refusal("include", "can be logprobs only if response_format is json")
    request = replace(
        _request(fields),
        language=fields.language,
        details=_details(fields),
        logprobs=bool(fields.include),
        chunking=fields.chunking_strategy,
    )
    return _with_input(fields, form, request)


def parse_translation(body: bytes, headers: Mapping[str, str] = NO_HEADERS) -> ParsedTranscription:
    """Parse a translation request; raise RequestError with the field at fault."""
    fields, form = _read(TranslationBody, body, headers)
    details = _details_of_format(fields.response_format)
    return _with_input(fields, form, replace(_request(fields), translates=True, details=details))


def _read(model: type[_Body], body: bytes, headers: Mapping[str, str]) -> tuple[_Body, Form | None]:
    content_type = headers.get("content-type", "")
    if not is_form(content_type):
        return validate_body(model, body), None
    form = parse_form(body, content_type)
    return validate_texts(model, form.values(lists=_LISTS, objects=_OBJECTS)), form


def _request(fields: _Fields) -> TranscriptionRequest:
    return TranscriptionRequest(
        model=fields.model,
        recording=None,
        prompt=fields.prompt,
        temperature=fields.temperature,
        stream=bool(fields.stream),
        user=fields.user,
        metadata=fields.metadata or {},
        preferences=parse_preferences(fields),
    )


def _details(fields: TranscriptionBody) -> frozenset[TranscriptDetail]:
    """Return the details that the reply needs besides the text, such as words."""
    granularities = frozenset(fields.timestamp_granularities or ())
    if fields.response_format != "verbose_json":
        if "word" in granularities:
            raise field_refusal(
                "timestamp_granularities", "can be word only if response_format is verbose_json"
            )
        return _details_of_format(fields.response_format)
    return frozenset(_BY_GRANULARITY[granularity] for granularity in granularities or {"segment"})


def _details_of_format(response_format: str | None) -> frozenset[TranscriptDetail]:
    if response_format == "diarized_json":
        return frozenset({"speakers"})
    return frozenset({"segments"}) if response_format in _OF_SEGMENTS else frozenset()


def _with_input(
    fields: _Fields, form: Form | None, request: TranscriptionRequest
) -> ParsedTranscription:
    """Return the parsed request with its recording, or with the file or URL to fetch."""
    response_format = fields.response_format or "json"
    if request.stream and response_format in _OF_SEGMENTS:
        raise field_refusal("stream", f"cannot be true if response_format is {response_format}")
    unread = form.unread_files("file") if form else ()
    parsed = ParsedTranscription(
        request=request,
        stream=request.stream,
        media_type="" if request.stream else TEXT_TYPES.get(response_format, ""),
        ignored=printable_names((*unknown_fields(fields), *unread)),
        response_format=response_format,
        described=b"" if form is None else form.described(),
    )
    content = form.file("file") if form else _decoded(fields.file)
    if fields.url is None and fields.file_id is None:
        if content is None:
            raise field_refusal("file", "is required")
        return replace(parsed, request=_with_recording(request, "file", content))
    field = "file_id" if fields.url is None else "url"
    if content is not None or (fields.url is not None and fields.file_id is not None):
        raise field_refusal(field, "cannot be combined with file, url or file_id")
    awaited = AwaitedMedia(
        source=FileReference(id=fields.file_id or "", field=field)
        if fields.url is None
        else parse_address(fields.url, field),
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


class TranscriptRenderer:
    """Renders a transcript as one body in the requested format, or as OpenAI's events."""

    def __init__(
        self, call: ParsedTranscription, served: ServedBy, *, credits_per_usd: Decimal
    ) -> None:
        self._call = call
        self._served = served
        self._accounts = ReplyAccounts(served, credits_per_usd, call.tells_routing, _usage)
        self._is_previewed = False
        self._transcript = Transcript(text="")

    def feed(self, event: StreamEvent, choice: int = 0) -> bytes:
        """Render a preview; a transcript without previews is rendered as if it were one."""
        match event:
            case Partial(piece=piece):
                self._is_previewed = True
                return _events(decode_json(piece, type=TranscriptPreview))
            case Output(pieces=(piece, *_)):
                self._transcript = decode_json(piece, type=Transcript)
                if self._is_previewed:
                    return b""
                return b"".join(map(_events, self._previews()))
            case _:
                return b""

    def close(self, record: GenerationRecord) -> bytes:
        """Render the event with the complete text, usage and cost."""
        done: dict[str, JsonValue] = {
            "type": "transcript.text.done",
            "text": self._transcript.text,
            **_logprobs(self._transcript.logprobs),
        }
        return b"data: %b,%b}\n\n" % (
            to_json(done)[:-1],
            self._accounts.render(record),
        )

    def fail(self, error: GatewayError, record: GenerationRecord) -> bytes:
        """Render the last event of a transcript that broke off."""
        return b'data: {"type":"error",%b}\n\n' % self._accounts.render_failure(error, record)

    def whole(self, responses: Sequence[GenerationResponse], record: GenerationRecord) -> bytes:
        """Render the body in the requested format."""
        transcript = decode_json(responses[0].output[0], type=Transcript)
        match self._call.response_format:
            case "text":
                return f"{transcript.text.strip()}\n".encode()
            case "srt":
                return write_srt(transcript.segments or ()).encode()
            case "vtt":
                return write_vtt(transcript.segments or ()).encode()
            case "verbose_json":
                body = self._verbose(transcript, record)
            case "diarized_json":
                body = self._diarized(transcript, record)
            case _:
                body = {"text": transcript.text, **_logprobs(transcript.logprobs)}
        body["usage"] = _usage(record)
        if self._call.tells_routing:
            body["tollgate_metadata"] = tollgate_metadata(Routed.of(record))
        return to_json(body)

    def _previews(self) -> Iterator[TranscriptPreview]:
        yield TranscriptPreview(delta=self._transcript.text, logprobs=self._transcript.logprobs)
        if "speakers" in self._call.request.details:
            for segment in self._transcript.segments or ():
                yield TranscriptPreview(segment=segment)

    def _verbose(self, transcript: Transcript, record: GenerationRecord) -> dict[str, JsonValue]:
        request = self._call.request
        body: dict[str, JsonValue] = {
            "task": "translate" if request.translates else "transcribe",
            "language": transcript.language or request.language or "",
            "duration": _duration_s(transcript, record),
            "text": transcript.text,
        }
        if "segments" in request.details:
            segments = enumerate(transcript.segments or ())
            body["segments"] = [{"id": index, **_fields(segment)} for index, segment in segments]
        if "words" in request.details:
            body["words"] = to_builtins(transcript.words or ())
        return body

    def _diarized(self, transcript: Transcript, record: GenerationRecord) -> dict[str, JsonValue]:
        segments = enumerate(transcript.segments or ())
        return {
            "task": "transcribe",
            "duration": _duration_s(transcript, record),
            "text": transcript.text,
            "segments": [_stretch(segment, index) for index, segment in segments],
        }


def _events(preview: TranscriptPreview) -> bytes:
    events: list[dict[str, JsonValue]] = []
    if preview.delta:
        delta: dict[str, JsonValue] = {"type": "transcript.text.delta", "delta": preview.delta}
        events.append(delta | _logprobs(preview.logprobs))
    if preview.segment is not None:
        events.append(_stretch(preview.segment, 0))
    return b"".join(b"data: %b\n\n" % to_json(event) for event in events)


def _fields(segment: Segment) -> dict[str, JsonValue]:
    return dict(to_builtins(segment))


def _stretch(segment: Segment, index: int) -> dict[str, JsonValue]:
    """Return a segment with its speaker in OpenAI's form."""
    return {
        "type": "transcript.text.segment",
        "id": f"seg_{index}" if segment.id is None else str(segment.id),
        "start": segment.start,
        "end": segment.end,
        "text": segment.text,
        "speaker": segment.speaker or "",
    }


def _duration_s(transcript: Transcript, record: GenerationRecord) -> float:
    if transcript.duration_s is not None:
        return transcript.duration_s
    trace = record.trace.units
    return float(record.usage.audio_seconds or (trace.audio_seconds if trace else 0))


def _logprobs(logprobs: Sequence[TokenLogprob] | None) -> dict[str, JsonValue]:
    return {} if logprobs is None else {"logprobs": to_builtins(logprobs)}


def _usage(record: GenerationRecord) -> dict[str, JsonValue]:
    """Return the usage in the billed unit: seconds of audio, or tokens."""
    usage = record.usage
    if usage.audio_seconds is not None:
        return {"type": "duration", "seconds": usage.audio_seconds}
    audio = usage.audio_input_tokens or 0
    return {
        "type": "tokens",
        "input_tokens": usage.input_tokens,
        "input_token_details": {
            "audio_tokens": audio,
            "text_tokens": usage.input_tokens - audio,
        },
        "output_tokens": usage.output_tokens or 0,
        "total_tokens": usage.total_tokens,
    }


_BODY_HINT: Final = "Send a file_id (POST /v1/files/presigned) or url instead of file."
_RECORDING_HINT: Final = "Split the recording, or compress it."


class _Transcripts(OpenAIFormat):
    """The base of both formats, which differ in how requests are parsed."""

    def renderer(
        self, call: ParsedTranscription, served: ServedBy, *, credits_per_usd: Decimal
    ) -> TranscriptRenderer:
        return TranscriptRenderer(call, served, credits_per_usd=credits_per_usd)

    @override
    def error(
        self, error: GatewayError, request_id: str, routed: Routed | None = None
    ) -> ErrorReply:
        """Render an error in OpenAI's envelope; a size error explains how to send the file."""
        hint = _BODY_HINT if error.param is None else _RECORDING_HINT
        return openai_reply(error, request_id, routed, upload_hint=hint)


class Transcriptions(_Transcripts):
    """The format of POST /v1/audio/transcriptions."""

    parse = staticmethod(parse_transcription)


class Translations(_Transcripts):
    """The format of POST /v1/audio/translations."""

    parse = staticmethod(parse_translation)
