"""The nodes of a YAML text, and why a text has none. What they mean is told by `document`."""

import re
from typing import Final

import yaml

# libyaml's composer calls itself for every level and ends the process at some 30,000 of them;
# PyYAML's own raises RecursionError. Text that looks deep but is not only takes longer by it.
_LEVELS_MAX: Final = 1_000
_OPENED_OR_CLOSED: Final = re.compile(r"[\[{\]}]")
# What opens a level without a bracket: columns, and the indicators of compact blocks.
_INDENT: Final = re.compile(r"^[ \t?:-]*", re.MULTILINE)

_HINTS: Final = {
    "found character '\\t' that cannot start any token": "indent with spaces, never with tabs",
    "expected <block end>": "indent it like the keys that it stands with",
    "mapping values are not allowed here": "write a text with a colon in quotes",
}


class NotYaml(Exception):
    """A text that is not YAML; `mark` is where, if that is known, and `hint` what to do."""

    def __init__(self, message: str, mark: yaml.Mark | None = None, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.mark = mark
        self.hint = hint


def composed(source: str) -> yaml.Node | None:
    """The root of a text, None of an empty one; NotYaml if there is none to be had.

    By libyaml where it is there: it takes a tenth of the time. What it refuses is read again by
    PyYAML itself, so that every machine says the same of it.
    """
    try:
        if yaml.__with_libyaml__ and not _may_be_deep(source):
            try:
                return yaml.compose(source, Loader=yaml.CBaseLoader)
            except yaml.YAMLError:
                return yaml.compose(source, Loader=yaml.BaseLoader)
        return yaml.compose(source, Loader=yaml.BaseLoader)
    except yaml.MarkedYAMLError as broken:
        raise _explained(broken, source) from broken
    except yaml.YAMLError as broken:
        raise NotYaml(f"not YAML: {str(broken).splitlines()[0]}") from broken
    except RecursionError as deep:
        raise NotYaml("is nested too deeply") from deep


def _may_be_deep(source: str) -> bool:
    """Whether a text could have more levels than libyaml should be trusted with."""
    if max(len(match[0]) for match in _INDENT.finditer(source)) > _LEVELS_MAX:
        return True
    level = 0
    for match in _OPENED_OR_CLOSED.finditer(source):
        level = level + 1 if match[0] in "[{" else max(level - 1, 0)
        if level > _LEVELS_MAX:
            return True
    return False


def _explained(broken: yaml.MarkedYAMLError, source: str) -> NotYaml:
    """Where something is missing up to the end of the text, the place is where it began."""
    words = ", ".join(filter(None, (broken.context, broken.problem)))
    mark = broken.problem_mark or broken.context_mark
    at_the_end = mark is not None and mark.index >= len(source.rstrip())
    if at_the_end and broken.context_mark is not None:
        mark = broken.context_mark
    problem = broken.problem or ""
    hint = next((told for words, told in _HINTS.items() if problem.startswith(words)), "")
    return NotYaml(f"not YAML: {words}", mark, hint)
