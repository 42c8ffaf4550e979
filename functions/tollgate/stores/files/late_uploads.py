"""Removes contents that arrived too late, and leftover parts and temporary files.

No file awaits content for longer than `AWAITED_FOR_S` after its announcement. Anything that is
still under `UPLOADS` after that time belongs to no file: an upload that ended after its file was
deleted, the seal of a used URL, a part of a cancelled upload, or a temporary file of a killed
process.
"""

import asyncio
from typing import Final

from tollgate.aws.failures import refusing_when_unavailable
from tollgate.aws.objects import ListedObject, ObjectStore
from tollgate.core.clock import Clock
from tollgate.core.files.stored import UPLOAD_S
from tollgate.core.ids import created_s
from tollgate.stores.files.arrivals import LATE_S
from tollgate.stores.files.rows import UPLOADS, upload_of_object

AWAITED_FOR_S: Final = UPLOAD_S + LATE_S
# After this time, a round lists no further objects; the next round continues.
_LISTED_FOR_S: Final = 60.0
_DELETED_AT_ONCE: Final = 16


class LateUploads:
    """Removes uploads that no file is waiting for; concurrent rounds are safe."""

    def __init__(self, objects: ObjectStore, clock: Clock) -> None:
        self._objects = objects
        self._clock = clock

    async def remove(self) -> int:
        """Remove the late uploads of all workspaces, and return their number."""
        removed, until_s = 0, self._clock.monotonic_s() + _LISTED_FOR_S
        with refusing_when_unavailable():
            async for group in self._objects.list(UPLOADS):
                late = [found.key for found in group if self._is_late(found)]
                for start in range(0, len(late), _DELETED_AT_ONCE):
                    keys = late[start : start + _DELETED_AT_ONCE]
                    await asyncio.gather(*map(self._objects.delete, keys))
                removed += len(late)
                if self._clock.monotonic_s() > until_s:
                    break
        return removed

    def _is_late(self, found: ListedObject) -> bool:
        upload = upload_of_object(found.key)
        since_s = found.written_s if upload is None else created_s(upload)
        return since_s + AWAITED_FOR_S <= self._clock.now_s()
