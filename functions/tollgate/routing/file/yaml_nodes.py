"""Parses YAML into nodes, or reports the position of an error."""

import re
from typing import Final

import yaml

# libyaml recurses in C and crashes the process at about 30,000 levels, whereas PyYAML raises
# RecursionError. Text that may be nested deeply is therefore parsed by PyYAML, which is slower.
_LEVELS_MAX: Final = 1_000
_OPENED_OR_CLOSED: Final = re.compile(r"[\[{\]}]")
# Levels also open without brackets: by indentation, and by several `- `, `? ` and `: ` on one line.
_INDENT: Final = re.compile(r"^[ \t?:-]*", re.MULTILINE)

_HINTS: Final = {
    "found character '\\t' that cannot start any token": "indent with spaces, never with tabs",
    "expected <block end>": "indent it like the other keys of its section",
    "mapping values are not allowed here": "put text that contains a colon in quotes",
}


class NotYaml(Exception):
    """Raised for text that is not YAML, with a hint and the position if known."""

    def __init__(self, message: str, mark: yaml.Mark | None = None, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.mark = mark
        self.hint = hint


def compose_yaml(source: str) -> yaml.Node | None:
    """Return the root node of a text, None for an empty text; raise NotYaml for invalid YAML.

    libyaml, if installed, takes a tenth of the time. Text that libyaml refuses is parsed again by
    PyYAML, so that error messages are the same on every machine.
    """
    try:
        if yaml.__with_libyaml__ and not _may_be_deep(source):
            try:
                return yaml.compose(source, Loader=yaml.CBaseLoader)
            except yaml.YAMLError:
                return yaml.compose(source, Loader=yaml.BaseLoader)
        return yaml.compose(source, Loader=yaml.BaseLoader)
    except yaml.MarkedYAMLError as broken:
        raise _not_yaml(broken, source) from broken
    except yaml.YAMLError as broken:
        raise NotYaml(f"not YAML: {str(broken).splitlines()[0]}") from broken
    except RecursionError as deep:
        raise NotYaml("is nested too deeply") from deep


def _may_be_deep(source: str) -> bool:
    """Return True if a text may be nested too deeply for libyaml."""
    if max(len(match[0]) for match in _INDENT.finditer(source)) > _LEVELS_MAX:
        return True
    level = 0
    for match in _OPENED_OR_CLOSED.finditer(source):
        level = level + 1 if match[0] in "[{" else max(level - 1, 0)
        if level > _LEVELS_MAX:
            return True
    return False


def _not_yaml(broken: yaml.MarkedYAMLError, source: str) -> NotYaml:
    """Convert PyYAML's error; if something is not closed, point to where it begins."""
    words = ", ".join(filter(None, (broken.context, broken.problem)))
    mark = broken.problem_mark or broken.context_mark
    at_the_end = mark is not None and mark.index >= len(source.rstrip())
    if at_the_end and broken.context_mark is not None:
        mark = broken.context_mark
    problem = broken.problem or ""
    hint = next((hint for start, hint in _HINTS.items() if problem.startswith(start)), "")
    return NotYaml(f"not YAML: {words}", mark, hint)
