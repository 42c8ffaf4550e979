"""Recorded speech: its bytes, their format, and its length."""

from collections.abc import Mapping
from typing import Final, Literal

from msgspec import Struct

# What OpenAI takes, whose limit of bytes is that of others too.
# https://platform.openai.com/docs/guides/speech-to-text (2026-11-22)
RecordingFormat = Literal["wav", "mp3", "mp4", "ogg", "flac", "webm"]
RECORDING_BYTES_MAX: Final = 25 * 1024 * 1024
# Longer than any recording of that size is in practice; more is the word of its header alone.
RECORDING_SECONDS_MAX: Final = 100 * 3_600
RECORDING_TYPES: Final[Mapping[RecordingFormat, str]] = {
    "wav": "audio/wav",
    "mp3": "audio/mpeg",
    "mp4": "audio/mp4",
    "ogg": "audio/ogg",
    "flac": "audio/flac",
    "webm": "audio/webm",
}
# The least bits a second of speech as encoders make it: layer III of MPEG-2 has no index below 8
# kbit/s (ISO/IEC 13818-3), Opus none below 6 (RFC 6716, 2.1.1), AAC for speech starts at 8 (ISO/IEC
# 14496-3), and FLAC keeps about half of 8,000 samples of 8 bits (RFC 9639).
_BITS_PER_SECOND_MIN: Final[Mapping[RecordingFormat, int]] = {
    "wav": 8_000,
    "mp3": 8_000,
    "mp4": 8_000,
    "ogg": 6_000,
    "flac": 32_000,
    "webm": 6_000,
}


class Recording(Struct, frozen=True, kw_only=True):
    """A recording whose format was detected; lengths are in seconds, each that began counted."""

    content: bytes
    format: RecordingFormat
    seconds: int
    """The length that its header states, or that its size makes likely."""
    seconds_max: int
    """The longest that it can be, by samples or by bytes."""


def longest_s(size_bytes: int, format_: RecordingFormat) -> int:
    """Return the seconds that so many bytes have at most."""
    return -(-size_bytes * 8 // _BITS_PER_SECOND_MIN[format_])
