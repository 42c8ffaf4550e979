"""Schemas for servers that want every object closed."""

from typing import Any

import pytest

from tollgate.providers.shared.strict_schema import close_schema

OPEN = {"type": "object"}
CLOSED = {"type": "object", "additionalProperties": False}


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (OPEN, CLOSED),
        ({"type": ["object", "null"]}, {"type": ["object", "null"], "additionalProperties": False}),
        ({"type": "array", "items": OPEN}, {"type": "array", "items": CLOSED}),
        ({"anyOf": [OPEN, {"type": "null"}]}, {"anyOf": [CLOSED, {"type": "null"}]}),
        (
            {"$defs": {"a": OPEN}, "$ref": "#/$defs/a"},
            {"$defs": {"a": CLOSED}, "$ref": "#/$defs/a"},
        ),
        ({"properties": {"type": OPEN}}, {"properties": {"type": CLOSED}}),
    ],
)
def test_q26_every_object_is_closed_wherever_it_is(schema: Any, expected: Any) -> None:
    assert close_schema(schema) == expected


@pytest.mark.parametrize("extra", [True, False, {"type": "string"}])
def test_q26_what_a_schema_says_of_other_properties_stands(extra: Any) -> None:
    schema = {"type": "object", "additionalProperties": extra}
    assert close_schema(schema) == schema


@pytest.mark.parametrize(
    "schema", [{"enum": [{"type": "object"}]}, {"const": {"type": "object"}}, {"type": "string"}]
)
def test_q26_values_are_no_schemas(schema: Any) -> None:
    assert close_schema(schema) == schema
