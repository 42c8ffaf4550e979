"""Encodes images as PNG with the standard library (decision 223).

A page of text is mostly white, so a grey PNG of it is a quarter of the size of a JPEG. A noisy scan
is reduced to 16 levels per colour; it is then as small as a JPEG and still readable.

Format: https://www.w3.org/TR/png-3/ (2026-11-22).
"""

import struct
import zlib
from typing import Final

_SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
_COLOUR_TYPES: Final = {1: 0, 3: 2}
_LEVEL: Final = 6
# Larger files are encoded again, with fewer levels per colour.
_PLAIN_BYTES_MAX: Final = 600_000
_SIXTEEN_LEVELS: Final = bytes(level // 16 * 17 for level in range(256))


def encode_png(pixels: bytes, width: int, height: int, *, stride: int, channels: int) -> bytes:
    """Return a PNG. A pixel has 1 byte (grey), 3 bytes (RGB) or 4 bytes (RGB and an unused
    byte).
    """
    rows = [pixels[start : start + width * channels] for start in _starts(height, stride)]
    flat = b"".join(rows)
    if channels == 4:
        flat = _drop_fourth(flat)
        channels = 3
    if channels == 3 and flat[0::3] == flat[1::3] == flat[2::3]:
        flat, channels = flat[0::3], 1
    packed = _pack(flat, width * channels, height)
    if len(packed) > _PLAIN_BYTES_MAX:
        packed = _pack(flat.translate(_SIXTEEN_LEVELS), width * channels, height)
    header = struct.pack(">IIBBBBB", width, height, 8, _COLOUR_TYPES[channels], 0, 0, 0)
    return b"".join(
        (_SIGNATURE, _chunk(b"IHDR", header), _chunk(b"IDAT", packed), _chunk(b"IEND", b""))
    )


def _starts(height: int, stride: int) -> range:
    return range(0, height * stride, stride)


def _drop_fourth(flat: bytes) -> bytes:
    rgb = bytearray(len(flat) // 4 * 3)
    for channel in range(3):
        rgb[channel::3] = flat[channel::4]
    return bytes(rgb)


def _pack(flat: bytes, row_bytes: int, height: int) -> bytes:
    """Compress rows, each of which begins with 0, PNG's code for an unfiltered row."""
    rows = (flat[start : start + row_bytes] for start in _starts(height, row_bytes))
    return zlib.compress(b"".join(b"\0" + row for row in rows), _LEVEL)


def _chunk(name: bytes, content: bytes) -> bytes:
    crc = zlib.crc32(name + content)
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", crc)
