"""The wallet shards in DynamoDB, where money is held and settled."""

from collections.abc import Mapping
from typing import Final, assert_never

from msgspec import Struct

from tollgate.aws.attributes import AttributeValue, Item, number
from tollgate.aws.aws_json import ATTEMPTS_MAX, AwsCaller, AwsReply
from tollgate.aws.failures import ConditionFailed, StoreUnavailable, TransactionCancelled
from tollgate.core.errors import GatewayError
from tollgate.stores.aws.decoding import read_number, reads_an_item
from tollgate.stores.aws.expressions import (
    IF_ABSENT,
    WALLET_GRANT,
    WALLET_HOLD,
    WALLET_HOLD_REST,
    WALLET_LOCK,
    WALLET_SETTLE,
    WALLET_SETTLE_CROWDED,
    WALLET_TAKE,
    WALLET_TOP_UP,
    WALLET_UNCROWD,
    ConditionalUpdate,
)
from tollgate.stores.aws.holds import HoldUnknown, held_by, hold_count, settle_whatever_is_held
from tollgate.stores.aws.items import WalletItem
from tollgate.stores.aws.tables import get_items, wallet_key
from tollgate.stores.rules.account import (
    HOLDS_CROWDED,
    HOLDS_MAX,
    OPEN,
    PAUSED,
    WalletState,
    shard_order,
    too_many_holds,
    wallet_step,
    workspace_locked,
)
from tollgate.stores.rules.credit_refusals import insufficient_credits

# Maximum number of writes to a shard that other writers keep changing.
_WRITES_MAX: Final = 6


class WalletHold(Struct, frozen=True, kw_only=True):
    """Money held on one shard."""

    shard: int
    amount_nano_usd: int
    crowded: bool = False
    """True if the shard has so many holds that the workspace needs more shards."""


