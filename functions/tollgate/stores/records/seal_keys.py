"""The key with which each workspace's compaction items are sealed, in DynamoDB.

Keys never change, so a process reads each key only once.
"""

from collections import OrderedDict
from typing import Final

from tollgate.aws.attributes import binary
from tollgate.aws.aws_json import AwsCaller
from tollgate.aws.failures import ConditionFailed, StoreUnavailable, refusing_when_unavailable
from tollgate.core.ids import IdSource
from tollgate.stores.aws.decoding import read_binary
from tollgate.stores.aws.expressions import IF_ABSENT
from tollgate.stores.aws.items import SealKeyItem
from tollgate.stores.aws.tables import get_item, seal_key_key

KEY_BYTES: Final = 32
_CACHED_MAX: Final = 10_000
_ROUNDS_MAX: Final = 2


class DynamoSealKeys:
    """Implements `stores.ports.base.SealKeys`."""

    def __init__(self, client: AwsCaller, table: str, ids: IdSource) -> None:
        self._client = client
        self._table = table
        self._ids = ids
        self._cache: OrderedDict[str, bytes] = OrderedDict()

    async def get(self, workspace_id: str) -> bytes:
        """Return the key of a workspace; the first call creates it."""
        key = self._cache.get(workspace_id)
        if key is None:
            with refusing_when_unavailable():
                key = await self._read_or_create(workspace_id)
            self._cache[workspace_id] = key
            if len(self._cache) > _CACHED_MAX:
                self._cache.popitem(last=False)
        return key

    async def _read_or_create(self, workspace_id: str) -> bytes:
        place = seal_key_key(workspace_id)
        for _ in range(_ROUNDS_MAX):
            item = await get_item(self._client, self._table, place)
            if item is not None:
                return read_binary(item, SealKeyItem.KEY)
            key = self._ids.random_bytes(KEY_BYTES)
            try:
                await self._client.call(
                    "PutItem",
                    {
                        "TableName": self._table,
                        "Item": {**place, SealKeyItem.KEY: binary(key)},
                        "ConditionExpression": IF_ABSENT,
                    },
                )
            except ConditionFailed:
                # Another process created the key, or this write was retried after its reply was
                # lost.
                continue
            return key
        item = await get_item(self._client, self._table, place)
        if item is None:
            raise StoreUnavailable("the key cannot be read after its creation", maybe_applied=True)
        return read_binary(item, SealKeyItem.KEY)
