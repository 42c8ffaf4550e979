"""Detection of recordings and of their length, without decoding the audio.

The length of a WAV file is exact if nothing follows its samples. For other formats, the length
comes from headers, which may be wrong, or is estimated from the size. Signatures: RFC 9639
(FLAC), RFC 3533 (Ogg), RFC 8794 (WebM), ISO/IEC 14496-12 (MP4), ISO/IEC 11172-3 (MP3); WAV: RFC
2361 and Microsoft's "Multiple Channel Audio Data and WAVE Files" (2026-11-22).
"""

import struct
from io import BytesIO
from typing import Final

from typing_extensions import override

from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.work.recording import (
    RECORDING_BYTES_MAX,
    RECORDING_SECONDS_MAX,
    Recording,
    RecordingFormat,
    longest_s,
)
from tollgate.ingress.shared.media import field_refusal

_LISTED: Final = "flac, mp3, mp4, m4a, mpga, ogg, wav or webm"
# A typical bit rate for speech and music, used if the headers do not state a length.
_BITS_PER_SECOND_TYPICAL: Final = 64_000
# The limit on reads. The length of a real file is found after a few hundred reads (up to three per
# page); a malicious file would need millions.
_READS_MAX: Final = 50_000
_CHUNKS_MAX: Final = 1_000
# The first page of FLAC in Ogg states the length, and pages have this maximum size (RFC 3533, 6).
# Only that page is parsed, because tinytag reads FLAC packets from copies, and `_BoundedFile` does
# not count reads of copies.
_FLAC_IN_OGG: Final = b"\x7fFLAC"
_PAGE_BYTES_MAX: Final = 65_307
_FMT: Final = struct.Struct("<HHIIHH")
_PCM: Final = frozenset({0x0001, 0x0003, 0x0006, 0x0007})
# A-law and mu-law always have one byte per sample, even if the header differs (ITU-T G.711).
_BYTE_SAMPLES: Final = frozenset({0x0006, 0x0007})
_BITS_MAX: Final = 64
_EXTENSIBLE: Final = 0xFFFE
# Streaming writers use these sizes, because they cannot seek back to write the real size.
_UNKNOWN_SIZES: Final = frozenset({0, 0x7FFFFFFF, 0xFFFFFFFF})


def read_recording(content: bytes, field: str) -> Recording:
    """Return the recording; raise RequestError about `field` for any other content."""
    if not content:
        raise field_refusal(field, "must not be empty")
    if len(content) > RECORDING_BYTES_MAX:
        raise RequestError(
            ErrorCode.PAYLOAD_TOO_LARGE,
            f"{field} must have at most {RECORDING_BYTES_MAX:,} bytes.",
            param=field,
        )
    format_ = _detect_format(content)
    if format_ is None:
        raise field_refusal(field, f"must be a recording: {_LISTED}")
    if format_ == "wav":
        return _read_wav(content, field)
    header_length_s = None if format_ == "webm" else _stated_length_s(content, format_, field)
    likely = header_length_s or len(content) * 8 / _BITS_PER_SECOND_TYPICAL
    seconds = _whole_seconds(likely)
    return Recording(
        content=content,
        format=format_,
        seconds=seconds,
        seconds_max=max(seconds, longest_s(len(content), format_)),
    )


def _detect_format(content: bytes) -> RecordingFormat | None:
    match content[:4]:
        case b"RIFF":
            return "wav" if content[8:12] == b"WAVE" else None
        case b"OggS":
            return "ogg"
        case b"fLaC":
            return "flac"
        case b"\x1aE\xdf\xa3":
            return "webm"
        case _:
            pass
    if content[4:8] == b"ftyp":
        return "mp4"
    # MPEG audio: 11 sync bits, a version that is not reserved, and layer II or III.
    is_mpeg = (
        len(content) > 2
        and content[0] == 0xFF
        and content[1] & 0xE0 == 0xE0
        and content[1] & 0x18 != 0x08
        and content[1] & 0x06 in (0x02, 0x04)
    )
    return "mp3" if is_mpeg or content.startswith(b"ID3") else None


