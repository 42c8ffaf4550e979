"""The parts of messages and answers."""

from typing import Literal

from msgspec import Struct

from tollgate.core.json_value import JsonObject


class CacheMark(Struct, frozen=True, kw_only=True):
    """A cache mark: the caller wants the prompt up to this part cached, for five minutes or an
    hour.
    """

    lifetime: Literal["5m", "1h"] = "5m"


class Text(Struct, frozen=True, kw_only=True, tag="text"):
    """Plain text."""

    text: str
    cache: CacheMark | None = None
    native: JsonObject | None = None
    """Unknown fields, for providers of the client's own format."""


class InlineMedia(Struct, frozen=True, kw_only=True, tag="inline"):
    """Media sent inside the request as base64.

    `media_type` is detected from the bytes where possible, even if the caller named another type.
    """

    media_type: str
    base64: str


class MediaUrl(Struct, frozen=True, kw_only=True, tag="url"):
    """Media at an http(s) URL sent by the caller, which is fetched only through the
    address guard.
    """

    url: str


class FileReference(Struct, frozen=True, kw_only=True, tag="file"):
    """A reference to an uploaded file.

    The engine looks up the file before planning, and replaces the reference with the content before
    it encodes an attempt, so codecs never see a reference.
    """

    id: str
    field: str
    """The request field that contains the id, for error messages."""
    media_type: str | None = None
    """The detected type; None until the file is looked up, like `size_bytes` and `place`."""
    size_bytes: int | None = None
    place: str | None = None
    """The key of the content in the object store."""


SentMedia = InlineMedia | MediaUrl
MediaSource = SentMedia | FileReference


def sent_media(source: MediaSource) -> SentMedia:
    """Return the media in a form that a codec can write; raise ValueError for an unresolved file
    reference.
    """
    if isinstance(source, FileReference):
        raise ValueError("a file reference was not replaced by its content")
    return source


class Image(Struct, frozen=True, kw_only=True, tag="image"):
    """An image; `detail` is OpenAI's parameter for the resolution at which the model reads it."""

    source: MediaSource
    detail: Literal["auto", "low", "high"] | None = None
    cache: CacheMark | None = None
    native: JsonObject | None = None
    """Unknown fields, for providers of the client's own format."""


class Audio(Struct, frozen=True, kw_only=True):
    """A recording; `format` is OpenAI's name for its container or encoding."""

    source: InlineMedia
    format: Literal["wav", "mp3", "pcm16", "webm"]


class Document(Struct, frozen=True, kw_only=True, tag="document"):
    """A file to read, most often a PDF."""

    source: MediaSource
    filename: str | None = None
    cache: CacheMark | None = None
    native: JsonObject | None = None
    """Unknown fields, for providers of the client's own format."""


UserContent = Text | Image | Audio | Document
# The content of a tool result. Chat completions allow only text; Anthropic and Bedrock allow all
# three.
ResultContent = Text | Image | Document


class Provenance(Struct, frozen=True, kw_only=True):
    """The signer of a part, and the data that must go back to that signer unchanged."""

    signer: str | None
    """A constant from `core.signers`, or another name that was sent with the part; None
    if unknown.
    """
    signature: str | None = None
    """The signature of the reasoning text, or of the call."""
    data: str | None = None
    """Opaque content that only the signer can read."""
    id: str | None = None
    """The signer's id for the part; parts with the same id belong together."""
    is_summary: bool = False
    """True if the text is a summary of the reasoning."""
    is_compaction: bool = False
    """True if the data stands for the conversation before this part; such a part contains no
    reasoning.
    """
    model: str | None = None
    """The slug of the model that wrote the part, if a client sent it with the part."""

    @property
    def is_signed(self) -> bool:
        """True if there is a signature or data for the signer to verify."""
        return bool(self.signature or self.data)


class Reasoning(Struct, frozen=True, kw_only=True, tag="reasoning"):
    """The reasoning that a model wrote before its answer."""

    text: str
    provenance: Provenance | None = None


class Refusal(Struct, frozen=True, kw_only=True, tag="refusal"):
    """The text in which a model declined to answer."""

    text: str


class ToolCall(Struct, frozen=True, kw_only=True, tag="tool_call"):
    """A tool call that a model requests; `arguments` is JSON text as the model wrote it."""

    id: str
    name: str
    arguments: str
    is_text: bool = False
    """True if `arguments` is free text, for a tool that takes free text as input."""
    cache: CacheMark | None = None
    provenance: Provenance | None = None
    native: JsonObject | None = None
    """Unknown fields, for providers of the client's own format."""


class MadeImage(Struct, frozen=True, kw_only=True, tag="made_image"):
    """A complete image that a model generated as part of its answer."""

    source: SentMedia
    provenance: Provenance | None = None

    @property
    def url(self) -> str:
        """The URL of the image; a data URL if the image is inline."""
        if isinstance(self.source, MediaUrl):
            return self.source.url
        return f"data:{self.source.media_type};base64,{self.source.base64}"


# The tools that the gateway can run.
ServerToolId = Literal["web_search", "web_fetch", "datetime", "image"]


class ServerToolRun(Struct, frozen=True, kw_only=True, tag="server_tool_run"):
    """A run of one of the gateway's tools within the answer; `arguments` is complete JSON text."""

    id: str
    tool: ServerToolId
    arguments: str


Part = Text | Reasoning | Refusal | ToolCall | MadeImage | ServerToolRun
