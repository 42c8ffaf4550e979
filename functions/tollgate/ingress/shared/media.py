"""Parses media that requests contain as data URLs, base64 or URLs."""

import binascii
import re
from typing import Final
from urllib.parse import SplitResult, unquote_to_bytes, urlsplit

from msgspec import Struct

from tollgate.core.content import CacheMark, FileReference, InlineMedia, MadeImage, MediaUrl
from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.files.media_types import MediaKind, NotBase64, decode_base64, detect_media_type
from tollgate.core.files.picture_files import find_picture_fault
from tollgate.ingress.shared.wire.request_model import URL_LENGTH_MAX, CacheControl

MEDIA_PARTS_MAX: Final = 128
MEDIA_BYTES_MAX: Final = 20 * 1024 * 1024

# https://www.rfc-editor.org/rfc/rfc2397. The media type is not checked here, because the type is
# detected from the content where possible.
DATA_URL: Final = re.compile(r"data:([^,]{0,255}?)(;base64)?,", re.IGNORECASE)
WORDS: Final[dict[MediaKind, str]] = {
    "image": "a PNG, JPEG, GIF or WebP image",
    "audio": "a WAV, MP3 or WebM recording",
    "document": "a PDF, a text or an office document",
}


def parse_cache_mark(mark: CacheControl | None) -> CacheMark | None:
    """Return the mark of a part up to which the caller wants the prompt cached."""
    return None if mark is None else CacheMark(lifetime=mark.ttl or "5m")


class MediaCount(Struct):
    """A counter of the media parts in one request."""

    media: int = 0

    def add(self, path: str) -> None:
        """Count another part; raise RequestError if the request has too many parts."""
        self.media += 1
        if self.media > MEDIA_PARTS_MAX:
            raise field_refusal(
                path, f"exceeds the limit of {MEDIA_PARTS_MAX} images, recordings and files"
            )


def parse_inline(data: str, claimed: str | None, path: str) -> InlineMedia:
    """Return the content of a data URL or plain base64, with its detected media type."""
    head = DATA_URL.match(data)
    if head is None:
        text = data
    elif head[2]:
        claimed, text = head[1] or claimed, data[head.end() :]
    else:
        claimed, text = head[1] or claimed, _in_base64(data[head.end() :])
    media_type = detect_media_type(decode_content(text, path), claimed)
    if media_type is None:
        raise field_refusal(path, "must be an image, a recording or a document of a known type")
    return InlineMedia(media_type=media_type, base64=text)


def base64_of(data: str) -> str:
    """Return the base64 in a data URL; return any other string unchanged.

    The pattern is matched only at the start, because searching megabytes of text would take
    minutes.
    """
    head = DATA_URL.match(data)
    return data[head.end() :] if head else data


def _in_base64(escaped: str) -> str:
    return binascii.b2a_base64(unquote_to_bytes(escaped), newline=False).decode()


def decode_content(text: str, path: str, bytes_max: int = MEDIA_BYTES_MAX) -> bytes:
    """Decode base64; raise RequestError if it is malformed, empty or over `bytes_max` bytes."""
    if len(text) * 3 // 4 > bytes_max:
        raise field_refusal(path, f"must be at most {bytes_max} bytes")
    try:
        content = decode_base64(text)
    except NotBase64 as invalid:
        raise field_refusal(path, "must be base64, padded and without line breaks") from invalid
    if not content:
        raise field_refusal(path, "must not be empty")
    return content


def parse_picture(url: str, path: str) -> InlineMedia | MediaUrl:
    """Return the image at a URL or in a data URL; raise RequestError for other data."""
    if not DATA_URL.match(url):
        return parse_address(url, path)
    source = parse_inline(url, None, path)
    fault = find_picture_fault(decode_base64(source.base64))
    if fault is not None:
        raise field_refusal(path, fault)
    return source


def parse_file_id(file_id: str, path: str) -> FileReference:
    """Return a reference to an uploaded file; the engine checks later that the file exists."""
    return FileReference(id=file_id, field=f"{path}.file_id")


def parse_address(url: str, path: str) -> MediaUrl:
    """Return an http(s) URL; its IP address is checked when the URL is fetched."""
    if len(url) > URL_LENGTH_MAX:
        raise field_refusal(path, f"must have at most {URL_LENGTH_MAX} characters")
    if not _is_address(url):
        raise field_refusal(path, "must be an http(s) URL without a password, or a data URL")
    return MediaUrl(url=url)


def _is_address(url: str) -> bool:
    try:
        parts: SplitResult = urlsplit(url)
        has_host = bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    printable = url.isascii() and url.isprintable() and " " not in url
    return parts.scheme in ("http", "https") and has_host and "@" not in parts.netloc and printable


def image_markdown(image: MadeImage) -> str:
    """Return a Markdown link to a generated image, for formats without a field for images.

    The link is usually a data URL.
    """
    return f"![image]({image.url})"


def field_refusal(path: str, what: str) -> RequestError:
    """Return an error about a field; `what` completes a sentence that starts with the path."""
    return RequestError(ErrorCode.INVALID_REQUEST, f"{path} {what}.", param=path)
