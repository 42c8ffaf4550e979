"""A Markdown list of what becomes of each thing at each codec or provider."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

# A line refers to another line if it differs in at most this number of things.
_DIFFERENCES_MAX: Final = 4


def outcome_list(things: Sequence[str], columns: Mapping[str, Sequence[str]]) -> str:
    """Return all things, and a line for each set of equal columns: the usual outcome comes last."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for name, outcomes in columns.items():
        alike.setdefault(tuple(outcomes), []).append(name)
    lines: list[str] = []
    complete: dict[str, Sequence[str]] = {}
    for cells, names in alike.items():
        shown = _like_another(things, cells, complete)
        if shown is None:
            complete[names[0]] = cells
            shown = _outcomes(things, cells)
        lines.append(f"- **{', '.join(names)}**: {shown}")
    return "\n".join([f"Features: {'; '.join(things)}.", "", *lines])


def _like_another(
    things: Sequence[str], outcomes: Sequence[str], others: Mapping[str, Sequence[str]]
) -> str | None:
    """Return the few differences from another line, or None if each line differs in many things."""
    for name, other in others.items():
        cells = zip(things, outcomes, other, strict=True)
        differing = [(thing, outcome) for thing, outcome, usual in cells if outcome != usual]
        if len(differing) <= _DIFFERENCES_MAX:
            return f"as {name}, but {_by_outcome(differing)}"
    return None


def _outcomes(things: Sequence[str], outcomes: Sequence[str]) -> str:
    [(usual, _)] = Counter(outcomes).most_common(1)
    unusual = [each for each in zip(things, outcomes, strict=True) if each[1] != usual]
    return f"{_by_outcome(unusual)} *{usual}*: everything else.".lstrip()


def _by_outcome(pairs: Sequence[tuple[str, str]]) -> str:
    by_outcome: dict[str, list[str]] = {}
    for thing, outcome in pairs:
        by_outcome.setdefault(outcome, []).append(thing)
    groups = (f"*{outcome}*: {'; '.join(named)}." for outcome, named in sorted(by_outcome.items()))
    return " ".join(groups)


def departure_list(things: Sequence[str], columns: Mapping[str, Sequence[str]]) -> str:
    """Return the usual outcome of each thing, and a line for each set of equal departures."""
    usual = [
        Counter(outcomes).most_common(1)[0][0] for outcomes in zip(*columns.values(), strict=True)
    ]
    departing: dict[str, list[str]] = {}
    for name, outcomes in columns.items():
        departures = [
            f"{thing} *{outcome}*"
            for thing, outcome, common in zip(things, outcomes, usual, strict=True)
            if outcome != common
        ]
        departing.setdefault("; ".join(departures) or "none", []).append(name)
    lines = [f"- **{', '.join(names)}**: {shown}." for shown, names in departing.items()]
    common = "; ".join(f"{thing} *{outcome}*" for thing, outcome in zip(things, usual, strict=True))
    return "\n".join([f"Usual: {common}. Exceptions:", "", *lines])
