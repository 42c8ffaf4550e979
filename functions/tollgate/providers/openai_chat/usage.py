"""Token counts of OpenAI-like servers as classes that do not overlap.

`prompt_tokens` includes what was read from and written to a cache, `completion_tokens` includes
reasoning. xAI counts reasoning beside the completion, Gemini's OpenAI layer leaves it out of every
count but the total: both are seen from the numbers, never from the name.
"""

from tollgate.core.usage import Usage
from tollgate.providers.openai_chat.wire import (
    CompletionDetails,
    PromptDetails,
    ServerToolUse,
    UsageReport,
)


def usage_of(report: UsageReport) -> Usage:
    """Return the usage by class; a class that the report does not mention is None."""
    prompt_details = report.prompt_tokens_details or PromptDetails()
    details = report.completion_tokens_details or CompletionDetails()
    reasoning = details.reasoning_tokens
    cache_read = _first(
        prompt_details.cached_tokens,
        report.prompt_cache_hit_tokens,
        report.num_cached_tokens,
        report.cached_tokens,
    )
    cache_write = prompt_details.cache_write_tokens
    uncached = report.prompt_tokens
    if uncached is not None:
        # Azure's Grok reports more cached tokens than the prompt has: the prompt is the bound.
        if cache_read is not None:
            cache_read = min(cache_read, uncached)
            uncached -= cache_read
        if cache_write is not None:
            cache_write = min(cache_write, uncached)
            uncached -= cache_write
    return Usage(
        uncached_input_tokens=uncached,
        cache_read_input_tokens=cache_read,
        cache_write_5m_input_tokens=cache_write,
        output_tokens=_output_tokens(report, reasoning),
        reasoning_tokens=reasoning,
        audio_input_tokens=prompt_details.audio_tokens,
        audio_output_tokens=details.audio_tokens,
        web_searches=_first(
            (report.server_tool_use or ServerToolUse()).web_search_requests,
            report.num_search_queries,
            report.num_sources_used,
        ),
    )


def _output_tokens(report: UsageReport, reasoning: int | None) -> int | None:
    prompt, completion, total = (
        report.prompt_tokens,
        report.completion_tokens,
        report.total_tokens,
    )
    if prompt is None or completion is None or total is None:
        return completion
    beside = total - prompt - completion
    # Tokens that only the total includes were generated: it is reasoning that was left out.
    return completion + beside if beside > 0 and reasoning in (None, beside) else completion


def _first(*counts: int | None) -> int | None:
    return next((count for count in counts if count is not None), None)
