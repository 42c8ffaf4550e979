"""Converts the token counts of OpenAI-like servers to classes that do not overlap.

`prompt_tokens` includes tokens read from and written to a cache, and `completion_tokens` includes
reasoning. xAI reports reasoning outside the completion, and Gemini's OpenAI-compatible API includes
it only in the total. The numbers, not the provider's name, distinguish these cases. DeepSeek,
Mistral and Moonshot report cache hits at the top level; OpenRouter and OpenAI report image tokens
in the details (openrouter.ai/docs, CompletionTokensDetails, 2026-11-22). The number of searches is
the number of Perplexity's queries, of xAI's sources, or of calls of OpenRouter's tools.
"""

from typing import Final

from tollgate.core.json_value import JsonValue
from tollgate.core.usage import Usage
from tollgate.providers.shared.counts import Counts, rest_of_total, split, sum_counts

_CACHE_HITS: Final = ("prompt_cache_hit_tokens", "num_cached_tokens", "cached_tokens")


def openai_usage_of(raw: JsonValue) -> Usage:
    """Return the tokens of each class; None for a class that is not reported."""
    report = Counts(raw)
    prompt_details = report.inside("prompt_tokens_details")
    details = report.inside("completion_tokens_details")
    cache_read = prompt_details.count("cached_tokens")
    if cache_read is None:
        cache_read = report.first(*_CACHE_HITS)
    cache_write = prompt_details.count("cache_write_tokens")
    uncached = report.count("prompt_tokens")
    if uncached is not None:
        # Azure's Grok reports more cached tokens than prompt tokens; `split` caps the cached
        # tokens.
        uncached, (cache_read, cache_write) = split(uncached, cache_read, cache_write)
    searches = report.inside("server_tool_use").count("web_search_requests")
    if searches is None:
        searches = report.first("num_search_queries", "num_sources_used")
    reasoning = details.count("reasoning_tokens")
    extra = _uncounted_reasoning(report, reasoning)
    completion = report.count("completion_tokens")
    return Usage(
        uncached_input_tokens=uncached,
        cache_read_input_tokens=cache_read,
        cache_write_5m_input_tokens=cache_write,
        output_tokens=None if completion is None else sum_counts(completion, extra),
        reasoning_tokens=extra if reasoning is None and extra else reasoning,
        audio_input_tokens=prompt_details.count("audio_tokens"),
        audio_output_tokens=details.count("audio_tokens"),
        image_input_tokens=prompt_details.count("image_tokens"),
        image_output_tokens=details.count("image_tokens"),
        web_searches=searches,
    )


def responses_usage_of(raw: JsonValue) -> Usage:
    """Return the tokens of each class; Responses includes cached tokens in the input."""
    report = Counts(raw)
    details = report.inside("input_tokens_details")
    cache_read = details.count("cached_tokens")
    cache_write = details.count("cache_write_tokens")
    uncached = report.count("input_tokens")
    if uncached is not None:
        uncached, (cache_read, cache_write) = split(uncached, cache_read, cache_write)
    return Usage(
        uncached_input_tokens=uncached,
        cache_read_input_tokens=cache_read,
        cache_write_5m_input_tokens=cache_write,
        output_tokens=report.count("output_tokens"),
        reasoning_tokens=report.inside("output_tokens_details").count("reasoning_tokens"),
    )


def _uncounted_reasoning(report: Counts, reasoning: int | None) -> int:
    """Return the number of reasoning tokens that are counted only in the total."""
    prompt, completion = report.count("prompt_tokens"), report.count("completion_tokens")
    if prompt is None or completion is None:
        return 0
    extra = rest_of_total(report.count("total_tokens"), prompt, completion)
    return extra if extra is not None and reasoning in (None, extra) else 0
