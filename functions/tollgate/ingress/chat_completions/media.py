"""Parses images, audio and files in a request into core content."""

from typing import Final

from tollgate.core.content import (
    Audio,
    CacheMark,
    Document,
    Image,
    InlineMedia,
    MediaSource,
    Text,
    UserContent,
)
from tollgate.core.files.media_types import kind_of
from tollgate.ingress.chat_completions.wire import parts as wire
from tollgate.ingress.shared.media import (
    DATA_URL,
    WORDS,
    MediaCount,
    base64_of,
    decode_content,
    field_refusal,
    parse_address,
    parse_cache_mark,
    parse_file_id,
    parse_inline,
)
from tollgate.ingress.shared.wire.request_model import unknown_of

_PCM16: Final = "audio/pcm"


def parse_part(part: wire.Part, path: str, count: "MediaCount") -> UserContent:
    """Parse a message part; raise RequestError with a field at or below `path`."""
    if not isinstance(part, wire.TextPart | wire.RefusalPart):
        count.add(path)
    match part:
        case wire.TextPart():
            mark = parse_cache_mark(part.cache_control)
            return Text(text=part.text, cache=mark, native=unknown_of(part))
        case wire.ImagePart():
            return _image(part, f"{path}.image_url.url")
        case wire.AudioPart():
            return _audio(part.input_audio, f"{path}.input_audio")
        case wire.NestedFilePart():
            return _file(part.file, parse_cache_mark(part.cache_control), f"{path}.file")
        case wire.FlatFilePart():
            return _flat_file(part, path)
        case wire.RefusalPart():
            raise field_refusal(path, "must not be a refusal")


def parse_image(url: str, path: str) -> MediaSource:
    """Parse an image URL; raise RequestError for a data URL with other content."""
    if not DATA_URL.match(url):
        return parse_address(url, path)
    source = parse_inline(url, None, path)
    if kind_of(source.media_type) != "image":
        raise field_refusal(path, f"must be {WORDS['image']}, not {source.media_type}")
    return source


def _image(part: wire.ImagePart, path: str) -> Image:
    return Image(
        source=parse_image(part.image_url.url, path),
        detail=part.image_url.detail,
        cache=parse_cache_mark(part.cache_control),
        native=unknown_of(part),
    )


def _audio(audio: wire.InputAudio, path: str) -> Audio:
    if audio.format == "pcm16":
        # The type of PCM samples cannot be detected, because PCM has no header.
        text = base64_of(audio.data)
        decode_content(text, f"{path}.data")
        return Audio(source=InlineMedia(media_type=_PCM16, base64=text), format="pcm16")
    return _sound(parse_inline(audio.data, None, f"{path}.data"), f"{path}.data")


def _sound(source: InlineMedia, path: str) -> Audio:
    match source.media_type:
        case "audio/wav":
            return Audio(source=source, format="wav")
        case "audio/mpeg":
            return Audio(source=source, format="mp3")
        case "audio/webm":
            return Audio(source=source, format="webm")
        case other:
            raise field_refusal(path, f"must be {WORDS['audio']}, not {other}")


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
    sources = [file.file_data, file.file_url, file.file_id]
    if sum(value is not None for value in sources) != 1:
        raise field_refusal(path, f"must have exactly one of {data_field}, file_url and file_id")
    if file.file_id is not None:
        source = parse_file_id(file.file_id, path)
        return Document(source=source, filename=file.filename, cache=cache)
    if file.file_url is not None:
        address = parse_address(file.file_url, f"{path}.file_url")
        return Document(source=address, filename=file.filename, cache=cache)
    data, data_path = file.file_data or "", f"{path}.{data_field}"
    if data.startswith(("http://", "https://")):
        # OpenRouter also accepts a URL in this field.
        address = parse_address(data, data_path)
        return Document(source=address, filename=file.filename, cache=cache)
    content = parse_inline(data, file.mime_type, data_path)
    match kind_of(content.media_type):
        case "image":
            return Image(source=content, cache=cache)
        case "audio":
            return _sound(content, data_path)
        case "document":
            return Document(source=content, filename=file.filename, cache=cache)
