"""The client format of OpenAI's text-to-speech API."""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Final

from typing_extensions import override

from tollgate.core.errors import GatewayError
from tollgate.core.events import Output, StreamEvent
from tollgate.core.json_value import JsonValue
from tollgate.core.records.generation import GenerationRecord
from tollgate.core.request import SoundFormat
from tollgate.core.response import GenerationResponse
from tollgate.core.work.speech import SpeechRequest
from tollgate.ingress.base import NO_HEADERS, ParsedWork, Renderer, ServedBy
from tollgate.ingress.shared.accounts import ReplyAccounts
from tollgate.ingress.shared.fields import parse_preferences, printable_names, unknown_fields
from tollgate.ingress.shared.openai_format import OpenAIFormat, WholeReplyRenderer
from tollgate.ingress.validation import validate_body
from tollgate.ingress.work.speech.models import OwnVoice, SpeechBody

MEDIA_TYPES: Final[Mapping[SoundFormat, str]] = {
    "mp3": "audio/mpeg",
    "opus": "audio/opus",
    "aac": "audio/aac",
    "flac": "audio/flac",
    "wav": "audio/wav",
    "pcm": "audio/pcm",
}


class SoundRenderer(WholeReplyRenderer):
    """Renders a reply that consists of the audio bytes."""

    @override
    def feed(self, event: StreamEvent, choice: int = 0) -> bytes:
        """Return the next piece of the audio."""
        return b"".join(event.pieces) if isinstance(event, Output) else b""

    @override
    def whole(self, responses: Sequence[GenerationResponse], record: GenerationRecord) -> bytes:
        """Return the complete audio."""
        return b"".join(responses[0].output)


class SpeechEventsRenderer:
    """Renders audio in OpenAI's events; the last event has usage and cost."""

    def __init__(self, call: ParsedWork, served: ServedBy, *, credits_per_usd: Decimal) -> None:
        self._served = served
        self._accounts = ReplyAccounts(served, credits_per_usd, call.tells_routing, _usage)

    def feed(self, event: StreamEvent, choice: int = 0) -> bytes:
        """Render an event for each piece of audio."""
        return b"".join(map(_delta, event.pieces)) if isinstance(event, Output) else b""

    def close(self, record: GenerationRecord) -> bytes:
        """Render the last event of complete audio."""
        return b'data: {"type":"speech.audio.done",%b}\n\n' % self._accounts.render(record)

    def fail(self, error: GatewayError, record: GenerationRecord) -> bytes:
        """Render the last event of audio that broke off."""
        return b'data: {"type":"error",%b}\n\n' % self._accounts.render_failure(error, record)

    def whole(self, responses: Sequence[GenerationResponse], record: GenerationRecord) -> bytes:
        """Render all events."""
        return b"".join(map(_delta, responses[0].output)) + self.close(record)


def _usage(record: GenerationRecord) -> dict[str, JsonValue]:
    return {
        "input_tokens": record.usage.input_tokens,
        "output_tokens": record.usage.output_tokens or 0,
        "total_tokens": record.usage.total_tokens,
        "characters": record.usage.characters or 0,
    }


def _delta(piece: bytes) -> bytes:
    return b'data: {"type":"speech.audio.delta","audio":"%b"}\n\n' % b64encode(piece)


class Speech(OpenAIFormat):
    """The format of POST /v1/audio/speech; a reply is audio, or events with audio."""

    def parse(self, body: bytes, headers: Mapping[str, str] = NO_HEADERS) -> ParsedWork:
        fields = validate_body(SpeechBody, body)
        sound = fields.response_format or "mp3"
        request = SpeechRequest(
            model=fields.model,
            text=fields.input,
            voice=fields.voice.id if isinstance(fields.voice, OwnVoice) else fields.voice,
            is_own_voice=isinstance(fields.voice, OwnVoice),
            instructions=fields.instructions or None,
            sound=sound,
            speed=fields.speed,
            stream=True,
            user=fields.user,
            metadata=fields.metadata or {},
            preferences=parse_preferences(fields),
        )
        return ParsedWork(
            request=request,
            # Audio is streamed, whether in events or as raw bytes.
            stream=True,
            media_type="" if fields.stream_format == "sse" else MEDIA_TYPES[sound],
            ignored=printable_names(unknown_fields(fields)),
        )

    def renderer(self, call: ParsedWork, served: ServedBy, *, credits_per_usd: Decimal) -> Renderer:
        """Return a new renderer for audio or for events, as the caller requests."""
        if call.media_type:
            return SoundRenderer(call, served)
        return SpeechEventsRenderer(call, served, credits_per_usd=credits_per_usd)
