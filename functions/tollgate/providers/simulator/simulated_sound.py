"""The simulator's speech: a tone, or silence in MP3, as long as the spoken text would be."""

import math
import struct
from collections.abc import Iterator
from typing import Final, Literal

from pydantic import BaseModel, Field

from tollgate.providers.shared.sound import SAMPLE_BYTES, SAMPLES_PER_SECOND, wav_header

_SECONDS_PER_CHARACTER: Final = 0.06
# The length of a chunk is a tenth of a second.
_SAMPLES_PER_CHUNK: Final = SAMPLES_PER_SECOND // 10
# The tone has 400 periods per second, and each chunk has whole periods, so all chunks are equal.
_SAMPLES_PER_PERIOD: Final = 60
_LOUDNESS: Final = 8_000
_TONE: Final = b"".join(
    struct.pack("<h", round(_LOUDNESS * math.sin(2 * math.pi * place / _SAMPLES_PER_PERIOD)))
    for place in range(_SAMPLES_PER_PERIOD)
) * (_SAMPLES_PER_CHUNK // _SAMPLES_PER_PERIOD)
# A frame of MPEG-2 Layer III without any sound: 24 kHz, one channel, 8 kbit/s. It lasts 24 ms.
# https://www.mp3-tech.org/programmer/frame_header.html (2026-11-22)
_SILENCE: Final = bytes.fromhex("fff314c0") + bytes(20)
_SECONDS_OF_SILENCE: Final = 0.024
_FRAMES_PER_CHUNK: Final = 4


class _SpeechRequest(BaseModel):
    input: str = Field(max_length=65_536)
    response_format: Literal["mp3", "wav", "pcm"]
    speed: float = Field(default=1, ge=0.25, le=4)


def speak(body: bytes) -> Iterator[bytes]:
    """Return the audio for a text in chunks; the length depends on the text and the speed."""
    request = _SpeechRequest.model_validate_json(body)
    seconds = len(request.input) * _SECONDS_PER_CHARACTER / request.speed
    if request.response_format == "mp3":
        frames = _whole(seconds / _SECONDS_OF_SILENCE)
        return _chunks(_SILENCE * _FRAMES_PER_CHUNK, frames * len(_SILENCE))
    size = _whole(seconds * SAMPLES_PER_SECOND) * SAMPLE_BYTES
    header = wav_header(size) if request.response_format == "wav" else b""
    return _chunks(_TONE, size, header)


def _whole(number: float) -> int:
    return max(1, round(number))


def _chunks(repeated: bytes, size: int, header: bytes = b"") -> Iterator[bytes]:
    """Yield `header` and then `size` bytes, in chunks that are equal to `repeated`; the last chunk
    is cut to fit.
    """
    for start in range(0, size, len(repeated)):
        yield header + repeated[: size - start]
        header = b""
