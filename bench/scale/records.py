"""Any number of records of one day, generated when read."""

import zlib
from collections.abc import Iterator, Sequence

from msgspec import json
from msgspec.structs import replace

from tollgate.aws.attributes import Item, binary, string
from tollgate.core.clock import DAY_S
from tollgate.core.ids import encode_id
from tollgate.core.records.activity import day_of
from tollgate.core.records.generation import GenerationRecord
from tollgate.stores.aws.items import AnyItem
from tollgate.stores.aws.record_items import GenerationItem
from tollgate.stores.aws.tables import generation_day, generation_sort
from tollgate.stores.records.generations import record_item

_RETENTION_S = 30 * DAY_S
# This level is fast, and its output is within a tenth of the length of stored records.
_COMPRESSION_LEVEL = 1


class RecordRows:
    """Records spread over one UTC day, each like one of `kinds` in turn; implements `Rows`."""

    def __init__(
        self, kinds: Sequence[GenerationRecord], *, workspace_id: str, day_s: int, count: int
    ) -> None:
        self.partition = generation_day(workspace_id, day_of(day_s))
        self._kinds = [replace(kind, workspace_id=workspace_id) for kind in kinds]
        self._items = [record_item(kind, retention_s=_RETENTION_S) for kind in self._kinds]
        self._day_s = day_s
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[GenerationRecord]:
        return map(self.record, range(self._count))

    def record(self, place: int) -> GenerationRecord:
        """Return one record."""
        id_ = self._id(place)
        created_s = self._second(place)
        return replace(self._kinds[place % len(self._kinds)], id=id_, created_s=created_s)

    def sort_key(self, place: int) -> str:
        """Return the sort key of an item."""
        return generation_sort(self._id(place))

    def item(self, place: int) -> Item:
        """Return an item."""
        blob = zlib.compress(json.encode(self.record(place)), _COMPRESSION_LEVEL)
        return {
            **self._items[place % len(self._items)],
            AnyItem.PARTITION: string(self.partition),
            AnyItem.SORT: string(self.sort_key(place)),
            GenerationItem.BLOB: binary(blob),
        }

    def _second(self, place: int) -> int:
        return self._day_s + place * DAY_S // self._count

    def _id(self, place: int) -> str:
        return encode_id(self._second(place).to_bytes(4, "big") + place.to_bytes(7, "big"))
