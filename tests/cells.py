"""Asks all cells of a table in one test, where pytest would make a test of each.

Pytest and xdist need 3 to 4 ms of CPU for a test, which is more than most cells take.
"""

import inspect
import reprlib
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any

import pytest

_Test = Callable[..., Any]
# An assertion of pytest itself, such as an error that was not raised, is no `Exception`.
_FAILURES = (Exception, pytest.fail.Exception, pytest.skip.Exception)


def cells(
    names: str | Sequence[str], values: Iterable[Any], *, ids: object = None
) -> Callable[[_Test], _Test]:
    """Call a test with each value, as `pytest.mark.parametrize` does, and report all failures.

    The cells share fixtures, so these must not change. If all cells skip, the test is skipped; if
    only some do, it fails.
    """
    named = (names,) if isinstance(names, str) else tuple(names)
    rows = [dict(zip(named, _row(named, value), strict=True)) for value in values]
    labels = _labels(ids, rows)
    if not rows:
        raise ValueError("a table without cells tests nothing")

    def decorate(test: _Test) -> _Test:
        signature = inspect.signature(test)
        if inspect.iscoroutinefunction(test):

            @wraps(test)
            async def ask_each(**fixtures: Any) -> None:
                failures: list[BaseException] = []
                for label, row in zip(labels, rows, strict=True):
                    try:
                        await test(**fixtures, **row)
                    except _FAILURES as failure:
                        failures.append(_placed(failure, label))
                _report(failures, len(rows))

        else:

            @wraps(test)
            def ask_each(**fixtures: Any) -> None:
                failures: list[BaseException] = []
                for label, row in zip(labels, rows, strict=True):
                    try:
                        test(**fixtures, **row)
                    except _FAILURES as failure:
                        failures.append(_placed(failure, label))
                _report(failures, len(rows))

        kept = [value for name, value in signature.parameters.items() if name not in named]
        ask_each.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
        return ask_each

    return decorate


def _row(names: tuple[str, ...], value: Any) -> tuple[Any, ...]:
    return tuple(value) if len(names) > 1 else (value,)


def _labels(ids: object, rows: list[dict[str, Any]]) -> list[str]:
    if callable(ids):
        return ["-".join(str(ids(value)) for value in row.values()) for row in rows]
    if isinstance(ids, Iterable):
        return [str(label) for label in ids]
    return [", ".join(f"{name}={reprlib.repr(it)}" for name, it in row.items()) for row in rows]


def _placed(failure: BaseException, label: str) -> BaseException:
    failure.add_note(f"in the cell {label}")
    return failure


def _report(failures: list[BaseException], asked: int) -> None:
    skips = [failure for failure in failures if isinstance(failure, pytest.skip.Exception)]
    if failures and len(skips) == asked:
        raise failures[0]
    if len(failures) == 1 and not skips:
        raise failures[0]
    if failures:
        raise BaseExceptionGroup(f"{len(failures)} cells failed", failures)
