"""The parts that messages and answers are made of."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from pydantic import JsonValue

# What a provider wants echoed untouched (signatures), under the provider's own name.
Opaque = Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheMark:
    """The caller asks that the prompt up to here be cached, for five minutes or an hour."""

    lifetime: Literal["5m", "1h"] = "5m"


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """Plain text."""

    text: str
    cache: CacheMark | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InlineMedia:
    """Bytes that came with the request, kept as the base64 text they came in.

    `media_type` is what the bytes are (sniffed where that is possible), not what was claimed.
    """

    media_type: str
    base64: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaUrl:
    """Bytes that lie behind an http(s) URL of the caller's; fetched only through the guard."""

    url: str


MediaSource = InlineMedia | MediaUrl


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """A picture; `detail` is OpenAI's word for how closely to look."""

    source: MediaSource
    detail: Literal["auto", "low", "high"] | None = None
    cache: CacheMark | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Audio:
    """A recording; `format` is the container or coding as OpenAI names it."""

    source: InlineMedia
    format: Literal["wav", "mp3", "pcm16", "webm"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A file to read, most often a PDF."""

    source: MediaSource
    filename: str | None = None
    cache: CacheMark | None = None


UserContent = Text | Image | Audio | Document
# What a tool may hand back: chat completions have text here, Anthropic and Bedrock more.
ResultContent = Text | Image | Document


@dataclass(frozen=True, slots=True, kw_only=True)
class Reasoning:
    """Text that a model thought before it answered."""

    text: str
    opaque: Opaque = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """The words with which a model declined."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A call that a model asks for; `arguments` is JSON text, as the model wrote it."""

    id: str
    name: str
    arguments: str
    opaque: Opaque = field(default_factory=dict)


Part = Text | Reasoning | Refusal | ToolCall
