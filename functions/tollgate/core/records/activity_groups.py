"""Sums activity by the requested dimensions: days, models, providers, keys and labels."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from tollgate.core.records.activity import ActivityRow
from tollgate.core.usage import Usage

# The built-in dimensions; any other name is taken as the name of a label.
_FIELDS: Final[Mapping[str, Callable[[ActivityRow], str | None]]] = {
    "day": lambda row: row.day,
    "model": lambda row: row.model,
    "provider": lambda row: row.provider,
    "key": lambda row: row.key_id,
}
GROUP_FIELDS: Final = frozenset(_FIELDS)
# The values of a group in the order of its dimensions; "" if there is no model, provider or label.
GroupPlace = tuple[str, ...]


class ActivityGroups:
    """Sums rows that agree in all requested dimensions, without storing the rows.

    Rows must be added with the oldest day first, so that every group of a key has the key's latest
    name.
    """

    def __init__(self, by: Sequence[str]) -> None:
        self._by = tuple(by)
        self._fields = [_FIELDS.get(name) for name in by]
        self._sums: dict[GroupPlace, _Sum] = {}
        self._key_labels: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._sums)

    def add(self, row: ActivityRow) -> None:
        """Add a row to the sums of its group."""
        labels = row.all_labels if None in self._fields else {}
        place = tuple(
            (labels.get(name) if field is None else field(row)) or ""
            for name, field in zip(self._by, self._fields, strict=True)
        )
        found = self._sums.get(place)
        if found is None:
            found = self._sums[place] = _Sum()
        found.add(row)
        if row.key_label and "key" in self._by:
            self._key_labels[row.key_id] = row.key_label

    def rows(self, after: GroupPlace = ()) -> Iterator[tuple[GroupPlace, ActivityRow]]:
        """Yield the groups after a given one, sorted, each as a row with only the
        group's fields.
        """
        for place in sorted(place for place in self._sums if place > after):
            yield place, self._row(place)

    def _row(self, place: GroupPlace) -> ActivityRow:
        found = self._sums[place]
        named = dict(zip(self._by, place, strict=True))
        return ActivityRow(
            day=named.get("day", ""),
            model=named.get("model") or None,
            provider=named.get("provider") or None,
            key_id=named.get("key", ""),
            key_label=self._key_labels.get(named.get("key", ""), ""),
            labels={name: value for name, value in named.items() if value and name not in _FIELDS},
            requests=found.requests,
            failed=found.failed,
            cost_nano_usd=found.cost_nano_usd,
            usage=Usage(**found.usage),
        )


class _Sum:
    """The sums of one group."""

    __slots__ = ("cost_nano_usd", "failed", "requests", "usage")

    def __init__(self) -> None:
        self.requests = self.failed = self.cost_nano_usd = 0
        self.usage: dict[str, int] = {}

    def add(self, row: ActivityRow) -> None:
        """Add a row."""
        self.requests += row.requests
        self.failed += row.failed
        self.cost_nano_usd += row.cost_nano_usd
        for name, count in row.usage.reported():
            self.usage[name] = self.usage.get(name, 0) + count
