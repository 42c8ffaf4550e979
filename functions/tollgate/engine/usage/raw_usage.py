"""The provider's own words and usage reports, cut to a size that a record can store."""

from typing import Final

from pydantic_core import to_json

from tollgate.core.json_value import JsonValue

# A record larger than an item could never be settled ("Quotas in Amazon DynamoDB": 400 KB, seen
# 2026-11-21).
WORD_LENGTH_MAX: Final = 256
RAW_USAGE_BYTES_MAX: Final = 32 * 1024
# Usage reports have two levels. The limit is below the roughly 250 levels at which the JSON encoder
# for records fails.
_RAW_USAGE_LEVELS_MAX: Final = 16
STORED_INTEGER_MAX: Final = 2**63 - 1


def fit_word(word: str | None) -> str | None:
    """Return a string, cut to its maximum length."""
    return None if word is None else word[:WORD_LENGTH_MAX]


def fit_raw_usage(reports: list[JsonValue]) -> JsonValue:
    """Return the reports of all streams, or the report itself if there is only one; if they are too
    large, return their size.
    """
    raw: JsonValue = reports[0] if len(reports) == 1 else reports
    try:
        size_bytes = len(to_json(raw))
    except ValueError:
        # The report is nested too deeply for JSON. Settling must not depend on what a provider
        # sends.
        return None
    if size_bytes > RAW_USAGE_BYTES_MAX:
        return {"left_out_bytes": size_bytes}
    return _fit(raw)


def _fit(raw: JsonValue, levels: int = _RAW_USAGE_LEVELS_MAX) -> JsonValue:
    """Return raw usage in a form that a record can store: large integers as strings, and no deep
    nesting.
    """
    match raw:
        case dict() | list() if levels == 0:
            return None
        case dict():
            return {name: _fit(value, levels - 1) for name, value in raw.items()}
        case list():
            return [_fit(value, levels - 1) for value in raw]
        case int() if abs(raw) > STORED_INTEGER_MAX:
            return str(raw)
        case _:
            return raw
