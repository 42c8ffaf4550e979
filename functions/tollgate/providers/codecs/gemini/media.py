"""Image, audio and document parts, sent inline or as a URL whose file extension shows the media
type.

Vertex AI fetches URLs itself, and obeys robots.txt. With an empty `fetches_urls` in the provider's
row, the gateway fetches the bytes instead.
"""

from mimetypes import guess_type
from typing import Final, Literal, assert_never
from urllib.parse import urlsplit

from tollgate.core.content import Audio, Document, Image, InlineMedia, SentMedia, Text, sent_media
from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.json_value import JsonValue

# AI Studio knows the media type of a file that was uploaded to it; its URL needs no extension.
_OWN_FILES: Final = "https://generativelanguage.googleapis.com/"


def part_of(content: Text | Image | Audio | Document) -> JsonValue:
    """Return one part of a turn; raise RequestError for a URL without a known file extension."""
    match content:
        case Text():
            return {"text": content.text}
        case Image():
            return _media(sent_media(content.source), "image")
        case Audio():
            return _media(content.source, "audio")
        case Document():
            return _media(sent_media(content.source), "file")
        case _:
            assert_never(content)


def _media(source: SentMedia, what: Literal["image", "audio", "file"]) -> JsonValue:
    if isinstance(source, InlineMedia):
        return {"inlineData": {"mimeType": source.media_type, "data": source.base64}}
    if source.url.startswith(_OWN_FILES):
        return {"fileData": {"fileUri": source.url}}
    media_type, encoding = guess_type(urlsplit(source.url).path)
    if media_type is None or encoding is not None:
        raise RequestError(
            ErrorCode.INVALID_REQUEST,
            f"messages: the URL of this {what} does not end in a known file extension;"
            " send its content inline.",
            param="messages",
        )
    return {"fileData": {"fileUri": source.url, "mimeType": media_type}}
