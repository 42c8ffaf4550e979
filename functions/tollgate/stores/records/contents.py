"""Content of generations as objects, under a prefix for each number of days it is kept.

The bucket's expiry rules delete by that prefix; an object that is deleted late is not returned.
"""

from hashlib import sha256

from tollgate.core.clock import DAY_S, Clock
from tollgate.core.ids import created_s
from tollgate.stores.aws.failures import refusing_when_unavailable
from tollgate.stores.aws.objects import ObjectStore
from tollgate.stores.rules.key_settings import CONTENT_DAYS


class ObjectContentLog:
    """Implements `engine.content_log.ContentLog`."""

    def __init__(self, objects: ObjectStore, *, clock: Clock) -> None:
        self._objects = objects
        self._clock = clock

    async def keep(
        self, workspace_id: str, generation_id: str, content: bytes, *, days: int
    ) -> None:
        """Keep the content of a generation for so many days."""
        with refusing_when_unavailable():
            await self._objects.put(_object(workspace_id, generation_id, days), content)

    async def get(self, workspace_id: str, generation_id: str) -> bytes | None:
        """Return the content of a generation, None if none is kept, or no longer."""
        age_s = self._clock.now_s() - created_s(generation_id)
        with refusing_when_unavailable():
            for days in CONTENT_DAYS:
                if age_s >= days * DAY_S:
                    continue
                content = await self._objects.get(_object(workspace_id, generation_id, days))
                if content is not None:
                    return content
        return None


def _object(workspace_id: str, generation_id: str, days: int) -> str:
    # A workspace's id comes from outside; its hash is safe as part of an object's key.
    workspace = sha256(workspace_id.encode()).hexdigest()[:32]
    return f"content/{days}d/{workspace}/{generation_id}"
