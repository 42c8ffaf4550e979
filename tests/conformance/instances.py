"""Values that a JSON Schema allows: each branch of each choice and each word of each enum, once."""

from collections.abc import Iterator, Mapping
from typing import Any

Schema = Mapping[str, Any]
_DEPTH_MAX = 9
_PLAIN = {
    "string": "text",
    "integer": 1,
    "number": 0.5,
    "boolean": True,
    "null": None,
}


class Instances:
    """The instances of a schema whose references are to its own `$defs`."""

    def __init__(self, root: Schema) -> None:
        self._root = root

    def __iter__(self) -> Iterator[Any]:
        return self._of(self._root, 0)

    def _of(self, schema: Schema, depth: int) -> Iterator[Any]:
        schema = self._resolved(schema)
        branches = schema.get("anyOf") or schema.get("oneOf")
        if branches:
            for branch in branches:
                yield from self._of(branch, depth)
        elif "const" in schema:
            yield schema["const"]
        elif "enum" in schema:
            yield from schema["enum"]
        elif isinstance(schema.get("type"), list):
            for kind in schema["type"]:
                yield from self._of({**schema, "type": kind}, depth)
        elif schema.get("type") == "object" or "properties" in schema:
            yield from self._objects(schema, depth)
        elif schema.get("type") == "array":
            yield from self._arrays(schema, depth)
        else:
            yield _PLAIN.get(schema.get("type", ""), {})

    def _objects(self, schema: Schema, depth: int) -> Iterator[dict[str, Any]]:
        """An object with every field, then it again with each other value of each field."""
        fields = schema.get("properties", {}) if depth < _DEPTH_MAX else {}
        values = {name: [*self._of(field, depth + 1)] for name, field in fields.items()}
        full = {name: found[0] for name, found in values.items() if found}
        yield full
        for name, found in values.items():
            for other in found[1:]:
                yield {**full, name: other}
        required = set(schema.get("required", ()))
        yield {name: value for name, value in full.items() if name in required}

    def _arrays(self, schema: Schema, depth: int) -> Iterator[list[Any]]:
        items = schema.get("items", {}) if depth < _DEPTH_MAX else {}
        for item in self._of(items, depth + 1):
            yield [item]
        yield []

    def _resolved(self, schema: Schema) -> Schema:
        while "$ref" in schema or len(schema.get("allOf", ())) > 0:
            if "$ref" in schema:
                schema = self._root["$defs"][schema["$ref"].rpartition("/")[2]]
                continue
            merged: dict[str, Any] = {key: value for key, value in schema.items() if key != "allOf"}
            for part in schema["allOf"]:
                own = self._resolved(part)
                properties = {**merged.get("properties", {}), **own.get("properties", {})}
                merged = {**own, **merged}
                if properties:
                    merged["properties"] = properties
            schema = merged
        return schema
