"""Encodes a text to speak, and decodes the base64 audio in the answer.

`POST /v1/audio/generation` accepts `text`, `speed`, `language` and `voice`, and returns `audio` and
`duration` (Hyperbolic's catalog of APIs, seen 2026-11-22). The server chooses the model.
"""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from tollgate.core.events import Ended, Output, Started, StreamEvent, UsageReported
from tollgate.core.json_value import JsonValue
from tollgate.core.work.speech import SpeechRequest
from tollgate.providers.ports.base import Frame, StreamedWorkCodec, Target, WireRequest
from tollgate.providers.shared.openai_errors import parse_openai_reply_error
from tollgate.providers.shared.refusals import early_close_error, malformed_error
from tollgate.providers.shared.sound import decode_sound, usage_by_characters
from tollgate.providers.shared.vectors import parse_body

_REPLY_BYTES_MAX: Final = 64 * 1024 * 1024
_MP3_BEGINNINGS: Final = (b"ID3", b"\xff\xfb", b"\xff\xf3", b"\xff\xf2")


class _Answer(Struct, frozen=True):
    audio: str


def encode(work: SpeechRequest, target: Target) -> WireRequest:
    """Encode the text, without instructions: the server has no field for them."""
    body: dict[str, JsonValue] = {"text": work.text, "voice": work.voice}
    if work.speed is not None:
        body["speed"] = work.speed
    return WireRequest(
        path=target.dialect.speech.path or "/v1/audio/generation",
        body=body,
        adapted=("instructions",) if work.instructions else (),
        reply_bytes_max=_REPLY_BYTES_MAX,
    )


class SpeechDecoder:
    """Decodes an answer, which is not streamed."""

    def __init__(self, work: SpeechRequest, target: Target) -> None:
        self._work = work
        self._target = target
        self._answered = False

    def feed(self, frame: Frame) -> Iterator[StreamEvent]:
        """Yield the audio; raise UpstreamError for audio in any format but MP3."""
        sound = decode_sound(parse_body(frame.data, _Answer, self._target).audio, self._target)
        if not sound.startswith(_MP3_BEGINNINGS):
            raise malformed_error(self._target.provider, "audio that is not MP3")
        self._answered = True
        yield Started()
        yield UsageReported(usage=usage_by_characters(self._work, self._target))
        yield Output(pieces=(sound,))

    def end(self) -> Iterator[StreamEvent]:
        """Yield the end of the audio; raise UpstreamError if there was no audio."""
        if not self._answered:
            raise early_close_error(self._target.provider)
        yield Ended(finish="stop")


CODEC: Final = StreamedWorkCodec(
    encode=encode, decoder=SpeechDecoder, error=parse_openai_reply_error
)
