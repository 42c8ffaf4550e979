"""Encodes a text to speak, and decodes the audio, which arrives as bytes or in OpenAI's events.

https://platform.openai.com/docs/api-reference/audio/createSpeech (2026-11-22). OpenAI reports
tokens only in the event `speech.audio.done`. Together's name for PCM is `raw`, with a
`response_encoding` (https://docs.together.ai/reference/audio-speech, 2026-11-22).
"""

from collections.abc import Iterator
from typing import Final
from urllib.parse import quote

from msgspec import Struct

from tollgate.core.events import Ended, Output, Started, StreamEvent, UsageReported
from tollgate.core.json_value import JsonValue
from tollgate.core.usage import Usage
from tollgate.core.work.speech import SpeechRequest
from tollgate.providers.ports.base import Decoder, Frame, StreamedWorkCodec, Target, WireRequest
from tollgate.providers.shared.counts import Counts
from tollgate.providers.shared.openai_errors import (
    parse_openai_reply_error,
    parse_openai_stream_error,
)
from tollgate.providers.shared.refusals import early_close_error, malformed_error
from tollgate.providers.shared.sound import SoundSize, decode_sound, usage_by_characters
from tollgate.providers.shared.vectors import parse_body


def encode(work: SpeechRequest, target: Target) -> WireRequest:
    """Encode the text, and the options that the server accepts."""
    dialect = target.dialect.speech
    voice: JsonValue = {"id": work.voice} if work.is_own_voice else work.voice
    body: dict[str, JsonValue] = {
        "model": target.upstream_model,
        "input": work.text,
        "voice": voice,
        "response_format": work.sound,
    }
    if work.sound == "pcm" and dialect.raw_pcm:
        body |= {"response_format": "raw", "response_encoding": "pcm_s16le"}
    options: tuple[tuple[str, JsonValue, bool], ...] = (
        ("instructions", work.instructions, dialect.instructions),
        ("speed", work.speed, dialect.speed),
    )
    body |= {name: value for name, value, accepted in options if accepted and value is not None}
    in_events = dialect.usage == "events"
    if in_events:
        body["stream_format"] = "sse"
    return WireRequest(
        path=(dialect.path or "/audio/speech").replace(
            "{model}", quote(target.upstream_model, safe="")
        ),
        body=body,
        adapted=tuple(
            name for name, value, accepted in options if not accepted and value is not None
        ),
        is_raw=not in_events,
    )


def make_speech_decoder(work: SpeechRequest, target: Target) -> Decoder:
    """Return the decoder for the requested form of the answer, events or bytes."""
    if target.dialect.speech.usage == "events":
        return SpeechEventsDecoder(work, target)
    return SoundDecoder(work, target)


class SoundDecoder:
    """Decodes audio bytes, without a usage report from the server."""

    def __init__(self, work: SpeechRequest, target: Target) -> None:
        self._work = work
        self._target = target
        self._size = SoundSize(target)
        self._started = False

    def feed(self, frame: Frame) -> Iterator[StreamEvent]:
        """Yield the audio of one chunk."""
        if not self._started:
            self._started = True
            yield Started()
            yield UsageReported(usage=usage_by_characters(self._work, self._target))
        yield Output(pieces=(self._size.checked(frame.data),))

    def end(self) -> Iterator[StreamEvent]:
        """Yield the end of the audio; raise UpstreamError if there was no audio."""
        if not self._started:
            raise early_close_error(self._target.provider)
        yield Ended(finish="stop")


class _Event(Struct, frozen=True):
    """The fields of all events that the gateway reads."""

    type: str = ""
    audio: str = ""
    usage: JsonValue = None
    error: JsonValue = None


class SpeechEventsDecoder:
    """Decodes OpenAI's events."""

    def __init__(self, work: SpeechRequest, target: Target) -> None:
        self._work = work
        self._target = target
        self._size = SoundSize(target)
        self._started = False
        self._has_sound = False
        self._done = False

    def feed(self, frame: Frame) -> Iterator[StreamEvent]:
        """Yield the audio or the usage of one event; ignore events of unknown types."""
        if frame.data.strip() in (b"", b"[DONE]"):
            return
        event = parse_body(frame.data, _Event, self._target)
        if event.error is not None or "error" in (event.type, frame.event):
            raise parse_openai_stream_error(event.error, self._target.provider)
        if not self._started:
            self._started = True
            yield Started()
        if event.type == "speech.audio.delta" and event.audio:
            self._has_sound = True
            yield Output(pieces=(self._size.checked(decode_sound(event.audio, self._target)),))
        elif event.type == "speech.audio.done":
            self._done = True
            yield self._usage(event.usage)

    def end(self) -> Iterator[StreamEvent]:
        """Yield the end of the audio; raise UpstreamError if the provider reported no end."""
        if not self._done:
            raise early_close_error(self._target.provider)
        if not self._has_sound:
            raise malformed_error(self._target.provider, "an answer without sound")
        yield Ended(finish="stop")

    def _usage(self, reported: JsonValue) -> UsageReported:
        counts = Counts(reported)
        spoken = counts.count("output_tokens")
        return UsageReported(
            usage=Usage(
                uncached_input_tokens=counts.count("input_tokens"),
                output_tokens=spoken,
                audio_output_tokens=spoken,
                characters=len(self._work.text),
            ),
            raw=reported,
        )


CODEC: Final = StreamedWorkCodec(
    encode=encode, decoder=make_speech_decoder, error=parse_openai_reply_error
)
