"""Encodes requests for speech by Gemini, and decodes the audio in the parts of the answer.

https://ai.google.dev/gemini-api/docs/speech-generation (2026-11-22): 24,000 samples per second,
whatever the media type. Gemini has no field for instructions, but follows those in the text.
"""

from collections.abc import Iterator
from typing import Final

from tollgate.core.errors import ErrorCode, UpstreamError
from tollgate.core.events import Ended, Output, Started, StreamEvent, UsageReported
from tollgate.core.json_value import JsonValue
from tollgate.core.work.speech import SpeechRequest
from tollgate.providers.codecs.gemini.decode import FINISH
from tollgate.providers.codecs.gemini.errors import error_in_stream, error_of_reply
from tollgate.providers.codecs.gemini.usage import usage_of
from tollgate.providers.codecs.gemini.wire import Blob, model_path, read_chunk
from tollgate.providers.ports.base import Frame, StreamedWorkCodec, Target, WireRequest
from tollgate.providers.shared.refusals import early_close_error, malformed_error
from tollgate.providers.shared.sound import SAMPLES_PER_SECOND, SoundSize, decode_sound, wav_header

_COMPLETE: Final = "STOP"
_REASON_LENGTH_MAX: Final = 64


def encode_speech(work: SpeechRequest, target: Target) -> WireRequest:
    voice: JsonValue = {"prebuiltVoiceConfig": {"voiceName": work.voice}}
    options = (("instructions", work.instructions), ("speed", work.speed))
    return WireRequest(
        path=f"{model_path(target)}:streamGenerateContent?alt=sse",
        body={
            "contents": [{"role": "user", "parts": [{"text": work.text}]}],
            "generationConfig": {
                "responseModalities": ["AUDIO"],
                "speechConfig": {"voiceConfig": voice},
            },
        },
        adapted=tuple(name for name, value in options if value is not None),
    )


class SpeechDecoder:
    def __init__(self, work: SpeechRequest, target: Target) -> None:
        self._work = work
        self._target = target
        self._size = SoundSize(target)
        self._started = False
        self._has_sound = False
        self._finish: str | None = None

    def feed(self, frame: Frame) -> Iterator[StreamEvent]:
        """Yield the audio and the usage of one chunk."""
        chunk = read_chunk(frame.data, self._target.provider)
        if chunk.error is not None:
            raise error_in_stream(chunk.error, self._target.provider)
        blocked = chunk.feedback.block_reason if chunk.feedback else None
        if blocked is not None:
            raise _cut_short(blocked, ErrorCode.CONTENT_FILTER, self._target)
        if not self._started:
            self._started = True
            yield Started(upstream_id=chunk.id, served_model=chunk.model)
        for candidate in (chunk.candidates or ())[:1]:
            for part in candidate.content.parts:
                if part.blob is not None and part.blob.base64:
                    yield self._output(part.blob)
            self._finish = candidate.finish_reason or self._finish
        if chunk.usage is not None:
            yield UsageReported(usage=usage_of(chunk.usage), raw=chunk.usage)

    def end(self) -> Iterator[StreamEvent]:
        """Yield the end of the audio; raise UpstreamError if a part of the text was not spoken."""
        if self._finish is None:
            raise early_close_error(self._target.provider)
        if self._finish != _COMPLETE:
            is_filtered = FINISH.get(self._finish) == "content_filter"
            code = ErrorCode.CONTENT_FILTER if is_filtered else ErrorCode.PROVIDER_UNAVAILABLE
            raise _cut_short(self._finish, code, self._target)
        if not self._has_sound:
            raise malformed_error(self._target.provider, "an answer without sound")
        yield Ended(finish="stop", raw_finish=self._finish)

    def _output(self, sound: Blob) -> Output:
        if f"rate={SAMPLES_PER_SECOND}" not in sound.media_type:
            raise malformed_error(self._target.provider, "audio in a format that was not requested")
        piece = self._size.checked(decode_sound(sound.base64, self._target))
        is_first, self._has_sound = not self._has_sound, True
        if is_first and self._work.sound == "wav":
            return Output(pieces=(wav_header(), piece))
        return Output(pieces=(piece,))


def _cut_short(reason: str, code: ErrorCode, target: Target) -> UpstreamError:
    """Return the error for audio that ends before the end of the text."""
    shown = reason[:_REASON_LENGTH_MAX]
    return UpstreamError(code, f"{target.provider} stopped before the end of the text: {shown}.")


SPEECH_CODEC: Final = StreamedWorkCodec(
    encode=encode_speech, decoder=SpeechDecoder, error=error_of_reply
)
