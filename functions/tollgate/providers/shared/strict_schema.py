"""Closes JSON Schemas for servers that enforce them strictly."""

from collections.abc import Mapping
from typing import Final

from tollgate.core.json_value import JsonValue

# Keywords whose value is one schema, a list of schemas, or a mapping of schemas by name.
_SINGLE: Final = ("items", "additionalProperties", "not")
_LISTED: Final = ("anyOf", "oneOf", "allOf", "prefixItems")
_NAMED: Final = ("properties", "$defs", "definitions")


def close_schema(schema: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return the schema with `additionalProperties: false` on each object that lacks the key.

    OpenAI and Anthropic refuse strict schemas without the key. Closing a schema that is not strict
    would change its meaning.
    """
    closed = {name: _inside(name, value) for name, value in schema.items()}
    if _is_object(schema) and "additionalProperties" not in schema:
        closed["additionalProperties"] = False
    return closed


def _inside(name: str, value: JsonValue) -> JsonValue:
    match value:
        case dict() if name in _NAMED:
            return {key: _closed(inner) for key, inner in value.items()}
        case dict() if name in _SINGLE:
            return close_schema(value)
        case list() if name in _LISTED:
            return [_closed(inner) for inner in value]
        case _:
            return value


def _closed(value: JsonValue) -> JsonValue:
    return close_schema(value) if isinstance(value, dict) else value


def _is_object(schema: Mapping[str, JsonValue]) -> bool:
    kind = schema.get("type")
    return kind == "object" or (isinstance(kind, list) and "object" in kind)
