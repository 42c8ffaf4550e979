"""The one check of the counts in a provider's usage, before any of them is added or subtracted."""

from collections.abc import Iterator
from typing import Final

from tollgate.core.json_value import JsonValue
from tollgate.core.usage import COUNT_MAX, is_count

# No answer has more tokens that only its total knows of; a larger rest is a lie of the total.
REST_MAX: Final = 2_000_000
# COUNT_MAX has ten digits.
_DIGITS_MAX: Final = 10


class Counts:
    """Reads an object of counts; a count that is missing or impossible is None."""

    def __init__(self, report: JsonValue) -> None:
        self._report = report if isinstance(report, dict) else {}

    def count(self, name: str) -> int | None:
        """Return a count; None if there is none, or if it is no possible number of tokens."""
        return count_of(self._report.get(name))

    def first(self, *names: str) -> int | None:
        """Return the first of these counts that is reported and possible."""
        return next((each for each in map(self.count, names) if each is not None), None)

    def inside(self, name: str) -> "Counts":
        """Return the counts of an inner object, which is empty if there is none."""
        return Counts(self._report.get(name))

    def each(self, name: str) -> Iterator["Counts"]:
        """Yield the counts of each object of a list."""
        listed = self._report.get(name)
        yield from map(Counts, listed if isinstance(listed, list) else ())

    def word(self, name: str) -> str | None:
        """Return a text beside the counts."""
        value = self._report.get(name)
        return value if isinstance(value, str) else None


def count_of(reported: JsonValue) -> int | None:
    """Return a reported number as a count; None if it cannot be one.

    Imitators of OpenAI write a count with a point (`12.0`) or as text (`"12"`), which is read; a
    boolean or a fraction is no count.
    """
    match reported:
        case str() if reported.isascii() and reported.isdigit() and len(reported) <= _DIGITS_MAX:
            count: JsonValue = int(reported)
        case float() if reported.is_integer():
            count = int(reported)
        case _:
            count = reported
    return count if type(count) is int and is_count(count) else None


def split(whole: int, *parts: int | None) -> tuple[int, tuple[int | None, ...]]:
    """Return what of a whole is in no part, and the parts, each cut to what the others leave."""
    rest = whole
    cut: list[int | None] = []
    for part in parts:
        cut.append(None if part is None else min(part, rest))
        rest -= min(part or 0, rest)
    return rest, tuple(cut)


def sum_counts(*counts: int | None) -> int:
    """Return the sum of counts, at most COUNT_MAX: a larger one would be ignored, not bounded."""
    return min(COUNT_MAX, sum(count or 0 for count in counts))


def rest_of_total(total: int | None, *parts: int | None) -> int | None:
    """Return what only a total counts; None if that is no possible number of tokens."""
    if total is None:
        return None
    rest = total - sum(part or 0 for part in parts)
    return rest if 0 <= rest <= REST_MAX else None
