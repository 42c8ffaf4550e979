"""Recordings of each format, as short as they can be. Synthetic."""

import struct

# MPEG-1 layer III, 128 kbit/s, 44,100 samples a second: 417 bytes, 1,152 samples.
MP3_FRAME = b"\xff\xfb\x90\x00" + bytes(413)
FLAC = b"fLaC\x80\0\0\x22" + bytes(34)
OGG = b"OggS\0\x02" + bytes(20) + b"\1\x1e\1vorbis" + bytes(30)
WEBM = b"\x1aE\xdf\xa3" + bytes(2_000)


def mp3(frames: int) -> bytes:
    return MP3_FRAME * frames


def wav(
    samples: int,
    *,
    rate: int = 16_000,
    channels: int = 1,
    bits: int = 16,
    tag: int = 1,
    byte_rate: int | None = None,
    size: int | None = None,
    extension: bytes = b"",
    extra: bytes = b"",
) -> bytes:
    """A WAV file of silence; `size` is what its header states in place of the truth."""
    block = channels * bits // 8
    rate_of_bytes = rate * block if byte_rate is None else byte_rate
    form = struct.pack("<HHIIHH", tag, channels, rate, rate_of_bytes, block, bits) + extension
    content = bytes(samples * block)
    stated = len(content) if size is None else size
    chunks = b"fmt " + struct.pack("<I", len(form)) + form + extra
    chunks += b"data" + struct.pack("<I", stated) + content
    return b"RIFF" + struct.pack("<I", 4 + len(chunks)) + b"WAVE" + chunks


def extensible(subformat: int) -> bytes:
    """The extension of a form whose tag is 0xFFFE."""
    return struct.pack("<HHIH", 22, 16, 4, subformat) + bytes(14)


def mp4(seconds: int, *, scale: int = 1_000) -> bytes:
    """The boxes that state a length."""
    length = bytes(12) + struct.pack(">II", scale, seconds * scale) + bytes(80)
    return _box(b"ftyp", b"M4A \0\0\0\0") + _box(b"moov", _box(b"mvhd", length))


def ogg_page(content: bytes) -> bytes:
    """A page of one packet, which goes on in the next page if it fills this one."""
    whole, rest = divmod(len(content), 255)
    sizes = bytes([255] * whole + [rest])[:255]
    return b"OggS\0\0" + bytes(8) + b"\1\0\0\0" + bytes(8) + bytes([len(sizes)]) + sizes + content


def _box(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", 8 + len(content)) + name + content
