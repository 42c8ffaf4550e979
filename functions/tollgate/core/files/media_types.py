"""Detects media types from the first bytes, because declared types may be wrong.

Signatures: https://mimesniff.spec.whatwg.org/ (2026-06) and RFC 9639, RFC 8794 for audio.
"""

import binascii
from typing import Final, Literal

MediaKind = Literal["image", "audio", "document"]

PDF: Final = "application/pdf"
# A PDF with only ASCII bytes. `functions/api.py` sends such a PDF as text, and others as base64.
ASCII_PDF: Final = f"{PDF}; charset=us-ascii"
FORM: Final = "multipart/form-data"
HTML: Final = "text/html"
XHTML: Final = "application/xhtml+xml"
DOCX: Final = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
XLSX: Final = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
_ZIP: Final = b"PK\x03\x04"
_OLE: Final = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
# The signature of a container does not identify its content, so a declared type that fits is
# trusted.
_IN_CONTAINER: Final = {
    DOCX: _ZIP,
    XLSX: _ZIP,
    "application/msword": _OLE,
    "application/vnd.ms-excel": _OLE,
}
_TEXTS: Final = frozenset(
    {"application/json", "text/csv", "text/html", "text/markdown", "text/plain", "text/xml"}
)
# A PDF may have other bytes before its header (ISO 32000-2, annex H).
_PDF_HEADER_WITHIN: Final = 1024


class NotBase64(ValueError):
    """Raised for a string that is not base64."""


def decode_base64(text: str) -> bytes:
    """Decode base64 strictly (RFC 4648); raise NotBase64 for anything else."""
    try:
        return binascii.a2b_base64(text, strict_mode=True)
    except ValueError as invalid:
        raise NotBase64 from invalid


def detect_media_type(content: bytes, claimed: str | None = None) -> str | None:
    """Return the media type of the content; None if it is unknown.

    The declared type decides only between types that look alike: text formats, and documents in the
    same container.
    """
    claim = (claimed or "").partition(";")[0].strip().lower()
    known = _by_signature(content)
    if known is not None:
        return known
    if claim in _IN_CONTAINER and content.startswith(_IN_CONTAINER[claim]):
        return claim
    if _is_text(content):
        return claim if claim in _TEXTS else "text/plain"
    return None


def is_form(content_type: str) -> bool:
    """Return whether the media type of a body is multipart/form-data."""
    return content_type.partition(";")[0].strip().lower() == FORM


def kind_of(type_: str) -> MediaKind:
    """Return which kind of message part holds content of this media type."""
    match type_.partition("/")[0]:
        case "image":
            return "image"
        case "audio":
            return "audio"
        case _:
            return "document"


def _by_signature(content: bytes) -> str | None:
    match content[:4]:
        case b"\x89PNG":
            return "image/png"
        case b"GIF8":
            return "image/gif"
        case b"RIFF":
            return {b"WEBP": "image/webp", b"WAVE": "audio/wav"}.get(content[8:12])
        case b"\x1aE\xdf\xa3":
            return "audio/webm"
        case _:
            pass
    if content.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if content.startswith(b"ID3") or _is_mpeg_layer_3(content):
        return "audio/mpeg"
    if b"%PDF-" in content[:_PDF_HEADER_WITHIN]:
        return PDF
    return None


def _is_mpeg_layer_3(content: bytes) -> bool:
    """Return whether the content begins with a frame header of MPEG audio layer III.

    The header is eleven sync bits, followed by a version and a layer that are not reserved.
    """
    if len(content) < 2 or content[0] != 0xFF or content[1] & 0xE0 != 0xE0:
        return False
    return content[1] & 0x18 != 0x08 and content[1] & 0x06 == 0x02


def _is_text(content: bytes) -> bool:
    if not content or b"\0" in content:
        return False
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True
