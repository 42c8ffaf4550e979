"""Finds keys of a routing file that a release's schema lacks or marks as deprecated."""

from collections.abc import Iterator, Mapping
from typing import Final, cast

from tollgate.routing.file.document import Plain

_Schema = Mapping[str, object]
_ALTERNATIVES: Final = ("anyOf", "oneOf", "allOf")


def find_deprecated_keys(content: Plain, schema: _Schema) -> Iterator[str]:
    """Yield a line for each key of a routing file that the schema lacks or marks `deprecated`.

    The description of a deprecated key names its replacement.
    """
    yield from dict.fromkeys(_Walk(schema).lines(content, (schema,), ""))


class _Walk:
    def __init__(self, schema: _Schema) -> None:
        self._definitions = cast(Mapping[str, _Schema], schema.get("$defs", {}))

    def lines(self, content: Plain, schemas: tuple[_Schema, ...], place: str) -> Iterator[str]:
        """Yield the lines of a value that one of the schemas describes."""
        known = tuple(self._expanded(schemas))
        match content:
            case dict():
                for key, value in content.items():
                    inner = tuple(_of_key(known, key))
                    name = f"{place}{key}"
                    if not inner and any("properties" in each for each in known):
                        yield f"- {name} is not a key of this release"
                    for each in inner:
                        if each.get("deprecated"):
                            yield f"! {name} is deprecated: {each.get('description', '')}"
                    yield from self.lines(value, inner, f"{name}.")
            case tuple() | list():
                items = tuple(cast(_Schema, each["items"]) for each in known if "items" in each)
                for value in content:
                    yield from self.lines(value, items, place)
            case _:
                return

    def _expanded(self, schemas: tuple[_Schema, ...]) -> Iterator[_Schema]:
        """Yield the schemas, with their references and alternatives."""
        for schema in schemas:
            yield schema
            reference = schema.get("$ref")
            if isinstance(reference, str):
                name = reference.rpartition("/")[2]
                yield from self._expanded((self._definitions[name],))
            for keyword in _ALTERNATIVES:
                yield from self._expanded(cast(tuple[_Schema, ...], schema.get(keyword, ())))


def _of_key(schemas: tuple[_Schema, ...], key: str) -> Iterator[_Schema]:
    """Yield the schemas of a key's value: its own, or else the schemas for all other keys."""
    for schema in schemas:
        properties = cast(Mapping[str, _Schema], schema.get("properties", {}))
        if key in properties:
            yield properties[key]
            continue
        others = cast(Mapping[str, _Schema], schema.get("patternProperties", {}))
        yield from others.values()
        others_too = schema.get("additionalProperties")
        if isinstance(others_too, dict):
            yield others_too
