"""Small pictures for tests: a real PNG of any size, and the heads of other formats."""

import base64
import struct
import zlib

MAGIC = b"\x89PNG\r\n\x1a\n"


def png(
    width: int = 16,
    height: int = 16,
    *,
    stated: tuple[int, int] | None = None,
    level: int = -1,
) -> bytes:
    """A PNG of one color; `stated` is a size that it only claims, `level` 0 packs nothing."""
    header = struct.pack(">IIBBBBB", *(stated or (width, height)), 8, 2, 0, 0, 0)
    rows = zlib.compress((b"\0" + b"\x10\x80\xf0" * width) * height, level)
    chunks = ((b"IHDR", header), (b"IDAT", rows), (b"IEND", b""))
    return MAGIC + b"".join(_chunk(*each) for each in chunks)


def png_text(width: int = 16, height: int = 16) -> str:
    """A PNG as base64."""
    return base64.b64encode(png(width, height)).decode()


def data_url(content: bytes, media_type: str = "image/png") -> str:
    """The URL that is its own content."""
    return f"data:{media_type};base64,{base64.b64encode(content).decode()}"


def _chunk(name: bytes, content: bytes) -> bytes:
    checked = name + content
    return struct.pack(">I", len(content)) + checked + struct.pack(">I", zlib.crc32(checked))
