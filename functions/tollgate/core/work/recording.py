"""Recordings of speech: their bytes, format and length."""

from collections.abc import Mapping
from typing import Final, Literal

from msgspec import Struct

# The formats and the size that OpenAI accepts. The size limit of other providers is the same.
# https://platform.openai.com/docs/guides/speech-to-text (2026-11-22)
RecordingFormat = Literal["wav", "mp3", "mp4", "ogg", "flac", "webm"]
RECORDING_BYTES_MAX: Final = 25 * 1024 * 1024
# No real recording of that size is longer, so a header that declares a greater length must be
# wrong.
RECORDING_SECONDS_MAX: Final = 100 * 3_600
RECORDING_TYPES: Final[Mapping[RecordingFormat, str]] = {
    "wav": "audio/wav",
    "mp3": "audio/mpeg",
    "mp4": "audio/mp4",
    "ogg": "audio/ogg",
    "flac": "audio/flac",
    "webm": "audio/webm",
}
# The lowest bit rates at which encoders store speech: 8 kbit/s for layer III of MPEG-2 (ISO/IEC
# 13818-3), 6 for Opus (RFC 6716, 2.1.1), 8 for AAC (ISO/IEC 14496-3), and for FLAC about half of
# 8,000 samples of 8 bits (RFC 9639).
_BITS_PER_SECOND_MIN: Final[Mapping[RecordingFormat, int]] = {
    "wav": 8_000,
    "mp3": 8_000,
    "mp4": 8_000,
    "ogg": 6_000,
    "flac": 32_000,
    "webm": 6_000,
}


class Recording(Struct, frozen=True, kw_only=True):
    """A recording whose format has been detected. Lengths are in whole seconds, rounded up."""

    content: bytes
    format: RecordingFormat
    seconds: int
    """The length declared in the header, or estimated from the size."""
    seconds_max: int
    """The upper bound on the length, from the number of samples or bytes."""


def longest_s(size_bytes: int, format_: RecordingFormat) -> int:
    """Return the maximum length, in seconds, of a recording of this size."""
    return -(-size_bytes * 8 // _BITS_PER_SECOND_MIN[format_])