class Wallets:
    """The wallet shards of all workspaces."""

    def __init__(self, client: AwsCaller, table: str) -> None:
        self._client = client
        self._table = table

    async def create(self, workspace_id: str, shard: int, *, lock: int = OPEN) -> None:
        """Create an empty shard unless the shard exists."""
        item: Item = {
            **wallet_key(workspace_id, shard),
            **{
                name: number(0)
                for name in (WalletItem.AVAILABLE, WalletItem.SPENT, WalletItem.GRANTED)
            },
            WalletItem.LOCKED: number(lock),
            WalletItem.HOLDS: {"M": {}},
        }
        try:
            await self._client.call(
                "PutItem",
                {"TableName": self._table, "Item": item, "ConditionExpression": IF_ABSENT},
            )
        except ConditionFailed:
            return

    async def items(self, workspace_id: str, shards: int) -> list[Item]:
        """Return the items of a workspace's shards, in any order, with consistent reads."""
        keys = [wallet_key(workspace_id, shard) for shard in range(shards)]
        return await get_items(self._client, self._table, keys)

    async def uncrowd(self, workspace_id: str, shard: int) -> None:
        """Remove the mark that a shard is crowded."""
        await self._client.call(
            "UpdateItem",
            {
                "TableName": self._table,
                "Key": wallet_key(workspace_id, shard),
                "UpdateExpression": WALLET_UNCROWD.update,
                "ConditionExpression": WALLET_UNCROWD.condition,
            },
        )

    async def set_lock(self, workspace_id: str, shard: int, lock: int) -> None:
        """Set or clear the lock of a shard; existing holds can still be settled."""
        key = wallet_key(workspace_id, shard)
        request = WALLET_LOCK.build(self._table, key, {":lk": number(lock)})
        await self._client.call("UpdateItem", request)

    async def move(
        self, workspace_id: str, amount_nano_usd: int, *, source: int, target: int, token: str
    ) -> bool:
        """Move credit between shards; return False if the source has too little."""
        values = {":x": number(amount_nano_usd)}
        actions = [
            {"Update": write.build(self._table, wallet_key(workspace_id, shard), values)}
            for shard, write in ((source, WALLET_TAKE), (target, WALLET_GRANT))
        ]
        try:
            await self._client.call(
                "TransactWriteItems", {"ClientRequestToken": token, "TransactItems": actions}
            )
        except TransactionCancelled:
            return False
        return True

    async def hold(
        self,
        workspace_id: str,
        shards: int,
        hold_id: str,
        amount_nano_usd: int,
        *,
        covered: bool = False,
    ) -> WalletHold | GatewayError:
        """Hold the amount on the first shard that has credit; if less is left there, hold all of
        it.

        A `covered` hold needs a shard that has the whole amount. Raises HoldUnknown if a write may
        have been applied, and StoreUnavailable if none was.
        """
        available_nano_usd = 0
        any_full = False
        for shard in shard_order(hold_id, shards):
            outcome = await self._hold_on(
                workspace_id, shard, hold_id, amount_nano_usd, covered=covered
            )
            match outcome:
                case WalletHold():
                    return outcome
                case WalletState(locked=True, paused=paused):
                    return workspace_locked(hold_id, paused=paused)
                case WalletState():
                    available_nano_usd += outcome.available_nano_usd
                    any_full = any_full or outcome.holds >= HOLDS_MAX
                case None:
                    continue
                case _:
                    assert_never(outcome)
        if any_full:
            return too_many_holds()
        return insufficient_credits(available_nano_usd, amount_nano_usd)

    async def settle(
        self,
        workspace_id: str,
        shard: int,
        hold_id: str,
        *,
        held_nano_usd: int,
        cost_nano_usd: int,
        crowded: bool = False,
        attempts_max: int = ATTEMPTS_MAX,
    ) -> None:
        """Replace a hold with its cost, unless the hold is already settled.

        `crowded` marks the shard, so that the workspace gets more shards.
        """
        write = WALLET_SETTLE_CROWDED if crowded else WALLET_SETTLE

        async def settle(held: int) -> None:
            values = {
                ":a": number(held),
                ":c": number(cost_nano_usd),
                ":d": number(held - cost_nano_usd),
                **({":one": number(1)} if crowded else {}),
            }
            await self._client.call(
                "UpdateItem",
                self._update(write, wallet_key(workspace_id, shard), hold_id, values),
                attempts_max=attempts_max,
            )

        await settle_whatever_is_held(settle, hold_id, held_nano_usd)

    async def top_up(
        self,
        workspace_id: str,
        shard: int,
        hold_id: str,
        *,
        held_nano_usd: int,
        more_nano_usd: int,
    ) -> GatewayError | None:
        """Add to a hold; return a refusal if its shard has too little credit or is locked.

        Retries are safe, because the held amount shows whether an earlier call was applied.
        """
        values = {
            ":a": number(held_nano_usd),
            ":b": number(held_nano_usd + more_nano_usd),
            ":x": number(more_nano_usd),
            ":zero": number(0),
        }
        key = wallet_key(workspace_id, shard)
        try:
            await self._client.call("UpdateItem", self._update(WALLET_TOP_UP, key, hold_id, values))
        except ConditionFailed as failed:
            if held_by(failed.item, hold_id) == held_nano_usd + more_nano_usd:
                return None
            state = None if failed.item is None else read_wallet_state(failed.item)
            if state is not None and state.locked:
                return workspace_locked(hold_id, paused=state.paused)
            available = 0 if state is None else state.available_nano_usd
            return insufficient_credits(available, more_nano_usd)
        return None

    async def _hold_on(
        self,
        workspace_id: str,
        shard: int,
        hold_id: str,
        amount_nano_usd: int,
        *,
        covered: bool,
    ) -> WalletHold | WalletState | None:
        """Return the hold, the state of a shard that refuses, or None for a missing shard.

        If the reply is lost, the write is not retried.
        """
        step = "hold"
        for _ in range(_WRITES_MAX):
            holds_rest = step == "hold_rest"
            values = {":a": number(amount_nano_usd), ":zero": number(0), ":max": number(HOLDS_MAX)}
            if holds_rest:
                values[":one"] = number(1)
            payload = self._update(
                WALLET_HOLD_REST if holds_rest else WALLET_HOLD,
                wallet_key(workspace_id, shard),
                hold_id,
                values,
            )
            payload["ReturnValues"] = "ALL_NEW"
            try:
                reply = await self._client.call("UpdateItem", payload, attempts_max=1)
            except ConditionFailed as failed:
                state = None if failed.item is None else read_wallet_state(failed.item)
                step = wallet_step(state, amount_nano_usd, covered=covered)
                if step not in ("hold", "hold_rest"):
                    return state
            except StoreUnavailable as unavailable:
                if unavailable.maybe_applied:
                    raise HoldUnknown(amount_nano_usd, unavailable, shard) from unavailable
                raise
            else:
                return _wallet_hold(reply, shard, hold_id)
        raise StoreUnavailable(f"shard {shard} keeps changing", maybe_applied=False)

    def _update(
        self,
        write: ConditionalUpdate,
        key: Item,
        hold_id: str,
        values: Mapping[str, AttributeValue],
    ) -> dict[str, object]:
        return {
            "TableName": self._table,
            "Key": key,
            "UpdateExpression": write.update,
            "ConditionExpression": write.condition,
            "ExpressionAttributeNames": {"#h": hold_id},
            "ExpressionAttributeValues": values,
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }


def _wallet_hold(reply: AwsReply, shard: int, hold_id: str) -> WalletHold:
    holds = reply["Attributes"][WalletItem.HOLDS]["M"]
    return WalletHold(
        shard=shard,
        amount_nano_usd=int(holds[hold_id]["N"]),
        crowded=len(holds) > HOLDS_CROWDED,
    )


@reads_an_item
def read_wallet_state(item: Item) -> WalletState:
    """Decode the state of a shard."""
    return WalletState(
        available_nano_usd=read_number(item, WalletItem.AVAILABLE),
        locked=(lock := read_number(item, WalletItem.LOCKED)) != OPEN,
        paused=lock == PAUSED,
        holds=hold_count(item),
    )
