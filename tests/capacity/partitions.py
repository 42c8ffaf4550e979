"""The units a second that the partitions of a table take.

"Each partition on a DynamoDB table is designed to deliver a maximum capacity of 3,000 read units
per second and 1,000 write units per second" ("Best practices for designing and using partition
keys effectively", Amazon DynamoDB developer guide, seen 2026-11-23). The same guide says that a
partition may burst with up to 300 seconds of units that it did not use, and that this may change:
nothing is saved here for longer than a second. It says as well that adaptive capacity isolates an
item that is asked for often, as far as a partition of its own: that is `partitions=None`.
"""

import zlib
from collections import Counter
from collections.abc import Callable
from typing import Final

WRITE_UNITS: Final = 1_000.0
READ_UNITS: Final = 3_000.0


class _Bucket:
    def __init__(self, units_per_s: float, now_s: float) -> None:
        self._units_per_s = units_per_s
        # Not full: a run of seconds would live on what it did not earn.
        self._units = units_per_s / 10
        self._filled_s = now_s

    def take(self, units: float, now_s: float) -> bool:
        """Take the units while any are left: what a write consumes is known once it is done."""
        filled = self._units + (now_s - self._filled_s) * self._units_per_s
        self._units = min(self._units_per_s, filled)
        self._filled_s = now_s
        if self._units <= 0:
            return False
        self._units -= units
        return True


class Partitions:
    """The token buckets of a store's partitions.

    With `partitions` the items of a table are spread over so many by the hash of their partition
    key, and stay there. Without, each partition key has a partition to itself.
    """

    def __init__(
        self,
        now_s: Callable[[], float],
        *,
        partitions: int | None = None,
        write_units: float = WRITE_UNITS,
        read_units: float = READ_UNITS,
    ) -> None:
        self._now_s = now_s
        self._partitions = partitions
        self._units = {"write": write_units, "read": read_units}
        self._buckets: dict[tuple[str, str, str | int], _Bucket] = {}
        # By the kind of the partition key that was refused: `W` for wallets, `K`, `T` …
        self.throttled: Counter[str] = Counter()
        # Whether anything is limited yet: what prepares a run is not.
        self.limited = False

    def admits(self, kind: str, table: str, partition: str, units: float) -> bool:
        """Take the units of a call from its partition; count it if they are not there."""
        if not self.limited:
            return True
        place: str | int = partition
        if self._partitions is not None:
            place = zlib.crc32(partition.encode()) % self._partitions
        bucket = self._buckets.get((kind, table, place))
        if bucket is None:
            bucket = _Bucket(self._units[kind], self._now_s())
            self._buckets[kind, table, place] = bucket
        if bucket.take(units, self._now_s()):
            return True
        self.throttled[partition.partition("#")[0]] += 1
        return False
