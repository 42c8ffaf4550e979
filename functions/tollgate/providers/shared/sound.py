"""Limits, base64 decoding, usage and WAV headers for audio from providers."""

import binascii
import struct
from base64 import b64decode
from typing import Final

from tollgate.core.usage import Usage
from tollgate.core.work.speech import SpeechRequest
from tollgate.providers.ports.base import Target
from tollgate.providers.shared.refusals import malformed_error

# Lambda's limit for a reply ("Lambda quotas", 2026-11-22).
SOUND_BYTES_MAX: Final = 200 * 1024 * 1024
# The format of uncompressed audio, which has one channel.
SAMPLES_PER_SECOND: Final = 24_000
SAMPLE_BYTES: Final = 2
# The size in the header of audio with unknown length: players then read to the end of the file.
_UNKNOWN: Final = 0xFFFFFFFF
_HEADER_BYTES_AFTER_SIZE: Final = 36
_FORMAT_BYTES: Final = 16
_PCM: Final = 1
_CHANNELS: Final = 1


def wav_header(size: int | None = None) -> bytes:
    """Return the WAV header for this number of sample bytes; None for an unknown number."""
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
        """Return the next piece; raise UpstreamError if the audio exceeds the limit for a reply."""
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
    """Return the usage in characters of the text; if the provider charges for characters, the
    tokens are 0.
    """
    characters = len(work.text)
    if target.dialect.speech.usage == "characters":
        return Usage(uncached_input_tokens=0, output_tokens=0, characters=characters)
    return Usage(characters=characters)
