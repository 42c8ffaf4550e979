"""The parts that messages and answers are made of."""

from typing import Literal

from msgspec import Struct


class CacheMark(Struct, frozen=True, kw_only=True):
    """The caller asks that the prompt up to here be cached, for five minutes or an hour."""

    lifetime: Literal["5m", "1h"] = "5m"


class Text(Struct, frozen=True, kw_only=True, tag="text"):
    """Plain text."""

    text: str
    cache: CacheMark | None = None


class InlineMedia(Struct, frozen=True, kw_only=True, tag="inline"):
    """Bytes that came with the request, kept as the base64 text they came in.

    `media_type` is what the bytes are (sniffed where that is possible), not what was claimed.
    """

    media_type: str
    base64: str


class MediaUrl(Struct, frozen=True, kw_only=True, tag="url"):
    """Bytes that lie behind an http(s) URL of the caller's; fetched only through the guard."""

    url: str


class FileReference(Struct, frozen=True, kw_only=True, tag="file"):
    """Bytes that were uploaded before, by the id of their file.

    The engine finds the file before it plans, and puts the bytes in place of the reference before
    it encodes an attempt: no codec sees one.
    """

    id: str
    field: str
    """The field of the request that has the id, which a refusal names."""
    media_type: str | None = None
    """By the content; None until the file is found, as the two below."""
    size_bytes: int | None = None
    place: str | None = None
    """The key of the content, in the store of objects."""


SentMedia = InlineMedia | MediaUrl
MediaSource = SentMedia | FileReference


def sent_media(source: MediaSource) -> SentMedia:
    """Return media as a codec writes it; ValueError for a file, which the engine has read."""
    if isinstance(source, FileReference):
        raise ValueError("a file that was not read")
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
# What a tool may hand back: chat completions have text here, Anthropic and Bedrock more.
ResultContent = Text | Image | Document


class Provenance(Struct, frozen=True, kw_only=True):
    """The signer of a part, and the data that the signer requires back untouched."""

    signer: str | None
    """One of `core.signers`, or another name that came with the part; None without one."""
    signature: str | None = None
    """The signature of a reasoning's text, or of a call."""
    data: str | None = None
    """Content that only the signer reads."""
    id: str | None = None
    """The signer's own id; parts with one id belong together."""
    is_summary: bool = False
    """True if the text is a summary of the reasoning."""
    model: str | None = None
    """The slug of the model that wrote the part, if a client sent it back."""

    @property
    def is_signed(self) -> bool:
        """True if there is something that the signer recognises."""
        return bool(self.signature or self.data)


class Reasoning(Struct, frozen=True, kw_only=True, tag="reasoning"):
    """Text that a model thought before it answered."""

    text: str
    provenance: Provenance | None = None


class Refusal(Struct, frozen=True, kw_only=True, tag="refusal"):
    """The words with which a model declined."""

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
    """A picture that a model made as a part of its answer, whole."""

    source: SentMedia
    provenance: Provenance | None = None

    @property
    def url(self) -> str:
        """The address of the picture, which for bytes holds them."""
        if isinstance(self.source, MediaUrl):
            return self.source.url
        return f"data:{self.source.media_type};base64,{self.source.base64}"


# The tools that the gateway can run.
ServerToolId = Literal["web_search", "web_fetch", "datetime", "image"]


class ServerToolRun(Struct, frozen=True, kw_only=True, tag="server_tool_run"):
    """A run of a tool of the gateway's within the answer; `arguments` is JSON text, complete."""

    id: str
    tool: ServerToolId
    arguments: str


Part = Text | Reasoning | Refusal | ToolCall | MadeImage | ServerToolRun
