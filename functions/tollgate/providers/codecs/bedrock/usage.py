"""Converse's token counts as classes that do not overlap."""

from tollgate.core.json_value import JsonValue
from tollgate.core.usage import Usage
from tollgate.providers.shared.counts import Counts, split, sum_counts


def usage_of(raw: JsonValue) -> Usage:
    """Return the usage by class; Converse counts cached tokens separately from the input."""
    report = Counts(raw)
    by_lifetime = [*report.each("cacheDetails")]
    one_hour: int | None = sum_counts(
        *(entry.count("inputTokens") for entry in by_lifetime if entry.word("ttl") == "1h")
    )
    written = report.count("cacheWriteInputTokens")
    if written is not None:
        written, (one_hour,) = split(written, one_hour)
    return Usage(
        uncached_input_tokens=report.count("inputTokens"),
        cache_read_input_tokens=report.count("cacheReadInputTokens"),
        cache_write_5m_input_tokens=written,
        cache_write_1h_input_tokens=one_hour or None,
        output_tokens=report.count("outputTokens"),
    )
