"""Content as objects, under a prefix for its kind and for each number of days it is kept.

The bucket's expiry rules delete by that prefix; an object that is deleted late is not returned.
"""

from hashlib import sha256
from typing import Literal

from tollgate.core.clock import DAY_S, Clock
from tollgate.core.ids import created_s
from tollgate.stores.aws.failures import refusing_when_unavailable
from tollgate.stores.aws.objects import ObjectStore
from tollgate.stores.rules.key_settings import CONTENT_DAYS

# What keys with `content_days` keep, and the responses that callers refer to later.
ContentKind = Literal["content", "responses"]


class ObjectContentLog:
    """Implements `engine.content_log.ContentLog`."""

    def __init__(
        self, objects: ObjectStore, *, clock: Clock, kind: ContentKind = "content"
    ) -> None:
        self._objects = objects
        self._clock = clock
        self._kind = kind

    async def keep(
        self, workspace_id: str, generation_id: str, content: bytes, *, days: int
    ) -> None:
        """Keep the content of a generation for so many days."""
        with refusing_when_unavailable():
            await self._objects.put(self._object(workspace_id, generation_id, days), content)

    async def get(
        self, workspace_id: str, generation_id: str, *, days: int | None = None
    ) -> bytes | None:
        """Return the content of a generation, None if none is kept, or no longer.

        `days` is the number of days for which it is most likely kept.
        """
        age_s = self._clock.now_s() - created_s(generation_id)
        with refusing_when_unavailable():
            for kept in sorted(CONTENT_DAYS, key=lambda it: it != days):
                if age_s >= kept * DAY_S:
                    continue
                content = await self._objects.get(self._object(workspace_id, generation_id, kept))
                if content is not None:
                    return content
        return None

    async def delete(self, workspace_id: str, generation_id: str) -> None:
        """Delete the content of a generation, for however many days it is kept."""
        with refusing_when_unavailable():
            for days in CONTENT_DAYS:
                await self._objects.delete(self._object(workspace_id, generation_id, days))

    def _object(self, workspace_id: str, generation_id: str, days: int) -> str:
        # A workspace's id comes from outside; its hash is safe as part of an object's key.
        workspace = sha256(workspace_id.encode()).hexdigest()[:32]
        return f"{self._kind}/{days}d/{workspace}/{generation_id}"
