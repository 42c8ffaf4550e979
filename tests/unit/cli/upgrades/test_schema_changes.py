"""Keys of a routing file that another release's schema lacks or marks as deprecated."""

from typing import Any, Final

from tollgate.cli.upgrades.schema_changes import find_deprecated_keys

ROW: Final = {
    "properties": {
        "old": {"type": "string", "deprecated": True, "description": "Use `new`."},
        "new": {"type": "string"},
    }
}
SCHEMA: Final[dict[str, Any]] = {
    "$defs": {"Row": ROW},
    "properties": {
        "rows": {"additionalProperties": {"$ref": "#/$defs/Row"}},
        "list": {"items": {"anyOf": [{"$ref": "#/$defs/Row"}, {"type": "null"}]}},
        "free": {},
    },
}


def test_each_deprecated_key_is_named_once_with_its_replacement() -> None:
    content = {"rows": {"a": {"old": "1", "new": "2"}}, "list": ({"old": "3"}, {"old": "4"}, None)}
    assert list(find_deprecated_keys(content, SCHEMA)) == [
        "! rows.a.old is deprecated: Use `new`.",
        "! list.old is deprecated: Use `new`.",
    ]


def test_a_key_that_is_gone_is_named_and_free_values_are_not() -> None:
    content = {"rows": {"a": {"gone": "1"}}, "other": {"x": "1"}, "free": {"any": {"thing": "1"}}}
    assert list(find_deprecated_keys(content, SCHEMA)) == [
        "- rows.a.gone is not a key of this release",
        "- other is not a key of this release",
    ]
