"""Workspaces and their credit in DynamoDB: granted once per name, read consistently."""

import zlib
from typing import Final

from tollgate.core.clock import Clock
from tollgate.core.ids import IdSource
from tollgate.stores.attributes import Item, number, read_number, text
from tollgate.stores.aws_json import AwsCaller
from tollgate.stores.base import Balance
from tollgate.stores.expressions import IF_ABSENT, WALLET_GRANT
from tollgate.stores.failures import (
    ConditionFailed,
    StoreUnavailable,
    TransactionCancelled,
    refusing_when_unavailable,
)
from tollgate.stores.tables import Tables, get_item, grant_key, wallet_key, workspace_key
from tollgate.stores.wallets import Wallets

_CONDITION_FAILED: Final = "ConditionalCheckFailed"


class DynamoCreditStore:
    """Implements `stores.base.CreditStore`."""

    def __init__(
        self, client: AwsCaller, tables: Tables, wallets: Wallets, *, ids: IdSource, clock: Clock
    ) -> None:
        self._client = client
        self._tables = tables
        self._wallets = wallets
        self._ids = ids
        self._clock = clock

    async def ensure_workspace(self, workspace_id: str, *, shards: int = 1) -> int:
        """Create what a workspace lacks; the number of its wallet shards, which it keeps."""
        with refusing_when_unavailable():
            workspace = await self._workspace(workspace_id)
            if workspace is not None:
                return read_number(workspace, "n")
            # The shards first: once the workspace is there, all of them are.
            for shard in range(shards):
                await self._wallets.create(workspace_id, shard)
            item: Item = {
                **workspace_key(workspace_id),
                "n": number(shards),
                "at": number(int(self._clock.now_s())),
            }
            try:
                await self._client.call(
                    "PutItem",
                    {
                        "TableName": self._tables.core,
                        "Item": item,
                        "ConditionExpression": IF_ABSENT,
                        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
                    },
                )
            except ConditionFailed as failed:
                return shards if failed.item is None else read_number(failed.item, "n")
            return shards

    async def grant(
        self, workspace_id: str, grant_id: str, amount_nano_usd: int, source: str
    ) -> bool:
        """Add credit once for a grant id; False if that id was granted before."""
        if amount_nano_usd <= 0:
            raise ValueError("a grant must be positive")
        shards = await self.ensure_workspace(workspace_id)
        shard = zlib.crc32(grant_id.encode()) % shards
        entry: Item = {
            **grant_key(workspace_id, grant_id),
            "amt": number(amount_nano_usd),
            "shard": number(shard),
            "source": text(source),
            "at": number(int(self._clock.now_s())),
        }
        put = {
            "TableName": self._tables.core,
            "Item": entry,
            "ConditionExpression": IF_ABSENT,
        }
        add = {
            "TableName": self._tables.ledger,
            "Key": wallet_key(workspace_id, shard),
            "UpdateExpression": WALLET_GRANT.update,
            "ConditionExpression": WALLET_GRANT.condition,
            "ExpressionAttributeValues": {":x": number(amount_nano_usd)},
        }
        with refusing_when_unavailable():
            try:
                await self._client.call(
                    "TransactWriteItems",
                    {
                        # Lets the client repeat this very call; the entry makes the grant single.
                        "ClientRequestToken": self._ids.new_id(),
                        "TransactItems": [{"Put": put}, {"Update": add}],
                    },
                )
            except TransactionCancelled as cancelled:
                if cancelled.reasons and cancelled.reasons[0].code == _CONDITION_FAILED:
                    return False
                raise StoreUnavailable(str(cancelled), maybe_applied=False) from cancelled
        return True

    async def balance(self, workspace_id: str) -> Balance:
        """The workspace's money, read consistently; all zero for one that does not exist."""
        with refusing_when_unavailable():
            workspace = await self._workspace(workspace_id)
            shards = 0 if workspace is None else read_number(workspace, "n")
            return await self._wallets.balance(workspace_id, shards)

    async def _workspace(self, workspace_id: str) -> Item | None:
        return await get_item(self._client, self._tables.core, workspace_key(workspace_id))
