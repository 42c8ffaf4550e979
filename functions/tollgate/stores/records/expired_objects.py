"""Removal of expired objects from a folder; a bucket has rules for this in the template."""

from collections.abc import Mapping
from typing import Final

from tollgate.aws.objects import ObjectStore
from tollgate.core.clock import DAY_S, Clock
from tollgate.stores.rules.key_settings import CONTENT_DAYS

# Days after which the objects below a prefix are removed, as in the bucket's rules.
EXPIRY_DAYS: Final[Mapping[str, int]] = {
    "answers/": 2,
    "batches/": 31,
    "files/expiring/": 31,
    "reading/": 1,
    **{f"content/{days}d/": days for days in CONTENT_DAYS},
    **{f"responses/{days}d/": days for days in CONTENT_DAYS},
}


class ExpiredObjects:
    """Removes expired objects by the time of their last write."""

    def __init__(self, folder: ObjectStore, clock: Clock) -> None:
        self._folder = folder
        self._clock = clock

    async def remove(self) -> int:
        """Remove all expired objects, and return their number."""
        removed = 0
        for prefix, days in EXPIRY_DAYS.items():
            until_s = self._clock.now_s() - days * DAY_S
            async for group in self._folder.list(prefix):
                for found in group:
                    if found.written_s <= until_s:
                        await self._folder.delete(found.key)
                        removed += 1
        return removed
