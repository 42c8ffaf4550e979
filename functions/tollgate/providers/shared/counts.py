"""Reads and checks the counts in a provider's usage report."""

from collections.abc import Iterator
from typing import Final

from tollgate.core.json_value import JsonValue
from tollgate.core.usage import COUNT_MAX, is_count

# A total that exceeds the sum of the other counts by more than this number is ignored as wrong.
REST_MAX: Final = 2_000_000
# The number of digits in COUNT_MAX.
_DIGITS_MAX: Final = 10


class Counts:
    """Reads the counts in an object; a missing or impossible count is None."""

    def __init__(self, report: JsonValue) -> None:
        self._report = report if isinstance(report, dict) else {}

    def count(self, name: str) -> int | None:
        """Return a count; None if the count is missing or impossible."""
        return count_of(self._report.get(name))

    def first(self, *names: str) -> int | None:
        """Return the first of these counts that is not None."""
        return next((count for count in map(self.count, names) if count is not None), None)

    def inside(self, name: str) -> "Counts":
        """Return the counts in an inner object, which are all None if the object is missing."""
        return Counts(self._report.get(name))

    def each(self, name: str) -> Iterator["Counts"]:
        """Yield the counts in each object of a list."""
        listed = self._report.get(name)
        yield from map(Counts, listed if isinstance(listed, list) else ())

    def word(self, name: str) -> str | None:
        """Return the text under a name; None if the value is not text."""
        value = self._report.get(name)
        return value if isinstance(value, str) else None


def count_of(reported: object) -> int | None:
    """Return a reported number as a count; None if it cannot be a count.

    Some servers write a count with a decimal point (`12.0`) or as text (`"12"`). A boolean or a
    fraction is not a count.
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
    """Return `whole` minus the parts, and the parts, which are capped so that they fit into
    `whole`.
    """
    rest = whole
    cut: list[int | None] = []
    for part in parts:
        cut.append(None if part is None else min(part, rest))
        rest -= min(part or 0, rest)
    return rest, tuple(cut)


def sum_counts(*counts: int | None) -> int:
    """Return the sum of counts, capped at COUNT_MAX, the largest possible count."""
    return min(COUNT_MAX, sum(count or 0 for count in counts))


def rest_of_total(total: int | None, *parts: int | None) -> int | None:
    """Return the part of a total that no other count includes; None for an impossible number."""
    if total is None:
        return None
    rest = total - sum(part or 0 for part in parts)
    return rest if 0 <= rest <= REST_MAX else None
