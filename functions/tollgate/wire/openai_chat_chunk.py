"""What an OpenAI-like server sends: chunks of a stream, and the errors in their place.

Only fields that are read are named. Shapes: OpenAI's chunk schema, and what its imitators do with
it (seen 2026-11-21): Mistral's content lists, two names for reasoning, tool deltas without an
index, arguments as an object, usage in a choice, errors as an object, a text or a list.
"""

from typing import Annotated, Literal

import pydantic_core
from pydantic import BaseModel, BeforeValidator, ConfigDict, JsonValue


def _as_text(value: object) -> object:
    """JSON in place of a text as the text that it should have been."""
    return pydantic_core.to_json(value).decode() if isinstance(value, dict | list) else value


_JsonText = Annotated[str, BeforeValidator(_as_text)]


class _Shape(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, defer_build=True)


class TextItem(_Shape):
    """A text in a content list."""

    type: Literal["text"]
    text: str


class ReferenceItem(_Shape):
    """Mistral's mark that a text rests on results of the caller's own tools, by their numbers."""

    type: Literal["reference"]
    reference_ids: list[int | str] = []


class ThinkingItem(_Shape):
    """Mistral's reasoning in a content list."""

    type: Literal["thinking"]
    thinking: list[TextItem | ReferenceItem]


class FunctionDelta(_Shape):
    """A piece of a call."""

    name: str | None = None
    arguments: _JsonText | None = None


class ToolCallDelta(_Shape):
    """A piece of one of several calls."""

    index: int | None = None
    id: str | None = None
    function: FunctionDelta = FunctionDelta()
    extra_content: dict[str, JsonValue] | None = None


class UrlCitation(_Shape):
    """Where a stretch of the text comes from."""

    url: str | None = None
    title: str | None = None
    start_index: int | None = None
    end_index: int | None = None


class Annotation(_Shape):
    """A mark on the text."""

    type: str | None = None
    url_citation: UrlCitation | None = None


class TokenLogProbs(_Shape):
    """Log probabilities as OpenAI writes them, and as two lists in Together's older form."""

    content: list[dict[str, JsonValue]] | None = None
    refusal: list[dict[str, JsonValue]] | None = None
    tokens: list[str] | None = None
    token_logprobs: list[float | None] | None = None


class Delta(_Shape):
    """A piece of the answer; also the shape of a whole `message`."""

    content: str | list[TextItem | ThinkingItem | ReferenceItem] | None = None
    refusal: str | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None
    reasoning_details: list[dict[str, JsonValue]] | None = None
    annotations: list[Annotation] | None = None
    tool_calls: list[ToolCallDelta] | None = None
    audio: JsonValue = None
    images: JsonValue = None
    function_call: JsonValue = None

    @property
    def has_more(self) -> bool:
        """Whether there is what no answer here can hold; Snowflake sends such fields, but blank."""
        beside = (self.audio, self.images, self.function_call)
        if not any(beside):
            return False
        return any(any(more.values()) if isinstance(more, dict) else more for more in beside)


class Choice(_Shape):
    """One of the answers; servers that do not stream send `message`, Moonshot's `usage` is here."""

    index: int | None = None
    delta: Delta | None = None
    message: Delta | None = None
    logprobs: TokenLogProbs | None = None
    finish_reason: str | None = None
    usage: dict[str, JsonValue] | None = None


class SearchResult(_Shape):
    """A page that Perplexity has read."""

    url: str | None = None
    title: str | None = None


class Groq(_Shape):
    """What Groq tells beside its chunks: why a stream breaks off, and usage nobody asked for."""

    usage: dict[str, JsonValue] | None = None
    error: JsonValue = None


class Chunk(_Shape):
    """One event of a stream."""

    id: str | None = None
    model: str | None = None
    system_fingerprint: str | None = None
    service_tier: str | None = None
    choices: list[Choice] | None = None
    usage: dict[str, JsonValue] | None = None
    citations: list[str] | None = None
    search_results: list[SearchResult] | None = None
    error: JsonValue = None
    x_groq: Groq | None = None

    @property
    def counted(self) -> dict[str, JsonValue] | None:
        """The usage, wherever the server has put it."""
        if self.usage is not None:
            return self.usage
        for choice in self.choices or ():
            if choice.usage is not None:
                return choice.usage
        return self.x_groq.usage if self.x_groq else None


class PromptDetails(_Shape):
    """What the prompt consists of."""

    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    audio_tokens: int | None = None


class CompletionDetails(_Shape):
    """What the completion consists of."""

    reasoning_tokens: int | None = None
    audio_tokens: int | None = None


class ServerToolUse(_Shape):
    """How often OpenRouter's own tools ran."""

    web_search_requests: int | None = None


class UsageReport(_Shape):
    """Token counts; DeepSeek, Mistral and Moonshot count cache hits at the top level.

    Searches that nobody asked for are Perplexity's queries, xAI's sources, or OpenRouter's tools.
    """

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None
    prompt_tokens_details: PromptDetails | None = None
    completion_tokens_details: CompletionDetails | None = None
    prompt_cache_hit_tokens: int | None = None
    num_cached_tokens: int | None = None
    cached_tokens: int | None = None
    num_search_queries: int | None = None
    num_sources_used: int | None = None
    server_tool_use: ServerToolUse | None = None


class ErrorDetail(_Shape):
    """The usual content of `error`."""

    message: _JsonText | None = None
    code: str | int | None = None
    type: str | None = None
    status: str | int | None = None
    status_code: int | None = None


class FieldError(_Shape):
    """What FastAPI, and with it vLLM and Mistral, says of a field; its `input` is the prompt's."""

    loc: list[str | int] = []
    msg: str


class FieldErrors(_Shape):
    """Mistral's envelope around them."""

    detail: list[FieldError]


class ErrorBody(_Shape):
    """An error reply; some servers have no envelope, or other names for it."""

    error: ErrorDetail | str | None = None
    message: str | FieldErrors | None = None
    detail: str | list[FieldError] | None = None
    code: str | int | None = None
    type: str | None = None
