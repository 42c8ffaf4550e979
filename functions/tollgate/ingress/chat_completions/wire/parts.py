"""Models for the content parts of messages in a chat completion request.

https://platform.openai.com/docs/api-reference/chat/create (2026-08-21). `file_url` and
the flat form for files come from other gateways.
"""

from typing import Annotated, Final, Literal

from pydantic import Discriminator, Field, Tag

from tollgate.ingress.shared.wire.request_model import URL_LENGTH_MAX, CacheControl, Wire, by_field

FILENAME_LENGTH_MAX: Final = 255
_TYPE_LENGTH_MAX: Final = 255

Filename = Annotated[str, Field(max_length=FILENAME_LENGTH_MAX)]
MediaType = Annotated[str, Field(max_length=_TYPE_LENGTH_MAX)]
Bytes = Annotated[str, Field(min_length=1)]
FetchedUrl = Annotated[str, Field(min_length=1, max_length=URL_LENGTH_MAX)]


class TextPart(Wire):
    """Text."""

    type: Literal["text"]
    text: str
    cache_control: CacheControl | None = None


class RefusalPart(Wire):
    """A refusal from an earlier answer."""

    type: Literal["refusal"]
    refusal: str


class ImageUrl(Wire):
    """The URL of an image, which may be a data URL."""

    url: Annotated[str, Field(min_length=1)] = Field(description="An http(s) URL, or a data URL.")
    detail: Literal["auto", "low", "high"] | None = None


class ImagePart(Wire):
    """An image."""

    type: Literal["image_url"]
    image_url: ImageUrl
    cache_control: CacheControl | None = None


class InputAudio(Wire):
    """Base64 audio."""

    data: Bytes
    format: Literal["wav", "mp3", "pcm16", "webm"]


class AudioPart(Wire):
    """Audio."""

    type: Literal["input_audio"]
    input_audio: InputAudio


class FileSource(Wire):
    """A file: exactly one of content, URL and id."""

    file_data: Bytes | None = Field(default=None, description="A data URL, or base64.")
    file_url: FetchedUrl | None = None
    file_id: Annotated[str, Field(min_length=1, max_length=256)] | None = None
    filename: Filename | None = None
    mime_type: MediaType | None = Field(
        default=None, description="The media type, if it cannot be detected from the content."
    )


class NestedFilePart(Wire):
    """A file in OpenAI's form, with fields in `file`."""

    type: Literal["file"]
    file: FileSource
    cache_control: CacheControl | None = None


class FlatFilePart(Wire):
    """A file in the flat form, with fields next to `type`."""

    type: Literal["file"]
    data: Bytes | None = None
    mime_type: MediaType | None = None
    file_id: Annotated[str, Field(min_length=1, max_length=256)] | None = None
    filename: Filename | None = None
    cache_control: CacheControl | None = None


def _file_form(value: object) -> str:
    return "<nested>" if isinstance(value, dict) and "file" in value else "<flat>"


FilePart = Annotated[
    Annotated[NestedFilePart, Tag("<nested>")] | Annotated[FlatFilePart, Tag("<flat>")],
    Discriminator(_file_form),
]


UserPart = Annotated[
    Annotated[TextPart, Tag("<text>")]
    | Annotated[ImagePart, Tag("<image_url>")]
    | Annotated[AudioPart, Tag("<input_audio>")]
    | Annotated[FilePart, Tag("<file>")],
    by_field("type", "text", "image_url", "input_audio", "file"),
]
ToolPart = Annotated[
    Annotated[TextPart, Tag("<text>")]
    | Annotated[ImagePart, Tag("<image_url>")]
    | Annotated[FilePart, Tag("<file>")],
    by_field("type", "text", "image_url", "file"),
]
AssistantPart = Annotated[
    Annotated[TextPart, Tag("<text>")] | Annotated[RefusalPart, Tag("<refusal>")],
    by_field("type", "text", "refusal"),
]
Part = TextPart | RefusalPart | ImagePart | AudioPart | NestedFilePart | FlatFilePart
