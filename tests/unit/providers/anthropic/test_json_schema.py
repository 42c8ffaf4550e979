"""Which schemas Anthropic can hold an answer to, and how they are closed.

Keeps C16.
"""

from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tollgate.providers.codecs.anthropic.json_schema import close_enforceable

TEXT = {"type": "string"}


def test_q26_every_object_is_closed_wherever_it_is() -> None:
    inner = {"type": "object", "properties": {"a": TEXT}}
    closed = {**inner, "additionalProperties": False}
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {
            "one": inner,
            "many": {"type": "array", "items": inner, "minItems": 1},
            "any": {"anyOf": [inner, {"type": "null"}]},
            "kept": {"$ref": "#/$defs/Kept"},
        },
        "$defs": {"Kept": inner},
    }
    assert close_enforceable(schema) == {
        "type": "object",
        "properties": {
            "one": closed,
            "many": {"type": "array", "items": closed, "minItems": 1},
            "any": {"anyOf": [closed, {"type": "null"}]},
            "kept": {"$ref": "#/$defs/Kept"},
        },
        "$defs": {"Kept": closed},
        "additionalProperties": False,
    }


def test_a_schema_that_is_closed_already_stays_as_it_is() -> None:
    schema = {
        "type": "object",
        "properties": {"when": {"type": "string", "format": "date"}},
        "required": ["when"],
        "additionalProperties": False,
    }
    assert close_enforceable(schema) == schema


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object"},
        {"type": "object", "properties": {}},
        {"type": "object", "properties": {"a": TEXT}, "additionalProperties": True},
        {"type": "object", "additionalProperties": TEXT},
        {"type": "object", "properties": {"a": {"type": "object"}}},
        {"type": "integer", "minimum": 1},
        {"type": "string", "maxLength": 3},
        {"type": "string", "format": "colour"},
        {"type": "array", "items": TEXT, "minItems": 2},
        {"oneOf": [TEXT]},
        {"enum": [{"a": 1}]},
        {"anyOf": [{"not": TEXT}]},
        {"type": "array", "items": True},
    ],
)
def test_what_cannot_be_enforced_or_closed_is_left_to_other_means(schema: Any) -> None:
    assert close_enforceable(schema) is None


scalars = st.sampled_from([TEXT, {"type": "integer"}, {"type": ["string", "null"]}, {"enum": [1]}])
schemas: st.SearchStrategy[Any] = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.builds(lambda items: {"type": "array", "items": items}, inner),
        st.builds(lambda branches: {"anyOf": branches}, st.lists(inner, min_size=1, max_size=2)),
        st.builds(
            lambda properties: {"type": "object", "properties": properties},
            st.dictionaries(st.sampled_from("ab"), inner, min_size=1),
        ),
    ),
    max_leaves=5,
)
values = st.recursive(
    st.sampled_from([None, 1, "x"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner),
    max_leaves=4,
)


@given(schemas, values)
def test_c16_what_the_closed_schema_allows_the_callers_does_too(schema: Any, value: Any) -> None:
    closed = close_enforceable(schema)
    assert closed is not None
    if jsonschema.Draft202012Validator(closed).is_valid(value):
        assert jsonschema.Draft202012Validator(schema).is_valid(value)
