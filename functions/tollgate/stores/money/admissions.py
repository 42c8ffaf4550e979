"""Admission in DynamoDB, which reads the items that a hold would write."""

from tollgate.aws.aws_json import AwsCaller
from tollgate.aws.failures import refusing_when_unavailable
from tollgate.core.clock import Clock
from tollgate.core.limits import LimitOwner, TierLimits
from tollgate.core.principal import Principal
from tollgate.stores.aws.decoding import read_text
from tollgate.stores.aws.items import AnyItem
from tollgate.stores.aws.tables import get_items, state_key, wallet_key
from tollgate.stores.keys.state_items import read_key_state
from tollgate.stores.money.wallets import read_wallet_state
from tollgate.stores.rules.account import microseconds
from tollgate.stores.rules.admission import WaitingRequests, refuse_by_state, refuse_by_wallet


class DynamoAdmissions:
    """Implements `stores.ports.base.Admissions` with one consistent batch read per request."""

    def __init__(self, client: AwsCaller, table: str, clock: Clock) -> None:
        self._client = client
        self._table = table
        self._clock = clock
        self._waiting = WaitingRequests()

    async def admit(
        self, principal: Principal, request_id: str, *, tier: TierLimits | None = None
    ) -> None:
        """Admit a request once; raise the refusal that even the smallest hold would get now."""
        if self._waiting.has(principal.key_id, request_id):
            return
        workspace_id = principal.workspace_id
        owners = [LimitOwner(level="key", id=principal.key_id, workspace_id=workspace_id)]
        # A level with slices has many items, so such a level is checked only by the hold.
        owners += [
            LimitOwner(level=level.level, id=level.id, workspace_id=workspace_id)
            for level in principal.levels
            if level.limited and level.slices == 1
        ]
        shard_keys = [wallet_key(workspace_id, shard) for shard in range(principal.shards)]
        state_keys = [state_key(owner) for owner in owners]
        with refusing_when_unavailable():
            items = await get_items(self._client, self._table, [*shard_keys, *state_keys])
            found = {read_text(item, AnyItem.PARTITION): item for item in items}
            places = [read_text(key, AnyItem.PARTITION) for key in state_keys]
            now_us = microseconds(self._clock.now_s())
            states = [
                read_key_state(found[place], now_us) if place in found else None for place in places
            ]
            shard_places = [read_text(key, AnyItem.PARTITION) for key in shard_keys]
            shards = [read_wallet_state(found[place]) for place in shard_places if place in found]
        # Nothing is awaited from here on, so requests that read at the same time are counted one
        # after another.
        waiting = self._waiting.count(principal.key_id)
        refusals = [
            refuse_by_state(
                state,
                owner,
                request_id,
                waiting=waiting,
                now_us=now_us,
                tier=tier if owner.level == "key" else None,
            )
            for owner, state in zip(owners, states, strict=True)
        ]
        for refusal in (*refusals, refuse_by_wallet(shards, request_id)):
            if refusal is not None:
                raise refusal
        self._waiting.add(principal.key_id, request_id)

    def end(self, principal: Principal, request_id: str) -> None:
        """Stop counting a request, because its hold now counts it or the request has ended."""
        self._waiting.discard(principal.key_id, request_id)
