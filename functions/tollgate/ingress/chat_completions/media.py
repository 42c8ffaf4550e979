"""Parses images, audio and files of a request, in each of their spellings, into core content."""

import binascii
import re
from typing import Final
from urllib.parse import SplitResult, unquote_to_bytes, urlsplit

from msgspec import Struct

from tollgate.core.content import (
    Audio,
    CacheMark,
    Document,
    Image,
    InlineMedia,
    MediaUrl,
    Text,
    UserContent,
)
from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.media_types import (
    MediaKind,
    NotBase64,
    decode_base64,
    detect_media_type,
    kind_of,
)
from tollgate.ingress.chat_completions.wire import parts as wire

MEDIA_PARTS_MAX: Final = 128
MEDIA_BYTES_MAX: Final = 20 * 1024 * 1024

# https://www.rfc-editor.org/rfc/rfc2397; the type is only claimed, so its form is not checked.
_DATA_URL: Final = re.compile(r"data:([^,]{0,255}?)(;base64)?,", re.IGNORECASE)
_PCM16: Final = "audio/pcm"
_WORDS: Final[dict[MediaKind, str]] = {
    "image": "a PNG, JPEG, GIF or WebP picture",
    "audio": "a WAV, MP3 or WebM recording",
    "document": "a PDF, a text or an office document",
}


def parse_part(part: wire.Part, path: str, count: "MediaCount") -> UserContent:
    """Parse a part of a message; raise RequestError with the field at fault below `path`."""
    if not isinstance(part, wire.TextPart | wire.RefusalPart):
        count.add(path)
    match part:
        case wire.TextPart():
            return Text(text=part.text, cache=parse_cache_mark(part.cache_control))
        case wire.ImagePart():
            return _image(part, f"{path}.image_url.url")
        case wire.AudioPart():
            return _audio(part.input_audio, f"{path}.input_audio")
        case wire.NestedFilePart():
            return _file(part.file, parse_cache_mark(part.cache_control), f"{path}.file")
        case wire.FlatFilePart():
            return _flat_file(part, path)
        case wire.RefusalPart():
            raise _refused(path, "must not be a refusal")


def parse_cache_mark(mark: wire.CacheControl | None) -> CacheMark | None:
    """Return the mark up to which the caller wants the prompt cached."""
    return None if mark is None else CacheMark(lifetime=mark.ttl or "5m")


class MediaCount(Struct):
    """The number of media parts of one request so far."""

    media: int = 0

    def add(self, path: str) -> None:
        """Count one more part; raise RequestError if that is too many."""
        self.media += 1
        if self.media > MEDIA_PARTS_MAX:
            raise _refused(
                path, f"is more than the {MEDIA_PARTS_MAX} images, recordings and files allowed"
            )


def _image(part: wire.ImagePart, path: str) -> Image:
    url = part.image_url.url
    source: InlineMedia | MediaUrl
    if _DATA_URL.match(url):
        source = _inline(url, None, path)
        if kind_of(source.media_type) != "image":
            raise _refused(path, f"must be {_WORDS['image']}, not {source.media_type}")
    else:
        source = _address(url, path)
    return Image(
        source=source, detail=part.image_url.detail, cache=parse_cache_mark(part.cache_control)
    )


def _audio(audio: wire.InputAudio, path: str) -> Audio:
    if audio.format == "pcm16":
        # Samples without a header, so their type cannot be detected.
        text = _DATA_URL.sub("", audio.data, count=1)
        _content_of(text, f"{path}.data")
        return Audio(source=InlineMedia(media_type=_PCM16, base64=text), format="pcm16")
    return _sound(_inline(audio.data, None, f"{path}.data"), f"{path}.data")


def _sound(source: InlineMedia, path: str) -> Audio:
    match source.media_type:
        case "audio/wav":
            return Audio(source=source, format="wav")
        case "audio/mpeg":
            return Audio(source=source, format="mp3")
        case "audio/webm":
            return Audio(source=source, format="webm")
        case other:
            raise _refused(path, f"must be {_WORDS['audio']}, not {other}")


def _flat_file(part: wire.FlatFilePart, path: str) -> UserContent:
    source = wire.FileSource(
        file_data=part.data,
        file_id=part.file_id,
        filename=part.filename,
        mime_type=part.mime_type,
    )
    return _file(source, parse_cache_mark(part.cache_control), path, data_field="data")


def _file(
    file: wire.FileSource, cache: CacheMark | None, path: str, *, data_field: str = "file_data"
) -> UserContent:
    given = [file.file_data, file.file_url, file.file_id]
    if sum(value is not None for value in given) != 1:
        raise _refused(path, f"must have exactly one of {data_field}, file_url and file_id")
    if file.file_id is not None:
        raise RequestError(
            ErrorCode.FILE_NOT_FOUND,
            f"There is no file with the id in {path}.file_id.",
            param=f"{path}.file_id",
        )
    if file.file_url is not None:
        address = _address(file.file_url, f"{path}.file_url")
        return Document(source=address, filename=file.filename, cache=cache)
    data, data_path = file.file_data or "", f"{path}.{data_field}"
    if data.startswith(("http://", "https://")):
        # OpenRouter's spelling of a file's address.
        address = _address(data, data_path)
        return Document(source=address, filename=file.filename, cache=cache)
    source = _inline(data, file.mime_type, data_path)
    match kind_of(source.media_type):
        case "image":
            return Image(source=source, cache=cache)
        case "audio":
            return _sound(source, data_path)
        case "document":
            return Document(source=source, filename=file.filename, cache=cache)


def _inline(data: str, claimed: str | None, path: str) -> InlineMedia:
    """Return the content of a data URL or of plain base64, with its detected type."""
    head = _DATA_URL.match(data)
    if head is None:
        text = data
    elif head[2]:
        claimed, text = head[1] or claimed, data[head.end() :]
    else:
        claimed, text = head[1] or claimed, _in_base64(data[head.end() :])
    found = detect_media_type(_content_of(text, path), claimed)
    if found is None:
        raise _refused(path, "must be an image, a recording or a document of a known type")
    return InlineMedia(media_type=found, base64=text)


def _in_base64(escaped: str) -> str:
    return binascii.b2a_base64(unquote_to_bytes(escaped), newline=False).decode()


def _content_of(text: str, path: str) -> bytes:
    if len(text) * 3 // 4 > MEDIA_BYTES_MAX:
        raise _refused(path, f"must be at most {MEDIA_BYTES_MAX} bytes")
    try:
        found = decode_base64(text)
    except NotBase64 as invalid:
        raise _refused(path, "must be base64, padded and without line breaks") from invalid
    if not found:
        raise _refused(path, "must not be empty")
    return found


def _address(url: str, path: str) -> MediaUrl:
    """Return an http(s) URL; its target is checked by the guard that fetches it."""
    if len(url) > wire.URL_LENGTH_MAX:
        raise _refused(path, f"must have at most {wire.URL_LENGTH_MAX} characters")
    if not _is_address(url):
        raise _refused(path, "must be an http(s) URL without a password, or a data URL")
    return MediaUrl(url=url)


def _is_address(url: str) -> bool:
    try:
        parts: SplitResult = urlsplit(url)
        named = bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    printable = url.isascii() and url.isprintable() and " " not in url
    return parts.scheme in ("http", "https") and named and "@" not in parts.netloc and printable


def _refused(path: str, what: str) -> RequestError:
    return RequestError(ErrorCode.INVALID_REQUEST, f"{path} {what}.", param=path)
