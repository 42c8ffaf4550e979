"""Converts JSON Schemas to the subset that Anthropic enforces, where every object is closed.

https://platform.claude.com/docs/en/build-with-claude/structured-outputs (seen 2026-11-21)
"""

from collections.abc import Mapping
from typing import Final

from tollgate.core.json_value import JsonValue

_FORMATS: Final = frozenset(
    {"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"}
)


def close_enforceable(schema: Mapping[str, JsonValue]) -> dict[str, JsonValue] | None:
    """Return the schema with every object closed; None if Anthropic cannot enforce the schema.

    An answer that fits the closed schema also fits the caller's. Anthropic cannot enforce a schema
    that explicitly allows additional properties.
    """
    closed = _closed(dict(schema))
    return closed if isinstance(closed, dict) else None


def _closed(schema: JsonValue) -> JsonValue:
    """Return the closed schema; None if Anthropic cannot enforce the schema."""
    if not isinstance(schema, dict):
        return None
    closed: dict[str, JsonValue] = {}
    for keyword, value in schema.items():
        if keyword == "$schema":
            continue
        enforceable = _keyword(keyword, value)
        if enforceable is None:
            return None
        closed[keyword] = enforceable
    if schema.get("type") == "object" or "properties" in schema:
        # An object without properties allows any key, and closing the object would forbid every
        # key.
        if not schema.get("properties") and schema.get("additionalProperties") is not False:
            return None
        closed["additionalProperties"] = False
    return closed


def _keyword(keyword: str, value: JsonValue) -> JsonValue:
    """Return a keyword's value with closed schemas; None if Anthropic cannot enforce the value."""
    match keyword, value:
        case ("anyOf" | "allOf", list()):
            branches = [_closed(branch) for branch in value]
            return None if None in branches else branches
        case ("properties" | "$defs" | "definitions", dict()):
            schemas = {name: _closed(inner) for name, inner in value.items()}
            return None if None in schemas.values() else schemas
        case ("items", _):
            return _closed(value)
        case ("additionalProperties", False):
            return False
        case ("enum", list()):
            return None if any(isinstance(choice, dict | list) for choice in value) else value
        case ("minItems", 0 | 1):
            return value
        case ("format", str()):
            return value if value in _FORMATS else None
        case ("title" | "description" | "default" | "const" | "type" | "required" | "$ref", _):
            return value
        case _:
            return None
