"""The parts that messages and answers are made of."""

from typing import Literal

from msgspec import Struct


class CacheMark(Struct, frozen=True, kw_only=True):
    """A mark on a part: the caller wants the prompt up to it cached for five minutes or an hour."""

    lifetime: Literal["5m", "1h"] = "5m"


class Text(Struct, frozen=True, kw_only=True, tag="text"):
    """Plain text."""

    text: str
    cache: CacheMark | None = None


class InlineMedia(Struct, frozen=True, kw_only=True, tag="inline"):
    """Bytes that came with the request, as base64 text.

    `media_type` is the detected type where detection is possible, not the type that was claimed.
    """

    media_type: str
    base64: str


class MediaUrl(Struct, frozen=True, kw_only=True, tag="url"):
    """Bytes behind an http(s) URL from the caller; fetched only through the address guard."""

    url: str


class FileReference(Struct, frozen=True, kw_only=True, tag="file"):
    """A file that was uploaded before, by its id.

    The engine looks the file up before it plans, and replaces the reference by the bytes before it
    encodes an attempt: codecs never see a reference.
    """

    id: str
    field: str
    """The field of the request that has the id, for error messages."""
    media_type: str | None = None
    """Detected from the content; like `size_bytes` and `place` None before the look-up."""
    size_bytes: int | None = None
    place: str | None = None
    """The key of the content in the object store."""


SentMedia = InlineMedia | MediaUrl
MediaSource = SentMedia | FileReference


def sent_media(source: MediaSource) -> SentMedia:
    """Return media that a codec can write; raise ValueError for an unresolved file reference."""
    if isinstance(source, FileReference):
        raise ValueError("a file reference was not replaced by its content")
    return source


class Image(Struct, frozen=True, kw_only=True, tag="image"):
    """A picture; `detail` is OpenAI's word for how closely to look."""

    source: MediaSource
    detail: Literal["auto", "low", "high"] | None = None
    cache: CacheMark | None = None


class Audio(Struct, frozen=True, kw_only=True):
    """A recording; `format` is the container or coding as OpenAI names it."""

    source: InlineMedia
    format: Literal["wav", "mp3", "pcm16", "webm"]


class Document(Struct, frozen=True, kw_only=True, tag="document"):
    """A file to read, most often a PDF."""

    source: MediaSource
    filename: str | None = None
    cache: CacheMark | None = None


UserContent = Text | Image | Audio | Document
# Content of a tool's result: chat completions allow text only, Anthropic and Bedrock all three.
ResultContent = Text | Image | Document


class Provenance(Struct, frozen=True, kw_only=True):
    """The signer of a part, and the data that must be returned to that signer unchanged."""

    signer: str | None
    """One of `core.signers`, or another name that came with the part; None if unknown."""
    signature: str | None = None
    """The signature of the reasoning text, or of the call."""
    data: str | None = None
    """Opaque content that only the signer can read."""
    id: str | None = None
    """The signer's own id; parts with one id belong together."""
    is_summary: bool = False
    """True if the text is a summary of the reasoning."""
    model: str | None = None
    """The slug of the model that wrote the part, if a client sent one with the part."""

    @property
    def is_signed(self) -> bool:
        """True if there is a signature or data for the signer to verify."""
        return bool(self.signature or self.data)


class Reasoning(Struct, frozen=True, kw_only=True, tag="reasoning"):
    """The reasoning that a model wrote before its answer."""

    text: str
    provenance: Provenance | None = None


class Refusal(Struct, frozen=True, kw_only=True, tag="refusal"):
    """The text with which a model declined to answer."""

    text: str


class ToolCall(Struct, frozen=True, kw_only=True, tag="tool_call"):
    """A call that a model asks for; `arguments` is JSON text, as the model wrote it."""

    id: str
    name: str
    arguments: str
    is_text: bool = False
    """True if `arguments` is free text, because the tool takes that."""
    cache: CacheMark | None = None
    provenance: Provenance | None = None


class MadeImage(Struct, frozen=True, kw_only=True, tag="made_image"):
    """A complete picture that a model made as a part of its answer."""

    source: SentMedia
    provenance: Provenance | None = None

    @property
    def url(self) -> str:
        """The address of the picture; a data URL if the picture is inline."""
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