class _BoundedFile(BytesIO):
    """An in-memory file that raises OSError after `_READS_MAX` reads."""

    reads = 0

    @override
    def read(self, size: int | None = -1, /) -> bytes:
        self.reads += 1
        if self.reads > _READS_MAX:
            raise OSError("read too often")
        return super().read(size)


def _stated_length_s(content: bytes, format_: RecordingFormat, field: str) -> float | None:
    """Return the length in the headers; None if `_READS_MAX` reads do not find it."""
    # Imported only when needed, because WAV files are measured without tinytag.
    from tinytag import TinyTag, TinyTagException

    is_nested = format_ == "ogg" and _FLAC_IN_OGG in content
    file = _BoundedFile(content[:_PAGE_BYTES_MAX] if is_nested else content)
    try:
        return TinyTag.get(file_obj=file, tags=False).duration
    except (TinyTagException, OSError, ValueError, OverflowError) as invalid:
        if file.reads > _READS_MAX:
            return None
        raise field_refusal(field, f"is not a readable {format_} file") from invalid


def _whole_seconds(length_s: float) -> int:
    return max(1, -int(-min(length_s, RECORDING_SECONDS_MAX) // 1))


def _read_wav(content: bytes, field: str) -> Recording:
    """Measure a WAV file by its samples; raise RequestError if the header contradicts them."""
    bytes_per_second: int | None = None
    is_exact = False
    offset = 12
    for _ in range(_CHUNKS_MAX):
        name, size_field = content[offset : offset + 4], content[offset + 4 : offset + 8]
        if len(size_field) < 4:
            break
        size, offset = int.from_bytes(size_field, "little"), offset + 8
        if name == b"fmt ":
            if bytes_per_second is not None:
                # WAV readers disagree about which of two formats is used.
                raise field_refusal(field, "is not a readable WAV file: it has two formats")
            bytes_per_second, is_exact = _sample_rate(content[offset : offset + size], field)
        elif name == b"data":
            if bytes_per_second is None:
                break
            return _measure_wav(
                content,
                field,
                size=_data_size(size, len(content) - offset, field),
                size_max=len(content) - offset,
                bytes_per_second=bytes_per_second,
                is_exact=is_exact,
            )
        # A chunk of odd size is padded, because chunks start at even offsets.
        offset += size + size % 2
    raise field_refusal(field, "is not a readable WAV file: its header is incomplete")


def _sample_rate(chunk: bytes, field: str) -> tuple[int, bool]:
    """Return the bytes per second, and whether the sample format alone determines this number."""
    if len(chunk) < _FMT.size:
        raise field_refusal(field, "is not a readable WAV file: its header is incomplete")
    tag, channels, rate, stated_rate, _, bits = _FMT.unpack_from(chunk)
    if tag == _EXTENSIBLE and len(chunk) >= 26:
        tag = int.from_bytes(chunk[24:26], "little")
    is_exact = tag in _PCM
    bits = 8 if tag in _BYTE_SAMPLES else bits
    bytes_per_second = channels * rate * -(-bits // 8) if is_exact else stated_rate
    if bytes_per_second <= 0 or (is_exact and bits > _BITS_MAX):
        raise field_refusal(field, "is not a readable WAV file: it states no sample rate")
    return bytes_per_second, is_exact


def _data_size(size: int, available: int, field: str) -> int:
    if size in _UNKNOWN_SIZES:
        size = available
    if size > available:
        raise field_refusal(
            field,
            f"is cut: its header states {size:,} bytes of samples, the file has {available:,}",
        )
    if size == 0:
        raise field_refusal(field, "has no samples")
    return size


def _measure_wav(
    content: bytes,
    field: str,
    *,
    size: int,
    size_max: int,
    bytes_per_second: int,
    is_exact: bool,
) -> Recording:
    """Return a recording whose upper bound counts all bytes after the header as samples.

    Some readers do the same: ffmpeg also reads later sample chunks (libavformat/wavdec.c).
    """
    seconds = _whole_seconds(size / bytes_per_second)
    longest = (
        _whole_seconds(size_max / bytes_per_second) if is_exact else longest_s(size_max, "wav")
    )
    return Recording(
        content=content, format="wav", seconds=seconds, seconds_max=max(seconds, longest)
    )
