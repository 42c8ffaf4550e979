"""Parses a request to speak a text."""

from collections.abc import Mapping
from typing import Final

from tollgate.core.request import SoundFormat
from tollgate.core.work.speech import SpeechRequest
from tollgate.ingress.base import ParsedWork
from tollgate.ingress.shared.ignored_fields import printable_names
from tollgate.ingress.shared.preferences import parse_preferences, unknown_fields
from tollgate.ingress.validation import validate_body
from tollgate.ingress.work.speech.wire.speech_request import OwnVoice, SpeechBody

MEDIA_TYPES: Final[Mapping[SoundFormat, str]] = {
    "mp3": "audio/mpeg",
    "opus": "audio/opus",
    "aac": "audio/aac",
    "flac": "audio/flac",
    "wav": "audio/wav",
    "pcm": "audio/pcm",
}


def parse_speech(body: bytes) -> ParsedWork:
    """Parse a request; raise RequestError with the field at fault."""
    asked = validate_body(SpeechBody, body)
    sound = asked.response_format or "mp3"
    request = SpeechRequest(
        model=asked.model,
        text=asked.input,
        voice=asked.voice.id if isinstance(asked.voice, OwnVoice) else asked.voice,
        is_own_voice=isinstance(asked.voice, OwnVoice),
        instructions=asked.instructions or None,
        sound=sound,
        speed=asked.speed,
        stream=True,
        user=asked.user,
        metadata=asked.metadata or {},
        preferences=parse_preferences(asked),
    )
    return ParsedWork(
        request=request,
        # The sound leaves as it comes, in events or as it is.
        stream=True,
        media_type="" if asked.stream_format == "sse" else MEDIA_TYPES[sound],
        ignored=printable_names(unknown_fields(asked)),
    )
