"""The token counts of Responses as classes that do not overlap."""

from tollgate.core.json_value import JsonValue
from tollgate.core.usage import Usage
from tollgate.providers.shared.counts import Counts, split


def usage_of(raw: JsonValue) -> Usage:
    """Return the usage by class; Responses counts cached tokens as part of the input."""
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
