"""What an OpenAI-like server sends: chunks of a stream, and the errors in their place.

Only fields that are read are named. Shapes: OpenAI's chunk schema, and what its imitators do with
it (seen 2026-11-21): Mistral's content lists, two names for reasoning, tool deltas without an
index, errors as an object, a text or a list.
"""

from typing import Literal

from pydantic import BaseModel, ConfigDict, JsonValue


class _Shape(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class TextItem(_Shape):
    """A text in a content list."""

    type: Literal["text"]
    text: str


class ThinkingItem(_Shape):
    """Mistral's reasoning in a content list."""

    type: Literal["thinking"]
    thinking: list[TextItem]


class FunctionDelta(_Shape):
    """A piece of a call."""

    name: str | None = None
    arguments: str | None = None


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

    content: str | list[TextItem | ThinkingItem] | None = None
    refusal: str | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None
    reasoning_details: list[dict[str, JsonValue]] | None = None
    annotations: list[Annotation] | None = None
    tool_calls: list[ToolCallDelta] | None = None


class Choice(_Shape):
    """One of the answers; servers that do not stream send `message`."""

    index: int = 0
    delta: Delta | None = None
    message: Delta | None = None
    logprobs: TokenLogProbs | None = None
    finish_reason: str | None = None


class SearchResult(_Shape):
    """A page that Perplexity has read."""

    url: str | None = None
    title: str | None = None


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


class PromptDetails(_Shape):
    """What the prompt consists of."""

    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    audio_tokens: int | None = None


class CompletionDetails(_Shape):
    """What the completion consists of."""

    reasoning_tokens: int | None = None
    audio_tokens: int | None = None


class UsageReport(_Shape):
    """Token counts; DeepSeek, Mistral and Moonshot count cache hits at the top level."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None
    prompt_tokens_details: PromptDetails | None = None
    completion_tokens_details: CompletionDetails | None = None
    prompt_cache_hit_tokens: int | None = None
    num_cached_tokens: int | None = None
    cached_tokens: int | None = None


class ErrorDetail(_Shape):
    """The usual content of `error`."""

    message: str | None = None
    code: str | int | None = None
    type: str | None = None
    param: str | None = None
    status: str | int | None = None
    status_code: int | None = None


class ErrorBody(_Shape):
    """An error reply; some servers have no envelope, or other names for it."""

    error: ErrorDetail | str | None = None
    message: str | None = None
    detail: JsonValue = None
    code: str | int | None = None
    type: str | None = None
