"""Image and document blocks, whose content is inline or at a URL."""

import base64
import binascii
from collections.abc import Collection
from typing import Final, assert_never

from tollgate.core.content import Document, Image, InlineMedia, MediaUrl, sent_media
from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.json_value import JsonValue

_IMAGE_TYPES: Final = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})


def image(part: Image, fetches: Collection[str]) -> dict[str, JsonValue]:
    """Return the block for an image; raise RequestError for a format that Claude cannot read.

    `fetches` has the kinds of media that the server itself fetches by URL.
    """
    source: dict[str, JsonValue]
    match sent_media(part.source):
        case MediaUrl(url=url):
            source = _address(url, "image_url", is_fetched="image" in fetches)
        case InlineMedia(media_type=media_type, base64=text) if media_type in _IMAGE_TYPES:
            source = {"type": "base64", "media_type": media_type, "data": text}
        case InlineMedia(media_type=media_type):
            raise _refused(f"image_url: this model does not read images of type {media_type}")
        case never:
            assert_never(never)
    return {"type": "image", "source": source}


def document(part: Document, fetches: Collection[str]) -> dict[str, JsonValue]:
    """Return the block for a PDF or a text file; raise RequestError for any other type."""
    source: dict[str, JsonValue]
    match sent_media(part.source):
        case MediaUrl(url=url):
            source = _address(url, "file", is_fetched="file" in fetches)
        case InlineMedia(media_type="application/pdf", base64=text):
            source = {"type": "base64", "media_type": "application/pdf", "data": text}
        case InlineMedia(media_type=media_type, base64=text):
            source = {"type": "text", "media_type": "text/plain", "data": _text(media_type, text)}
        case never:
            assert_never(never)
    block: dict[str, JsonValue] = {"type": "document", "source": source}
    if part.filename:
        block["title"] = part.filename
    return block


def _address(url: str, part: str, *, is_fetched: bool) -> dict[str, JsonValue]:
    if not is_fetched:
        raise _refused(f"{part}: this provider accepts data, not URLs")
    return {"type": "url", "url": url}


def _text(media_type: str, encoded: str) -> str:
    """Return the text of a file; raise RequestError unless Claude can read the file as text."""
    if not media_type.startswith("text/") and media_type != "application/json":
        raise _refused(f"file: this model does not read files of type {media_type}")
    try:
        return base64.b64decode(encoded, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError) as invalid:
        raise _refused(f"file: the {media_type} content is not UTF-8 text") from invalid


def _refused(message: str) -> RequestError:
    return RequestError(ErrorCode.INVALID_REQUEST, f"messages: {message}.", param="messages")
