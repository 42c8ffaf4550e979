"""Reads the counts in a provider's usage, checked before any count is added or subtracted."""

from collections.abc import Iterator
from typing import Final

from tollgate.core.json_value import JsonValue
from tollgate.core.usage import COUNT_MAX, is_count

# No answer has more tokens that appear in its total alone; a larger rest means a wrong total.
REST_MAX: Final = 2_000_000
# COUNT_MAX has ten digits.
_DIGITS_MAX: Final = 10


class Counts:
    """Reads the counts of an object; a missing or impossible count is read as None."""

    def __init__(self, report: JsonValue) -> None:
        self._report = report if isinstance(report, dict) else {}

    def count(self, name: str) -> int | None:
        """Return a count; None if it is missing or not a possible number of tokens."""
        return count_of(self._report.get(name))

    def first(self, *names: str) -> int | None:
        """Return the first of these counts that is reported and possible."""
        return next((count for count in map(self.count, names) if count is not None), None)

    def inside(self, name: str) -> "Counts":
        """Return the counts of an inner object; an absent object has no counts."""
        return Counts(self._report.get(name))

    def each(self, name: str) -> Iterator["Counts"]:
        """Yield the counts of each object in a list."""
        listed = self._report.get(name)
        yield from map(Counts, listed if isinstance(listed, list) else ())

    def word(self, name: str) -> str | None:
        """Return the text under a name; None if the value is not text."""
        value = self._report.get(name)
        return value if isinstance(value, str) else None


def count_of(reported: object) -> int | None:
    """Return a reported number as a count; None if it cannot be a count.

    Imitators of OpenAI write a count with a decimal point (`12.0`) or as text (`"12"`); both are
    read. A boolean or a fraction is not a count.
    """
    match reported:
        case str() if reported.isascii() and reported.isdigit() and len(reported) <= _DIGITS_MAX:
            count: object = int(reported)
        case float() if reported.is_integer():
            count = int(reported)
        case _:
            count = reported
    return count if type(count) is int and is_count(count) else None


def split(whole: int, *parts: int | None) -> tuple[int, tuple[int | None, ...]]:
    """Return the rest of a whole that is in none of the parts, and the parts, lowered to fit."""
    rest = whole
    cut: list[int | None] = []
    for part in parts:
        cut.append(None if part is None else min(part, rest))
        rest -= min(part or 0, rest)
    return rest, tuple(cut)


def sum_counts(*counts: int | None) -> int:
    """Return the sum of counts, capped at COUNT_MAX: a larger sum would count as impossible."""
    return min(COUNT_MAX, sum(count or 0 for count in counts))


def rest_of_total(total: int | None, *parts: int | None) -> int | None:
    """Return the part of a total that no other count has; None if it is not possible."""
    if total is None:
        return None
    rest = total - sum(part or 0 for part in parts)
    return rest if 0 <= rest <= REST_MAX else None
