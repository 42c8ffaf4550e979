"""Stores content as objects whose key prefix contains the kind and the storage time in days.

The bucket's expiry rules delete objects by this prefix. Expired objects are not returned.
"""

from typing import Literal

from tollgate.aws.failures import refusing_when_unavailable
from tollgate.aws.objects import ObjectStore
from tollgate.core.clock import DAY_S, Clock
from tollgate.core.ids import created_s
from tollgate.stores.rules.key_settings import CONTENT_DAYS
from tollgate.stores.rules.object_names import workspace_folder

# Prompts and answers of keys with `content_days`, or responses that later requests refer to.
ContentKind = Literal["content", "responses"]


class ObjectContentLog:
    """Implements `engine.replies.content_log.ContentLog`."""

    def __init__(
        self, objects: ObjectStore, *, clock: Clock, kind: ContentKind = "content"
    ) -> None:
        self._objects = objects
        self._clock = clock
        self._kind = kind

    async def keep(
        self, workspace_id: str, generation_id: str, content: bytes, *, days: int
    ) -> None:
        """Store the content of a generation for a number of days."""
        with refusing_when_unavailable():
            await self._objects.put(self.name(workspace_id, generation_id, days), content)

    async def get(
        self, workspace_id: str, generation_id: str, *, days: int | None = None
    ) -> bytes | None:
        """Return the content of a generation; None if it was not stored or has expired.

        `days` is the most likely storage time, which is tried first.
        """
        age_s = self._clock.now_s() - created_s(generation_id)
        with refusing_when_unavailable():
            for kept_days in sorted(CONTENT_DAYS, key=lambda likely: likely != days):
                if age_s >= kept_days * DAY_S:
                    continue
                content = await self._objects.get(self.name(workspace_id, generation_id, kept_days))
                if content is not None:
                    return content
        return None

    def names(self, workspace_id: str, generation_id: str) -> tuple[str, ...]:
        """Return the object keys of a generation's content, one for each storage time."""
        return tuple(self.name(workspace_id, generation_id, days) for days in CONTENT_DAYS)

    def folders(self, workspace_id: str) -> tuple[str, ...]:
        """Return the key prefixes of a workspace's content, which end in `/`."""
        return self.names(workspace_id, "")

    async def delete(self, workspace_id: str, generation_id: str) -> None:
        """Delete the content of a generation, whatever its storage time."""
        with refusing_when_unavailable():
            for name in self.names(workspace_id, generation_id):
                await self._objects.delete(name)

    def name(self, workspace_id: str, generation_id: str, days: int) -> str:
        """Return the object key of a generation's content."""
        return f"{self._kind}/{days}d/{workspace_folder(workspace_id)}/{generation_id}"
