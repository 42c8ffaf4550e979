"""The chunks of an OpenAI-like server.

The structs have only the fields that the gateway reads. The shapes are OpenAI's chunk schema and
the variants of its imitators (seen 2026-11-21): Mistral's content lists, two names for reasoning,
tool deltas without an index, arguments as an object, usage in a choice.
"""

from typing import Any, Final

import msgspec
from msgspec import Struct


class TextItem(Struct, frozen=True, tag_field="type", tag="text"):
    text: str


class ReferenceItem(Struct, frozen=True, tag_field="type", tag="reference"):
    """Mistral's references from a text to results of the caller's tools, by number."""

    reference_ids: list[int | str] = []


class ThinkingItem(Struct, frozen=True, tag_field="type", tag="thinking"):
    """Mistral's reasoning in a content list."""

    thinking: list[TextItem | ReferenceItem]


class FunctionDelta(Struct, frozen=True):
    name: str | None = None
    arguments: str | dict[str, Any] | list[Any] | None = None

    @property
    def text(self) -> str | None:
        """The arguments as text; some servers send an object."""
        if isinstance(self.arguments, dict | list):
            return msgspec.json.encode(self.arguments).decode()
        return self.arguments


class GoogleContent(Struct, frozen=True):
    thought_signature: str | None = None


class ExtraContent(Struct, frozen=True):
    """Data of servers for which OpenAI's format has no field."""

    google: GoogleContent | None = None


class ToolCallDelta(Struct, frozen=True):
    index: int | None = None
    id: str | None = None
    function: FunctionDelta = FunctionDelta()
    extra_content: ExtraContent | None = None


class UrlCitation(Struct, frozen=True):
    """The source of a passage of the text."""

    url: str | None = None
    title: str | None = None
    start_index: int | None = None
    end_index: int | None = None


class Annotation(Struct, frozen=True):
    type: str | None = None
    url_citation: UrlCitation | None = None


class TokenLogProbs(Struct, frozen=True):
    """Log probabilities in OpenAI's form, and as two lists in Together's older form."""

    content: list[dict[str, Any]] | None = None
    refusal: list[dict[str, Any]] | None = None
    tokens: list[str] | None = None
    token_logprobs: list[float | None] | None = None


class ImageUrl(Struct, frozen=True):
    """The URL of an image, most often a data: URL."""

    url: str


class ShownImage(Struct, frozen=True):
    """An image that the model made, in OpenRouter's form."""

    image_url: ImageUrl


class Delta(Struct, frozen=True):
    """A piece of the answer; also the shape of a whole `message`."""

    content: str | list[TextItem | ThinkingItem | ReferenceItem] | None = None
    refusal: str | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None
    reasoning_details: list[dict[str, Any]] | None = None
    annotations: list[Annotation] | None = None
    tool_calls: list[ToolCallDelta] | None = None
    audio: Any = None
    images: list[ShownImage] | None = None
    function_call: Any = None

    @property
    def has_more(self) -> bool:
        """True if the piece has content that the gateway does not support; Snowflake's empty fields
        do not count.
        """
        fields = (self.audio, self.function_call)
        if not any(fields):
            return False
        return any(any(value.values()) if isinstance(value, dict) else value for value in fields)


class Choice(Struct, frozen=True):
    """An answer; a server that does not stream sends `message`. Moonshot sends `usage` here."""

    index: int | None = None
    delta: Delta | None = None
    message: Delta | None = None
    logprobs: TokenLogProbs | None = None
    finish_reason: str | None = None
    usage: dict[str, Any] | None = None


class SearchResult(Struct, frozen=True):
    url: str | None = None
    title: str | None = None


class Groq(Struct, frozen=True):
    """Groq's additions: an error that ends the stream, and usage."""

    usage: dict[str, Any] | None = None
    error: Any = None


class Chunk(Struct, frozen=True):
    id: str | None = None
    model: str | None = None
    system_fingerprint: str | None = None
    service_tier: str | None = None
    choices: list[Choice] | None = None
    usage: dict[str, Any] | None = None
    citations: list[str] | None = None
    search_results: list[SearchResult] | None = None
    error: Any = None
    x_groq: Groq | None = None

    @property
    def plain_text(self) -> str | None:
        """The text if the chunk has nothing else, which is true of nearly all chunks; None for
        other chunks.
        """
        choices = self.choices
        if choices is None or len(choices) != 1 or self.usage or self.x_groq or self.error:
            return None
        choice, delta = choices[0], choices[0].delta
        if (
            delta is None
            or not isinstance(text := delta.content, str)
            or choice.index
            or choice.finish_reason is not None
            or choice.logprobs is not None
            or choice.usage is not None
            or self.usage is not None
            or self.citations
            or self.search_results
        ):
            return None
        has_more = (
            delta.reasoning_content
            or delta.reasoning
            or delta.reasoning_details
            or delta.refusal
            or delta.tool_calls
            or delta.annotations
            or delta.images
            or delta.audio
            or delta.function_call
        )
        return None if has_more else text

    @property
    def counted(self) -> dict[str, Any] | None:
        """The usage, from any of the fields in which servers send it."""
        if self.usage is not None:
            return self.usage
        for choice in self.choices or ():
            if choice.usage is not None:
                return choice.usage
        return self.x_groq.usage if self.x_groq else None


# The decoder is not strict, because some servers write numbers as text or with a decimal point.
CHUNKS: Final = msgspec.json.Decoder(Chunk, strict=False)
