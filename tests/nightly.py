"""Chooses the cases of a parametrized test that `make test` runs; nightly runs have them all."""

from collections.abc import Iterable

import pytest


def first(count: int, cases: Iterable[object]) -> list[object]:
    """Return the cases of a test, with those after the first `count` marked as nightly.

    A tuple has a value for each parameter.
    """
    return [
        case
        if place < count
        else pytest.param(*case if isinstance(case, tuple) else (case,), marks=pytest.mark.nightly)
        for place, case in enumerate(cases)
    ]
