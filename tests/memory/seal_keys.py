"""The keys that seal conversations, in this process's memory."""

from tollgate.core.ids import IdSource
from tollgate.stores.records.seal_keys import KEY_BYTES


class MemorySealKeys:
    """Implements `stores.ports.base.SealKeys`."""

    def __init__(self, ids: IdSource) -> None:
        self._ids = ids
        self._keys: dict[str, bytes] = {}

    async def get(self, workspace_id: str) -> bytes:
        """Return the key of a workspace, which the first call creates."""
        if workspace_id not in self._keys:
            self._keys[workspace_id] = self._ids.random_bytes(KEY_BYTES)
        return self._keys[workspace_id]
