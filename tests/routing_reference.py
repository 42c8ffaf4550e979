"""The reference of infra/routing-reference.md: every key of routing.yaml, from its JSON Schema.

`python -m tests.routing_reference` writes it. The schema is made from the fields of the sections,
so that a key is described once, beside its field.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[1]
PAGE: Final = ROOT / "infra" / "routing-reference.md"
SCHEMA: Final = ROOT / "infra" / "schema" / "routing.v1.json"
BEGIN: Final = "<!-- made by python -m tests.routing_reference -->"
END: Final = "<!-- end -->"
TOP: Final = "The file"
_REFERENCE: Final = "#/$defs/"

Node = Mapping[str, Any]


def page(written: str) -> str:
    """Return the page with its reference made anew."""
    before, rest = written.split(BEGIN)
    _, after = rest.split(END)
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    sections = "\n\n".join(_sections(schema))
    return f"{before}{BEGIN}\n\n{sections}\n\n{END}{after}"


def _sections(schema: Node) -> Iterator[str]:
    """Yield the text of each section, under the path at which it first stands."""
    named: Mapping[str, Node] = schema["$defs"]
    waiting: list[tuple[str, Node]] = [(TOP, schema)]
    seen: set[str] = set()
    written: list[Node] = []
    described: dict[str, str] = {}
    while waiting:
        path, section = waiting.pop(0)
        below: list[tuple[str, Node]] = []
        for key, field in _in_order(path, section):
            for name, suffix in _references(field):
                if name not in seen:
                    seen.add(name)
                    inner = f"{key}{suffix}" if path == TOP else f"{path}.{key}{suffix}"
                    below.append((inner, named[name]))
        waiting = below + waiting
        if not any(section["properties"].items() <= whole.items() for whole in written):
            written.append(section["properties"])
            yield _section(path, section, described)


def _in_order(path: str, section: Node) -> list[tuple[str, Node]]:
    """Return the fields of a section; of the file, the defaults first, which others name."""
    fields = list(section["properties"].items())
    return sorted(fields, key=lambda field: field[0] != "defaults") if path == TOP else fields


def _section(path: str, section: Node, known: dict[str, str]) -> str:
    """Return a heading, what the section is, and a line for each key that says more.

    `known` has the section that first describes a key, by its line.
    """
    required = frozenset(section.get("required", ()))
    described: list[str] = []
    bare: list[str] = []
    alike: dict[str, list[str]] = {}
    for key, field in section["properties"].items():
        words = " ".join(filter(None, (field.get("description"), _values(field))))
        shown = f"`{key}`*" if key in required else f"`{key}`"
        line = f"- {shown}: {words}"
        if words and known.setdefault(line, path) != path:
            alike.setdefault(known[line], []).append(shown)
        elif words:
            described.append(line)
        else:
            bare.append(shown)
    title = path if path == TOP else f"`{path}`"
    lines = [f"### {title}", "", section["description"].partition("\n")[0], "", *described]
    lines += [f"- as in `{other}`: {', '.join(keys)}" for other, keys in alike.items()]
    if bare:
        lines.append(f"- {', '.join(bare)}")
    return "\n".join(lines)


def _references(field: Node) -> Iterator[tuple[str, str]]:
    """Yield the sections that a field holds, and how their path goes on after its key."""
    if reference := field.get("$ref"):
        yield reference.removeprefix(_REFERENCE), ""
    for each in field.get("anyOf", ()):
        yield from _references(each)
    if isinstance(entry := field.get("items"), dict):
        yield from ((name, f"[]{rest}") for name, rest in _references(entry))
    for value in (field.get("additionalProperties"), *field.get("patternProperties", {}).values()):
        if isinstance(value, dict):
            yield from ((name, f".<name>{rest}") for name, rest in _references(value))


def _values(field: Node) -> str:
    """Return the words that a field may have, if its description lacks them, and its default."""
    words = list(_words(field))
    shown = [f"`{word}`" for word in words]
    sentences = []
    if any(word not in field.get("description", "") for word in shown):
        sentences.append(f"{', '.join(shown)}.")
    default = field.get("default")
    if default and isinstance(default, list):
        default = "all" if sorted(default) == sorted(words) else ", ".join(map(str, default))
    if default and not isinstance(default, dict):
        sentences.append(f"Default: `{_plain(default)}`.")
    return " ".join(sentences)


def _words(field: Node) -> Iterator[str]:
    yield from field.get("enum", ())
    for each in field.get("anyOf", ()):
        yield from _words(each)
    if isinstance(items := field.get("items"), dict):
        yield from _words(items)


def _plain(value: object) -> object:
    """Return a value as people write it in YAML."""
    if isinstance(value, bool):
        return str(value).lower()
    return int(value) if isinstance(value, float) and value.is_integer() else value


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
