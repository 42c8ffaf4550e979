"""Renders a transcript in the format that its caller requested, whole or in OpenAI's events."""

from collections.abc import Iterator, Sequence
from decimal import Decimal

from msgspec import to_builtins
from msgspec.json import decode as decode_json
from pydantic_core import to_json

from tollgate.core.errors import GatewayError
from tollgate.core.events import Output, Partial, StreamEvent
from tollgate.core.json_value import JsonValue
from tollgate.core.records.generation import GenerationRecord
from tollgate.core.response import GenerationResponse
from tollgate.core.usage import Usage
from tollgate.core.work.transcription import Segment, TokenLogprob, Transcript, TranscriptPreview
from tollgate.ingress.base import Routed, ServedBy
from tollgate.ingress.errors import openai_error, tollgate_metadata
from tollgate.ingress.shared.accounts import render_accounts
from tollgate.ingress.work.transcription.parse import ParsedTranscription
from tollgate.ingress.work.transcription.subtitles import write_srt, write_vtt


class TranscriptRenderer:
    """Renders one reply."""

    def __init__(
        self, call: ParsedTranscription, served: ServedBy, *, credits_per_usd: Decimal
    ) -> None:
        self._call = call
        self._served = served
        self._credits_per_usd = credits_per_usd
        self._is_previewed = False
        self._transcript = Transcript(text="")

    def feed(self, event: StreamEvent, choice: int = 0) -> bytes:
        """Return an event for each preview, or for the transcript where there was none."""
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
        """Return the event with the whole text, usage and price."""
        done: dict[str, JsonValue] = {
            "type": "transcript.text.done",
            "text": self._transcript.text,
            **_logprobs(self._transcript.logprobs),
        }
        return b"data: %b,%b}\n\n" % (to_json(done)[:-1], self._accounts(record))

    def fail(self, error: GatewayError, record: GenerationRecord) -> bytes:
        """Return the event that says that the transcript is not complete."""
        broken = to_json(openai_error(error, self._served.generation_id))
        return b'data: {"type":"error","error":%b,%b}\n\n' % (broken, self._accounts(record))

    def whole(self, responses: Sequence[GenerationResponse], record: GenerationRecord) -> bytes:
        """Return the body in the requested format."""
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
        body["usage"] = _usage(record.usage)
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
            body["segments"] = [{"id": place, **_fields(each)} for place, each in segments]
        if "words" in request.details:
            body["words"] = to_builtins(transcript.words or ())
        return body

    def _diarized(self, transcript: Transcript, record: GenerationRecord) -> dict[str, JsonValue]:
        segments = enumerate(transcript.segments or ())
        return {
            "task": "transcribe",
            "duration": _duration_s(transcript, record),
            "text": transcript.text,
            "segments": [_stretch(each, place) for place, each in segments],
        }

    def _accounts(self, record: GenerationRecord) -> bytes:
        return render_accounts(
            record,
            self._served,
            credits_per_usd=self._credits_per_usd,
            tells_routing=self._call.tells_routing,
            usage=_usage(record.usage),
        )


def _events(preview: TranscriptPreview) -> bytes:
    shown: list[dict[str, JsonValue]] = []
    if preview.delta:
        delta: dict[str, JsonValue] = {"type": "transcript.text.delta", "delta": preview.delta}
        shown.append(delta | _logprobs(preview.logprobs))
    if preview.segment is not None:
        shown.append(_stretch(preview.segment, 0))
    return b"".join(b"data: %b\n\n" % to_json(event) for event in shown)


def _fields(segment: Segment) -> dict[str, JsonValue]:
    return dict(to_builtins(segment))


def _stretch(segment: Segment, place: int) -> dict[str, JsonValue]:
    """Return a stretch with its speaker, as OpenAI writes one."""
    return {
        "type": "transcript.text.segment",
        "id": f"seg_{place}" if segment.id is None else str(segment.id),
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


def _usage(usage: Usage) -> dict[str, JsonValue]:
    """Return the usage by the unit that was charged for."""
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
