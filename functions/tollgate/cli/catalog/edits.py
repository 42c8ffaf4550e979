"""Edits of single values in a YAML file, which keep comments, order and all other bytes."""

from collections.abc import Sequence
from typing import Final

import yaml

from tollgate.routing.file.document import Where
from tollgate.routing.file.yaml_nodes import compose_yaml

_STEP: Final = "  "


class NotEditable(ValueError):
    """Raised for a value that only a person can edit; the message gives the reason."""


class FileEdits:
    """Edits of a YAML text, collected by position and applied together."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._root = compose_yaml(text)
        self._starts = [0]
        for line in text.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self._edits: list[tuple[int, int, str]] = []

    def set_value(self, where: Where, key: str, value: str, *, after: Sequence[str]) -> None:
        """Replace the value of a key, or insert the key after the last existing key of `after`."""
        mapping = self._mapping(where)
        entry = _entry(mapping, key)
        if entry is not None:
            self._replace(entry[1], value)
            return
        before = next((found for name in reversed(after) if (found := _entry(mapping, name))), None)
        if before is None:
            raise NotEditable(f"{_path(where)} has none of the keys {', '.join(after)}")
        if mapping.flow_style:
            end = self._offset(before[1].end_mark)
            self._edits.append((end, end, f", {key}: {value}"))
            return
        self._insert_line(before, f"{key}: {value}")

    def set_block(self, where: Where, key: str, lines: Sequence[str], *, after: str) -> None:
        """Replace or insert the lines under a key; raise NotEditable if comments would be lost."""
        mapping = self._mapping(where)
        before, entry = _entry(mapping, after), _entry(mapping, key)
        if mapping.flow_style or before is None:
            raise NotEditable(f"{_path(where)} is written on one line")
        indent = " " * before[0].start_mark.column
        block = [f"{indent}{key}:", *(f"{indent}{_STEP}{line}" for line in lines)]
        if entry is None:
            self._insert_line(before, "\n".join(block).lstrip())
            return
        start = self._offset(entry[0].start_mark) - len(indent)
        end = self._offset(entry[1].end_mark)
        old = self._text[start:end]
        if "#" in old:
            raise NotEditable(f"{_path((*where, key))} has comments")
        spacing = old[len(old.rstrip()) :]
        self._edits.append((start, end, "\n".join(block) + spacing))

    def result(self) -> str:
        """Return the text with all edits applied."""
        text = self._text
        for start, end, new in sorted(self._edits, reverse=True):
            text = text[:start] + new + text[end:]
        return text

    def _replace(self, node: yaml.Node, value: str) -> None:
        if not isinstance(node, yaml.ScalarNode):
            raise NotEditable("a value cannot replace a list or a mapping")
        start, end = self._offset(node.start_mark), self._offset(node.end_mark)
        old = self._text[start:end].rstrip()
        if old != value:
            self._edits.append((start, start + len(old), value))

    def _insert_line(self, before: tuple[yaml.Node, yaml.Node], line: str) -> None:
        indent = " " * before[0].start_mark.column
        end = self._offset(before[1].end_mark)
        # A YAML node's end mark is at the next token, so move back to the last non-empty line.
        end = len(self._text[:end].rstrip()) if self._text[:end].endswith(("\n", " ")) else end
        found = self._text.find("\n", end)
        position = len(self._text) if found < 0 else found
        self._edits.append((position, position, f"\n{indent}{line}"))

    def _mapping(self, where: Where) -> yaml.MappingNode:
        node = self._root
        for step in where:
            match node, step:
                case yaml.MappingNode(), str():
                    found = _entry(node, step)
                    node = found[1] if found else None
                case yaml.SequenceNode(), int() if step < len(node.value):
                    node = node.value[step]
                case _:
                    node = None
        if not isinstance(node, yaml.MappingNode):
            raise NotEditable(f"{_path(where)} is not a mapping")
        return node

    def _offset(self, mark: yaml.Mark) -> int:
        return self._starts[mark.line] + mark.column


def _entry(mapping: yaml.MappingNode, key: str) -> tuple[yaml.Node, yaml.Node] | None:
    return next((pair for pair in mapping.value if pair[0].value == key), None)


def _path(where: Where) -> str:
    return ".".join(map(str, where))
