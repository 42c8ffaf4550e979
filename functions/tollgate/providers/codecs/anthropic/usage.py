"""Anthropic's token counts as classes that do not overlap."""

from collections.abc import Mapping

from tollgate.core.json_value import JsonValue
from tollgate.core.usage import Usage
from tollgate.providers.shared.counts import Counts, split


def merge_usage(
    earlier: Mapping[str, JsonValue], later: Mapping[str, JsonValue]
) -> dict[str, JsonValue]:
    """Return the usage after a later report, which replaces the counts that it contains.

    The end of a stream repeats some counts of its start, possibly with other values.
    """
    return {**earlier, **{name: value for name, value in later.items() if value is not None}}


def usage_of(raw: JsonValue) -> Usage:
    """Return the usage by class; Anthropic counts cached tokens separately from the input."""
    report = Counts(raw)
    by_lifetime = report.inside("cache_creation")
    one_hour = by_lifetime.count("ephemeral_1h_input_tokens")
    five_minutes = by_lifetime.count("ephemeral_5m_input_tokens")
    written = report.count("cache_creation_input_tokens")
    if written is not None:
        five_minutes, (one_hour,) = split(written, one_hour)
    return Usage(
        uncached_input_tokens=report.count("input_tokens"),
        cache_read_input_tokens=report.count("cache_read_input_tokens"),
        cache_write_5m_input_tokens=five_minutes,
        cache_write_1h_input_tokens=one_hour,
        output_tokens=report.count("output_tokens"),
        reasoning_tokens=report.inside("output_tokens_details").count("thinking_tokens"),
        web_searches=report.inside("server_tool_use").count("web_search_requests"),
    )
