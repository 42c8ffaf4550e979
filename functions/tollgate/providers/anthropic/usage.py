"""Anthropic's token counts as classes that do not overlap."""

from collections.abc import Mapping

from pydantic import JsonValue

from tollgate.core.usage import Usage
from tollgate.providers.anthropic.wire import TokenUsage


def merge_usage(
    earlier: Mapping[str, JsonValue], later: Mapping[str, JsonValue]
) -> dict[str, JsonValue]:
    """Return the usage after a later report, which replaces the counts that it states.

    The end of a stream restates some counts, and they may differ from those of its start.
    """
    return {**earlier, **{name: value for name, value in later.items() if value is not None}}


def usage_of(counted: TokenUsage) -> Usage:
    """Return the usage by class; Anthropic counts cached tokens beside the input."""
    by_lifetime, written = counted.cache_creation, counted.cache_creation_input_tokens
    one_hour = by_lifetime.ephemeral_1h_input_tokens if by_lifetime else None
    five_minutes = by_lifetime.ephemeral_5m_input_tokens if by_lifetime else None
    if written is not None:
        five_minutes = max(0, written - (one_hour or 0))
    details, tools = counted.output_tokens_details, counted.server_tool_use
    return Usage(
        uncached_input_tokens=counted.input_tokens,
        cache_read_input_tokens=counted.cache_read_input_tokens,
        cache_write_5m_input_tokens=five_minutes,
        cache_write_1h_input_tokens=one_hour,
        output_tokens=counted.output_tokens,
        reasoning_tokens=details.thinking_tokens if details else None,
        web_searches=tools.web_search_requests if tools else None,
    )
