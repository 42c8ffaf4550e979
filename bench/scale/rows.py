"""Items of a partition, in memory or generated when read, and the sizes of items."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any, Protocol

from tollgate.aws.attributes import Item
from tollgate.stores.aws.items import AnyItem


class Rows(Protocol):
    """The items of one partition, by position in the order of sort keys."""

    def __len__(self) -> int:
        """Return the number of items."""

    def sort_key(self, place: int) -> str:
        """Return the sort key of an item."""

    def item(self, place: int) -> Item:
        """Return an item."""


class RowsInMemory:
    """Items in memory; implements `Rows`."""

    def __init__(self, items: Iterable[Item]) -> None:
        self._items = sorted(items, key=lambda item: item[AnyItem.SORT]["S"])

    def __len__(self) -> int:
        return len(self._items)

    def sort_key(self, place: int) -> str:
        """Return the sort key of an item."""
        return self._items[place][AnyItem.SORT]["S"]

    def item(self, place: int) -> Item:
        """Return an item."""
        return self._items[place]


class JoinedRows:
    """Items in several parts, each of which sorts before the next; implements `Rows`."""

    def __init__(self, parts: Sequence[Rows]) -> None:
        self._parts = sorted(
            (part for part in parts if len(part)), key=lambda part: part.sort_key(0)
        )
        self._ends = list(accumulate(len(part) for part in self._parts))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def sort_key(self, place: int) -> str:
        """Return the sort key of an item."""
        part, within = self._find(place)
        return part.sort_key(within)

    def item(self, place: int) -> Item:
        """Return an item."""
        part, within = self._find(place)
        return part.item(within)

    def _find(self, place: int) -> tuple[Rows, int]:
        index = bisect_right(self._ends, place)
        return self._parts[index], place - (self._ends[index - 1] if index else 0)


def item_bytes(item: Mapping[str, Any]) -> int:
    """Return the size of an item, by "DynamoDB item sizes and formats" in the developer guide."""
    return sum(len(name.encode()) + _value_bytes(value) for name, value in item.items())


def _value_bytes(value: Mapping[str, Any]) -> int:
    ((kind, content),) = value.items()
    match kind:
        case "S":
            return len(content.encode())
        case "N":
            return len(content.lstrip("-")) // 2 + 2
        case "B":
            return len(content) * 3 // 4
        case "M":
            return 3 + sum(
                1 + len(name.encode()) + _value_bytes(each) for name, each in content.items()
            )
        case "L":
            return 3 + sum(1 + _value_bytes(each) for each in content)
        case _:
            return 1
