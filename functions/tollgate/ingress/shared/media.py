"""Parses media in the spellings that client formats share: data URLs, base64 and addresses."""

import binascii
import re
from typing import Final
from urllib.parse import SplitResult, unquote_to_bytes, urlsplit

from msgspec import Struct

from tollgate.core.content import CacheMark, FileReference, InlineMedia, MediaUrl
from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.files.media_types import MediaKind, NotBase64, decode_base64, detect_media_type
from tollgate.ingress.shared.wire.media import URL_LENGTH_MAX, CacheControl

MEDIA_PARTS_MAX: Final = 128
MEDIA_BYTES_MAX: Final = 20 * 1024 * 1024

# https://www.rfc-editor.org/rfc/rfc2397; the type is only claimed, so its form is not checked.
DATA_URL: Final = re.compile(r"data:([^,]{0,255}?)(;base64)?,", re.IGNORECASE)
WORDS: Final[dict[MediaKind, str]] = {
    "image": "a PNG, JPEG, GIF or WebP picture",
    "audio": "a WAV, MP3 or WebM recording",
    "document": "a PDF, a text or an office document",
}


def parse_cache_mark(mark: CacheControl | None) -> CacheMark | None:
    """Return the mark up to which the caller wants the prompt cached."""
    return None if mark is None else CacheMark(lifetime=mark.ttl or "5m")


class MediaCount(Struct):
    """The number of media parts of one request so far."""

    media: int = 0

    def add(self, path: str) -> None:
        """Count one more part; raise RequestError if that is too many."""
        self.media += 1
        if self.media > MEDIA_PARTS_MAX:
            raise field_refusal(
                path, f"is more than the {MEDIA_PARTS_MAX} images, recordings and files allowed"
            )


def parse_inline(data: str, claimed: str | None, path: str) -> InlineMedia:
    """Return the content of a data URL or of plain base64, with its detected type."""
    head = DATA_URL.match(data)
    if head is None:
        text = data
    elif head[2]:
        claimed, text = head[1] or claimed, data[head.end() :]
    else:
        claimed, text = head[1] or claimed, _in_base64(data[head.end() :])
    found = detect_media_type(decode_content(text, path), claimed)
    if found is None:
        raise field_refusal(path, "must be an image, a recording or a document of a known type")
    return InlineMedia(media_type=found, base64=text)


def base64_of(data: str) -> str:
    """Return the base64 of a data URL; any other text as it is.

    The text is matched at its beginning alone: a search of megabytes would take minutes.
    """
    head = DATA_URL.match(data)
    return data[head.end() :] if head else data


def _in_base64(escaped: str) -> str:
    return binascii.b2a_base64(unquote_to_bytes(escaped), newline=False).decode()


def decode_content(text: str, path: str, bytes_max: int = MEDIA_BYTES_MAX) -> bytes:
    """Decode base64 of so many bytes at most; raise RequestError with the field at fault."""
    if len(text) * 3 // 4 > bytes_max:
        raise field_refusal(path, f"must be at most {bytes_max} bytes")
    try:
        found = decode_base64(text)
    except NotBase64 as invalid:
        raise field_refusal(path, "must be base64, padded and without line breaks") from invalid
    if not found:
        raise field_refusal(path, "must not be empty")
    return found


def parse_file_id(file_id: str, path: str) -> FileReference:
    """Return an uploaded file by its id; the engine finds out whether there is one."""
    return FileReference(id=file_id, field=f"{path}.file_id")


def parse_address(url: str, path: str) -> MediaUrl:
    """Return an http(s) URL; its target is checked by the guard that fetches it."""
    if len(url) > URL_LENGTH_MAX:
        raise field_refusal(path, f"must have at most {URL_LENGTH_MAX} characters")
    if not _is_address(url):
        raise field_refusal(path, "must be an http(s) URL without a password, or a data URL")
    return MediaUrl(url=url)


def _is_address(url: str) -> bool:
    try:
        parts: SplitResult = urlsplit(url)
        named = bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    printable = url.isascii() and url.isprintable() and " " not in url
    return parts.scheme in ("http", "https") and named and "@" not in parts.netloc and printable


def field_refusal(path: str, what: str) -> RequestError:
    """Return the error of a field at fault; `what` completes the sentence that its name begins."""
    return RequestError(ErrorCode.INVALID_REQUEST, f"{path} {what}.", param=path)
