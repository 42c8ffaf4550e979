"""Detects the media type of an uploaded file from its first bytes; a declared type must agree."""

import mimetypes
from typing import Final

from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.files.media_types import PDF, detect_media_type, kind_of
from tollgate.core.files.stored import FilePurpose

# Number of bytes at the start of a file that are enough to detect its type.
HEAD_BYTES: Final = 64 * 1024
# Types that say nothing about the content.
_ANY: Final = "application/octet-stream"
_UNSTATED: Final = frozenset({"", _ANY, "binary/octet-stream"})
_SAME: Final = {
    "audio/mp3": "audio/mpeg",
    "audio/wave": "audio/wav",
    "audio/vnd.wave": "audio/wav",
    "audio/x-wav": "audio/wav",
    "application/ogg": "audio/ogg",
    "audio/m4a": "audio/mp4",
    "audio/opus": "audio/ogg",
    "audio/x-flac": "audio/flac",
    "audio/x-m4a": "audio/mp4",
    "image/jpg": "image/jpeg",
    "image/pjpeg": "image/jpeg",
    "application/x-pdf": PDF,
    # Audio and video files of these types use the same container.
    "video/mp4": "audio/mp4",
    "video/ogg": "audio/ogg",
    "video/webm": "audio/webm",
}
# Text types that neither begin with `text/` nor end in `+json` or `+xml`.
_TEXTS: Final = frozenset(
    {
        "application/javascript",
        "application/json",
        "application/jsonl",
        "application/ndjson",
        "application/sql",
        "application/toml",
        "application/typescript",
        "application/x-httpd-php",
        "application/x-javascript",
        "application/x-latex",
        "application/x-ndjson",
        "application/x-python",
        "application/x-sh",
        "application/x-tex",
        "application/x-yaml",
        "application/xml",
        "application/yaml",
    }
)
# Extensions that the standard library's table does not have, or whose types depend on the machine.
_BY_EXTENSION: Final = {
    ".flac": "audio/flac",
    ".jsonl": "application/jsonl",
    ".m4a": "audio/mp4",
    ".md": "text/markdown",
    ".ogg": "audio/ogg",
    ".opus": "audio/ogg",
    ".webp": "image/webp",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
}
_TABLE: Final = mimetypes.MimeTypes()
# A UTF-8 character has up to four bytes, so the head may end with up to three bytes of an
# incomplete one.
_CUT_MAX: Final = 3


def read_media_type(
    head: bytes, *, is_whole: bool, filename: str, stated: str | None, purpose: FilePurpose
) -> str:
    """Return the media type of a file that begins with `head`.

    Raises RequestError: mime_mismatch if the declared type or, without one, the file's extension
    contradicts the content; unsupported_file_type if the type is unknown or not allowed for this
    purpose.
    """
    claim = _claim(filename, stated)
    found = _detect(head, claim, is_whole=is_whole)
    if found is None:
        raise RequestError(
            ErrorCode.UNSUPPORTED_FILE_TYPE,
            "file: the type of its content is unknown; send UTF-8 text, a PDF, an image, a "
            "recording, or an office document.",
            param="file",
        )
    if claim is not None and _differs(claim, found):
        raise RequestError(
            ErrorCode.MIME_MISMATCH,
            f"file: it was sent as {claim}, but its content is {found}.",
            param="file",
        )
    if (purpose == "vision" and kind_of(found) != "image") or (
        purpose == "batch" and not is_text_type(found)
    ):
        wanted = "an image" if purpose == "vision" else "lines of JSON"
        raise RequestError(
            ErrorCode.UNSUPPORTED_FILE_TYPE,
            f"file: the purpose {purpose} takes {wanted}, not {found}.",
            param="file",
        )
    return found


def guess_media_type(filename: str) -> str:
    """Return the media type for a file name's extension; `application/octet-stream` if unknown."""
    return _claim(filename, None) or _ANY


def is_text_type(type_: str) -> bool:
    """Return whether a media type is a text type."""
    return type_.startswith("text/") or type_ in _TEXTS or type_.endswith(("+json", "+xml"))


def _claim(filename: str, stated: str | None) -> str | None:
    type_ = (stated or "").partition(";")[0].strip().lower()
    if type_ in _UNSTATED:
        dot = filename.rpartition(".")
        extension = f".{dot[2].lower()}" if dot[1] else ""
        type_ = _BY_EXTENSION.get(extension) or _TABLE.guess_type(f"x{extension}")[0] or ""
    return _SAME.get(type_, type_) or None


def _detect(head: bytes, claim: str | None, *, is_whole: bool) -> str | None:
    found = _sound(head) or detect_media_type(head, claim)
    if found is None and not is_whole:
        # The head may end in the middle of a UTF-8 character.
        cuts = (detect_media_type(head[:-cut], claim) for cut in range(1, _CUT_MAX + 1))
        found = next((type_ for type_ in cuts if type_ is not None), None)
    if found is not None and is_text_type(found) and claim is not None and is_text_type(claim):
        return claim
    return found


def _sound(head: bytes) -> str | None:
    """Return the type of a recording that can be transcribed but cannot be part of a conversation.

    Sources: RFC 3533, RFC 9639 and ISO/IEC 14496-12.
    """
    if head.startswith(b"OggS"):
        return "audio/ogg"
    if head.startswith(b"fLaC"):
        return "audio/flac"
    return "audio/mp4" if head[4:8] == b"ftyp" else None


def _differs(claim: str, found: str) -> bool:
    """Return whether a declared type contradicts the detected one; undetectable types never do."""
    if claim == found or (is_text_type(claim) and is_text_type(found)):
        return False
    return is_text_type(claim) or _is_recognised(claim)


def _is_recognised(type_: str) -> bool:
    """Return whether this type can be detected from the bytes of the content."""
    return (
        type_.partition("/")[0] in ("audio", "image", "video") or type_ == PDF or "office" in type_
    )
