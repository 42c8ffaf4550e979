"""Arguments of a call that arrive in pieces, each with a path such as `$.recipe.steps[0]`.

Vertex AI streams the arguments of Gemini 3 in pieces with paths. A piece can extend any value, even
in an object that seemed complete, so the JSON text is known only at the end of the call.
"""

import re
from itertools import pairwise
from typing import Final

import pydantic_core

from tollgate.core.json_value import JsonValue
from tollgate.providers.codecs.gemini.wire import PartialArg

_STEP: Final = re.compile(
    r"""\.(?P<name>[^.\[\]]+)
      |\[(?P<index>\d{1,9})\]
      |\[(?:'(?P<single>(?:[^'\\]|\\.)*)'|"(?P<double>(?:[^"\\]|\\.)*)")\]""",
    re.VERBOSE,
)
_ESCAPED: Final = re.compile(r"\\(.)")
_DEPTH_MAX: Final = 100


class UnknownPlace(Exception):
    """Raised if the path of a piece does not fit the arguments so far."""


class Arguments:
    """The arguments of one call."""

    def __init__(self) -> None:
        self._value: dict[str, JsonValue] = {}

    def merge(self, args: dict[str, JsonValue]) -> None:
        """Add arguments that arrived in one piece."""
        self._value.update(args)

    def add(self, piece: PartialArg) -> None:
        """Add one piece; raise UnknownPlace if its path does not fit."""
        steps = _steps(piece.path)
        last = steps[-1]
        container: JsonValue = self._value
        for step, following in pairwise(steps):
            empty: JsonValue = {} if isinstance(following, str) else []
            container = _entered(container, step, empty)
        if piece.string is not None:
            before = _entered(container, last, "")
            if not isinstance(before, str):
                raise UnknownPlace(piece.path)
            _put(container, last, before + piece.string)
        elif piece.number is not None:
            _put(container, last, piece.number)
        elif piece.boolean is not None:
            _put(container, last, piece.boolean)
        elif piece.null is not None:
            _put(container, last, None)

    def json(self) -> str:
        """Return the arguments as JSON text."""
        return pydantic_core.to_json(self._value).decode()


def _steps(path: str) -> list[str | int]:
    if not path.startswith("$"):
        raise UnknownPlace(path)
    steps: list[str | int] = []
    position = 1
    while position < len(path):
        step = _STEP.match(path, position)
        if step is None or len(steps) == _DEPTH_MAX:
            raise UnknownPlace(path)
        if step["index"] is not None:
            steps.append(int(step["index"]))
        elif step["name"] is not None:
            steps.append(step["name"])
        else:
            steps.append(_ESCAPED.sub(r"\1", step["single"] or step["double"] or ""))
        position = step.end()
    if not steps:
        raise UnknownPlace(path)
    return steps


def _entered(container: JsonValue, step: str | int, empty: JsonValue) -> JsonValue:
    """Return the value at a step, after storing `empty` there if there is no value."""
    if isinstance(container, dict) and isinstance(step, str):
        return container.setdefault(step, empty)
    if isinstance(container, list) and isinstance(step, int):
        # Only the next index may be new; otherwise an index of a billion would create a list of
        # that length.
        if step == len(container):
            container.append(empty)
        if step < len(container):
            return container[step]
    raise UnknownPlace(str(step))


def _put(container: JsonValue, step: str | int, value: JsonValue) -> None:
    _entered(container, step, value)
    match container, step:
        case dict(), str():
            container[step] = value
        case list(), int():
            container[step] = value
        case _:
            raise UnknownPlace(str(step))
