"""Reads a YAML file as plain values with their positions; only the command line does this.

Scalars follow the YAML 1.2 core schema (https://yaml.org/spec/1.2.2/#103-core-schema), as in
editors: `yes`, `on` and `1_000` are strings. Decimals are exact. Duplicate keys are errors, whereas
PyYAML would use the last one.
"""

import re
from decimal import Decimal
from pathlib import Path
from typing import Final, TypeAlias

import yaml
from msgspec import Struct, field
from msgspec.structs import replace

from tollgate.routing.file.problems import Problem, Severity, hide_secret, mask_secrets
from tollgate.routing.file.yaml_nodes import NotYaml, compose_yaml

Plain: TypeAlias = "bool | int | Decimal | str | tuple[Plain, ...] | dict[str, Plain] | None"
Where: TypeAlias = tuple[str | int, ...]

_FILE_BYTES_MAX: Final = 4_000_000
# Longer lines are not shown in excerpts, because a whole file may be a single line.
_EXCERPT_CHARACTERS_MAX: Final = 1_000
_DIGITS_MAX: Final = 40
_NULL: Final = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE: Final = frozenset({"true", "True", "TRUE"})
_FALSE: Final = frozenset({"false", "False", "FALSE"})
_INTEGER: Final = re.compile(r"[-+]?[0-9]+")
_DECIMAL: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]{1,3})?")
_VARIABLE: Final = re.compile(r"[A-Z][A-Z0-9_]*")
_PLAIN_TAGS: Final = frozenset(f"tag:yaml.org,2002:{kind}" for kind in ("str", "seq", "map"))
# Keys whose values may be credentials, in any section, even in sections that the schema does not
# know.
_SECRET_KEYS: Final = frozenset(
    {"key", "api_key", "apikey", "token", "secret", "password", "access_key", "authorization"}
)
# Matches such a key and the text after it, which is masked in files that are not valid YAML.
_AFTER_SECRET_KEY: Final = re.compile(
    rf"""(?i)(\b(?:{"|".join(sorted(_SECRET_KEYS))})["']?\s*[:=\[{{]\s*)(.+)"""
)


class SourcePosition(Struct, frozen=True):
    """Line and column in a file, both counted from 1."""

    line: int
    column: int


class YamlDocument(Struct):
    """A YAML file: its content, the positions of all keys and values, and the problems found so
    far.
    """

    file: str
    content: Plain = None
    problems: list[Problem] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    keys: dict[Where, SourcePosition] = field(default_factory=dict)
    values: dict[Where, SourcePosition] = field(default_factory=dict)
    _composed: set[int] = field(default_factory=set)

    def at_key(self, where: Where, code: str, message: str, *, hint: str = "") -> Problem:
        """Return a problem at the position of a key or a list item."""
        place = self.keys.get(where) or self._place(where)
        return self._problem(place, code, message, hint=hint)

    def at_value(
        self,
        where: Where,
        code: str,
        message: str,
        *,
        hint: str = "",
        severity: Severity = "error",
        allowed_in_dev: bool = False,
    ) -> Problem:
        """Return a problem at the position of a value or, if the value is missing, of
        its section.
        """
        found = self._problem(self._place(where), code, message, hint=hint, severity=severity)
        return replace(found, allowed_in_dev=True) if allowed_in_dev else found

    def place_text(self, where: Where) -> str:
        """Return the position of a key as `file:line:column`."""
        place = self.keys.get(where) or self._place(where)
        return f"{self.file}:{place.line}:{place.column}"

    @property
    def unreadable(self) -> bool:
        """True if the file is not valid YAML, so that its content is incomplete."""
        return any(problem.code == "R001" for problem in self.problems)

    def value(self, where: Where) -> Plain:
        """Return the value at a path; None if the path does not exist."""
        found = self.content
        for step in where:
            match found, step:
                case dict(), str():
                    found = found.get(step)
                case tuple(), int() if step < len(found):
                    found = found[step]
                case _:
                    return None
        return found

    def _place(self, where: Where) -> SourcePosition:
        while where and where not in self.values:
            where = where[:-1]
        return self.values.get(where, SourcePosition(1, 1))

    def _problem(
        self,
        place: SourcePosition,
        code: str,
        message: str,
        *,
        hint: str,
        severity: Severity = "error",
    ) -> Problem:
        return Problem(
            file=self.file,
            line=place.line,
            column=place.column,
            code=code,
            message=mask_secrets(message),
            severity=severity,
            hint=hint,
            excerpt=self._excerpt(place.line),
        )

    def _excerpt(self, line: int) -> str:
        if not 0 < line <= len(self.lines):
            return ""
        text = self.lines[line - 1]
        return mask_secrets(text) if len(text) <= _EXCERPT_CHARACTERS_MAX else ""

    def refuse(self, mark: yaml.Mark | None, code: str, message: str, *, hint: str = "") -> None:
        """Add a problem that was found while parsing."""
        place = SourcePosition(mark.line + 1, mark.column + 1) if mark else SourcePosition(1, 1)
        self.problems.append(self._problem(place, code, message, hint=hint))

    def is_alias(self, node: yaml.Node) -> bool:
        """Return True if a node was visited before, which happens only if an alias (`*name`) refers
        to it.
        """
        is_repeated = id(node) in self._composed
        self._composed.add(id(node))
        return is_repeated

    def remember(self, where: Where, key: yaml.Node | None, value: yaml.Node) -> None:
        """Record the position of a value, and of its key if it has one."""
        self.values.setdefault(where, _place_of(value))
        if key is not None:
            self.keys.setdefault(where, _place_of(key))

    def hide(self, node: yaml.Node) -> None:
        """Mask the text of a node in all excerpts."""
        start, end = node.start_mark, node.end_mark
        for number in range(start.line, min(end.line + 1, len(self.lines))):
            line = self.lines[number]
            first = start.column if number == start.line else 0
            last = end.column if number == end.line else len(line)
            self.lines[number] = line[:first] + hide_secret(line[first:last]) + line[last:]

    def conceal(self) -> None:
        """Rebuild all excerpts, because some were built before all secrets were found."""
        if self.unreadable:
            self.lines = [
                _AFTER_SECRET_KEY.sub(lambda found: found[1] + hide_secret(found[2]), line)
                for line in self.lines
            ]
        self.problems = [
            replace(problem, excerpt=self._excerpt(problem.line)) for problem in self.problems
        ]


