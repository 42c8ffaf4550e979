"""Reads the size of an image from the first bytes of its file.

The sources are PNG's IHDR chunk (W3C, 2003), GIF89a, JPEG's frame headers (ITU T.81, B.2.2), and
the three kinds of WebP chunks (RFC 9649).
"""

from collections.abc import Callable, Mapping
from typing import Final

from tollgate.core.files.media_types import detect_media_type

PixelSize = tuple[int, int]

# JPEG markers of frame headers: 0xC0 to 0xCF, except DHT, JPG and DAC.
_FRAMES: Final = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})
# JPEG markers that are not followed by a length: TEM and the restart markers.
_BARE: Final = frozenset({0x01, *range(0xD0, 0xD8)})
_SEGMENTS_MAX: Final = 4_096
# A small file may declare a size that exhausts the memory of a process that decodes it.
PIXELS_MAX: Final = 50_000_000


def find_picture_fault(content: bytes) -> str | None:
    """Return the end of a sentence that says what is wrong with an image; None for a valid one."""
    size = pixel_size(content)
    if size is None:
        return "must be a PNG, JPEG, GIF or WebP image"
    return f"must have at most {PIXELS_MAX} pixels" if size[0] * size[1] > PIXELS_MAX else None


def picture_format(content: bytes) -> str | None:
    """Return an image's format (png, jpeg, gif or webp); None for anything else."""
    kind, _, name = (detect_media_type(content) or "").partition("/")
    return name if kind == "image" and pixel_size(content) is not None else None


def pixel_size(content: bytes) -> PixelSize | None:
    """Return the width and height that an image declares; None if it declares none."""
    read = _READERS.get(detect_media_type(content) or "")
    size = read(content) if read else None
    return size if size and min(size) > 0 else None


def _of_png(content: bytes) -> PixelSize | None:
    if content[:8] != b"\x89PNG\r\n\x1a\n" or content[12:16] != b"IHDR" or len(content) < 33:
        return None
    return int.from_bytes(content[16:20]), int.from_bytes(content[20:24])


def _of_gif(content: bytes) -> PixelSize | None:
    if len(content) < 13:
        return None
    return int.from_bytes(content[6:8], "little"), int.from_bytes(content[8:10], "little")


def _of_jpeg(content: bytes) -> PixelSize | None:
    place = 2
    for _ in range(_SEGMENTS_MAX):
        head = content[place : place + 9]
        if head[:2] == b"\xff\xff":
            # Skip a fill byte; _SEGMENTS_MAX limits the time for a file that consists of fill
            # bytes.
            place += 1
            continue
        if len(head) < 9 or head[0] != 0xFF:
            return None
        if head[1] in _FRAMES:
            return int.from_bytes(head[7:9]), int.from_bytes(head[5:7])
        place += 2 if head[1] in _BARE else 2 + int.from_bytes(head[2:4])
    return None


def _of_webp(content: bytes) -> PixelSize | None:
    chunk, data = content[12:16], content[20:30]
    if len(data) < 10:
        return None
    match chunk:
        case b"VP8X":
            return int.from_bytes(data[4:7], "little") + 1, int.from_bytes(data[7:10], "little") + 1
        case b"VP8L" if data[0] == 0x2F:
            bits = int.from_bytes(data[1:5], "little")
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8 " if data[3:6] == b"\x9d\x01\x2a":
            width, height = data[6:8], data[8:10]
            return int.from_bytes(width, "little") & 0x3FFF, int.from_bytes(
                height, "little"
            ) & 0x3FFF
        case _:
            return None


_READERS: Final[Mapping[str, Callable[[bytes], PixelSize | None]]] = {
    "image/png": _of_png,
    "image/gif": _of_gif,
    "image/jpeg": _of_jpeg,
    "image/webp": _of_webp,
}
