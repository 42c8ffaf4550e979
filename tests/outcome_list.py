"""A Markdown list of what becomes of each thing at each codec or provider."""

from collections import Counter
from collections.abc import Mapping, Sequence


def outcome_list(things: Sequence[str], columns: Mapping[str, Sequence[str]]) -> str:
    """Return all things, and a line for each set of equal columns: the usual outcome comes last."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for name, outcomes in columns.items():
        alike.setdefault(tuple(outcomes), []).append(name)
    lines = [
        f"- **{', '.join(names)}**: {_outcomes(things, cells)}" for cells, names in alike.items()
    ]
    return "\n".join([f"Features: {'; '.join(things)}.", "", *lines])


def _outcomes(things: Sequence[str], outcomes: Sequence[str]) -> str:
    [(usual, _)] = Counter(outcomes).most_common(1)
    by_outcome: dict[str, list[str]] = {}
    for thing, outcome in zip(things, outcomes, strict=True):
        if outcome != usual:
            by_outcome.setdefault(outcome, []).append(thing)
    said = [f"*{outcome}*: {'; '.join(named)}." for outcome, named in sorted(by_outcome.items())]
    return " ".join([*said, f"*{usual}*: everything else."])


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