def read_document(path: Path, file: str) -> YamlDocument:
    """Read a YAML file and add its problems to the document; `file` is the name to show in the
    problems.
    """
    document = YamlDocument(file)
    source = _source(document, path)
    if source is not None:
        document.lines = source.splitlines()
        _compose(document, source)
    document.conceal()
    return document


def _source(document: YamlDocument, path: Path) -> str | None:
    try:
        raw = path.read_bytes()
        source = raw.decode("utf-8-sig")
    except OSError as unreadable:
        document.refuse(None, "R001", f"cannot be read: {unreadable.strerror}")
        return None
    except UnicodeDecodeError:
        document.refuse(None, "R001", "is not UTF-8")
        return None
    if len(raw) > _FILE_BYTES_MAX:
        document.refuse(None, "R001", f"is larger than {_FILE_BYTES_MAX} bytes")
        return None
    return source


def _compose(document: YamlDocument, source: str) -> None:
    try:
        root = compose_yaml(source)
        if root is not None:
            document.content = _plain(document, root, ())
    except NotYaml as broken:
        document.refuse(broken.mark, "R001", broken.message, hint=broken.hint)
    except RecursionError:
        document.refuse(None, "R001", "is nested too deeply")


def _plain(document: YamlDocument, node: yaml.Node, where: Where) -> Plain:
    document.remember(where, None, node)
    if document.is_alias(node):
        message = "this anchor is used again by an alias (*name): write it out in full"
        document.refuse(node.start_mark, "R001", message)
        return None
    if node.tag not in _PLAIN_TAGS:
        document.refuse(node.start_mark, "R001", f"the tag {node.tag} is not allowed here")
        return None
    match node:
        case yaml.MappingNode():
            return _mapping(document, node, where)
        case yaml.SequenceNode():
            return tuple(
                _plain(document, item, (*where, index)) for index, item in enumerate(node.value)
            )
        case yaml.ScalarNode():
            if _may_be_secret(where, str(node.value)):
                document.hide(node)
            return str(node.value) if node.style else scalar(node.value)
        case _:
            raise TypeError(f"unknown node {type(node).__name__}")


def _mapping(document: YamlDocument, node: yaml.MappingNode, where: Where) -> dict[str, Plain]:
    mapping: dict[str, Plain] = {}
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode):
            document.refuse(key.start_mark, "R004", "a key must be text")
            continue
        name = str(key.value)
        inside = (*where, name)
        if name in mapping:
            first = document.place_text(inside).removeprefix(f"{document.file}:")
            _plain(document, value, inside)  # This call masks secrets in the value.
            document.refuse(
                key.start_mark,
                "R002",
                f'duplicate key "{name}", first defined at {first} '
                "(plain YAML loaders keep the last, silently)",
            )
            continue
        document.remember(inside, key, value)
        mapping[name] = _plain(document, value, inside)
    return mapping


def _may_be_secret(where: Where, value: str) -> bool:
    """Return True for a value under a secret key, unless the value is a reference."""
    match where:
        case (*_, "key", "env"):
            return not _VARIABLE.fullmatch(value)
        case (*_, "key", "secret"):
            return False
        case _:
            # The name of an entry does not count, because a provider may be named "token".
            entry = where if len(where) <= 2 else (where[0], *where[2:])
            return any(isinstance(step, str) and step.lower() in _SECRET_KEYS for step in entry)


def scalar(text: str) -> Plain:
    """Convert an unquoted scalar by the YAML 1.2 core schema, but keep very long numbers as
    strings.
    """
    if text in _NULL:
        return None
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    if len(text) > _DIGITS_MAX:
        return text
    if _INTEGER.fullmatch(text):
        return int(text)
    if _DECIMAL.fullmatch(text):
        return Decimal(text)
    return text


def _place_of(node: yaml.Node) -> SourcePosition:
    return SourcePosition(node.start_mark.line + 1, node.start_mark.column + 1)
