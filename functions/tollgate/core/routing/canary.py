"""The terms that a candidate catalog must keep, and the looks at the catalog's traffic."""

from collections.abc import Mapping
from typing import Final, Literal

from msgspec import Struct

from tollgate.core.clock import DAY_S

# `errors` and `refusals` are shares of requests, `first_token_p95` is a time, and `cost` is dollars
# a request.
Figure = Literal["errors", "refusals", "first_token_p95", "cost"]
LookState = Literal["kept", "too_few_keys", "no_traffic", "broken"]


_FIRST_LOOK_S: Final = 600
_LOOKS_GROW: Final = 1.5
_LOOKS_UNTIL_S: Final = 14 * DAY_S
_NAMES: Final[Mapping[Figure, str]] = {
    "errors": "errors",
    "refusals": "refusals",
    "first_token_p95": "first token p95",
    "cost": "cost per request",
}


def _look_times() -> tuple[int, ...]:
    times: list[int] = []
    at_s = float(_FIRST_LOOK_S)
    while at_s <= _LOOKS_UNTIL_S:
        times.append(round(at_s))
        at_s *= _LOOKS_GROW
    return tuple(times)


# Seconds after the publication, each 1.5 times the one before: all looks together read three times
# as many records as the last look.
LOOK_TIMES_S: Final = _look_times()


class Terms(Struct, frozen=True, kw_only=True):
    """The figures that a candidate must keep, compared with the live catalog's at that time."""

    worse_percent: Mapping[Figure, float]
    """The allowed difference: percentage points of a share, percent of a time or of a cost."""
    false_alarms_percent: float
    """The highest probability that a candidate which keeps all terms is withdrawn."""

    def describe(self) -> str:
        """Return the terms as a line of text."""
        return ", ".join(
            f"{_NAMES[figure]} at most {worse:g} {_unit(figure)} more"
            for figure, worse in self.worse_percent.items()
        )


class FigureRead(Struct, frozen=True, kw_only=True):
    """One figure under both catalogs at a look."""

    live: float
    candidate: float
    """Both are percentages, milliseconds or dollars."""
    p: float | None = None
    """The probability of such a difference by chance, if the candidate keeps its terms.

    None if the candidate is not worse than its terms allow.
    """


class Look(Struct, frozen=True, kw_only=True):
    """The result of one look at a candidate's traffic."""

    revision: int
    """The publication whose candidate the look examined."""
    number: int
    """The number of the look, from 1."""
    at_s: int
    state: LookState
    requests: int
    """The number of requests that the candidate served."""
    live_requests: int
    keys: int
    """The number of keys whose requests the candidate served."""
    live_keys: int
    figures: Mapping[Figure, FigureRead]
    broken: Figure | None = None
    """The figure that breaks the terms; None if none does."""

    @property
    def log_fields(self) -> dict[str, str | int | None]:
        """The fields of a log line."""
        return {
            "look": self.number,
            "state": self.state,
            "keys": self.keys,
            "requests": self.requests,
            "figures": self.describe(),
        }

    def describe(self) -> str:
        """Return the figures of both catalogs as a line of text."""
        return ", ".join(
            f"{_NAMES[figure]} {_text(figure, read.candidate)} against {_text(figure, read.live)}"
            for figure, read in self.figures.items()
        )

    def describe_break(self, terms: Terms) -> str | None:
        """Return the broken term with both values as a line of text; None if none is broken."""
        if self.broken is None:
            return None
        read, allowed = self.figures[self.broken], terms.worse_percent[self.broken]
        return (
            f"{_NAMES[self.broken]} {_text(self.broken, read.candidate)} against"
            f" {_text(self.broken, read.live)}; allowed: {allowed:g} {_unit(self.broken)} more"
        )


def _unit(figure: Figure) -> str:
    return "points" if figure in ("errors", "refusals") else "%"


def _text(figure: Figure, value: float) -> str:
    match figure:
        case "errors" | "refusals":
            return f"{value:.2f} %"
        case "first_token_p95":
            return f"{value:.0f} ms"
        case "cost":
            return f"${value:.6f}"
