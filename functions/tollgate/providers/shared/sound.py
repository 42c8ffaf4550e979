"""Audio from providers: its size, its base64, its usage, and the header of a WAV file."""

import binascii
import struct
from base64 import b64decode
from typing import Final

from tollgate.core.usage import Usage
from tollgate.core.work.speech import SpeechRequest
from tollgate.providers.ports.base import Target
from tollgate.providers.shared.refusals import malformed_error

# Lambda cannot return a larger reply ("Lambda quotas", 2026-11-22).
SOUND_BYTES_MAX: Final = 200 * 1024 * 1024
# Uncompressed audio has one channel and these sizes.
SAMPLES_PER_SECOND: Final = 24_000
SAMPLE_BYTES: Final = 2
# Size in the header while the length is not known yet: players read to the end of the file.
_UNKNOWN: Final = 0xFFFFFFFF
_HEADER_BYTES_AFTER_SIZE: Final = 36
_FORMAT_BYTES: Final = 16
_PCM: Final = 1
_CHANNELS: Final = 1


def wav_header(size: int | None = None) -> bytes:
    """Return the WAV header for this many bytes of samples; None if the size is not known yet."""
    return struct.pack(
        "<4sI4s4sIHHIIHH4sI",
        b"RIFF",
        _UNKNOWN if size is None else size + _HEADER_BYTES_AFTER_SIZE,
        b"WAVE",
        b"fmt ",
        _FORMAT_BYTES,
        _PCM,
        _CHANNELS,
        SAMPLES_PER_SECOND,
        SAMPLES_PER_SECOND * SAMPLE_BYTES * _CHANNELS,
        SAMPLE_BYTES * _CHANNELS,
        8 * SAMPLE_BYTES,
        b"data",
        _UNKNOWN if size is None else size,
    )


class SoundSize:
    """Counts the bytes of one audio stream."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._bytes = 0

    def checked(self, piece: bytes) -> bytes:
        """Return the next piece; raise UpstreamError if the audio is larger than a reply may be."""
        self._bytes += len(piece)
        if self._bytes > SOUND_BYTES_MAX:
            raise malformed_error(self._target.provider, f"more than {SOUND_BYTES_MAX} bytes")
        return piece


def decode_sound(base64: str, target: Target) -> bytes:
    """Decode base64 audio; raise UpstreamError if the text is not base64."""
    try:
        return b64decode(base64, validate=True)
    except (binascii.Error, ValueError) as invalid:
        raise malformed_error(target.provider, "audio that is not base64") from invalid


def usage_by_characters(work: SpeechRequest, target: Target) -> Usage:
    """Return the usage in characters of the text; if characters are charged for, tokens are 0."""
    characters = len(work.text)
    if target.dialect.speech.usage == "characters":
        return Usage(uncached_input_tokens=0, output_tokens=0, characters=characters)
    return Usage(characters=characters)
