"""Keys in DynamoDB: found by the hash of their secret, listed by workspace, limited by state."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, cast

from tollgate.core.clock import Clock
from tollgate.core.ids import IdSource
from tollgate.core.principal import KeyRole, Principal
from tollgate.ledger.account import UNLIMITED_NANO_USD, key_refused
from tollgate.stores.attributes import (
    Item,
    number,
    read_number,
    read_numbers_by_name,
    read_optional_number,
    read_optional_text,
    read_text,
    read_texts,
    text,
    texts,
)
from tollgate.stores.aws_json import AwsCaller
from tollgate.stores.base import CreatedKey, KeySummary, NewKey
from tollgate.stores.expressions import (
    IF_ABSENT,
    KEY_DISABLE,
    POINTERS_OF_WORKSPACE,
)
from tollgate.stores.failures import refusing_when_unavailable
from tollgate.stores.key_secret import LAST_LENGTH, is_well_formed, new_secret, secret_hash
from tollgate.stores.key_states import new_key_state, read_key_state
from tollgate.stores.tables import (
    Tables,
    get_item,
    get_items,
    key_pointer_key,
    key_state_key,
    secret_key,
    workspace_key,
)

# A disabled key is refused everywhere within this time (contract C60).
_FOUND_FOR_S: Final = 5.0
_ABSENT_FOR_S: Final = 1.0
_CACHED_MAX: Final = 10_000


@dataclass(frozen=True, slots=True)
class _Cached:
    """What was read of a secret: its principal and expiry, or that nobody may use it."""

    until_s: float
    principal: Principal | None
    expires_s: int | None = None


class DynamoKeyStore:
    """Implements `stores.base.KeyStore`."""

    def __init__(
        self,
        client: AwsCaller,
        tables: Tables,
        *,
        ids: IdSource,
        clock: Clock,
        prefix: str,
    ) -> None:
        self._client = client
        self._tables = tables
        self._ids = ids
        self._clock = clock
        self._prefix = prefix
        self._cache: OrderedDict[str, _Cached] = OrderedDict()

    async def authenticate(self, secret: str) -> Principal:
        """Who holds this secret, read at most five seconds ago."""
        if not is_well_formed(secret, self._prefix):
            raise key_refused()
        digest = secret_hash(secret)
        cached = self._cache.get(digest)
        if cached is None or cached.until_s <= self._clock.monotonic_s():
            # The answer is as old as the question: a slow reply must not be cached for longer.
            asked_s = self._clock.monotonic_s()
            with refusing_when_unavailable():
                rows = await get_items(self._client, self._tables.core, [secret_key(digest)])
            cached = _cached(rows[0] if rows else None, asked_s)
            self._remember(digest, cached)
        if cached.principal is None:
            raise key_refused()
        if cached.expires_s is not None and cached.expires_s <= self._clock.now_s():
            raise key_refused()
        return cached.principal

    async def create(self, new: NewKey) -> CreatedKey:
        """Make a key: its secret's row, its workspace's pointer and its state, all or nothing."""
        key_id = self._ids.new_id()
        secret = new_secret(self._prefix, self._ids.random_bytes)
        digest = secret_hash(secret)
        with refusing_when_unavailable():
            workspace = await get_item(
                self._client, self._tables.core, workspace_key(new.workspace_id)
            )
            shards = 1 if workspace is None else read_number(workspace, "n")
            pointer = self._pointer(new, key_id, secret)
            state = new_key_state(key_id, new)
            await self._client.call(
                "TransactWriteItems",
                {
                    # Lets the client repeat the call after a lost reply.
                    "ClientRequestToken": self._ids.new_id(),
                    "TransactItems": [
                        _put_if_absent(self._tables.core, _secret_row(new, key_id, digest, shards)),
                        _put_if_absent(self._tables.core, pointer),
                        _put_if_absent(self._tables.ledger, state),
                    ],
                },
            )
        self._cache.pop(digest, None)
        return CreatedKey(secret=secret, summary=self._summary(pointer, state))

    async def get(self, workspace_id: str, key_id: str) -> KeySummary | None:
        """One key with what it has spent and what is left."""
        with refusing_when_unavailable():
            pointer = await get_item(
                self._client, self._tables.core, key_pointer_key(workspace_id, key_id)
            )
            state = await get_item(self._client, self._tables.ledger, key_state_key(key_id))
        return None if pointer is None or state is None else self._summary(pointer, state)

    async def list(self, workspace_id: str) -> Sequence[KeySummary]:
        """All keys of a workspace, oldest first: the order of their ids."""
        with refusing_when_unavailable():
            pointers = await self._pointers(workspace_id)
            states = await get_items(
                self._client,
                self._tables.ledger,
                [key_state_key(read_text(pointer, "kid")) for pointer in pointers],
            )
        state_of = {read_text(state, "pk"): state for state in states}
        return [
            self._summary(pointer, state_of[partition])
            for pointer in pointers
            if (partition := f"K#{read_text(pointer, 'kid')}") in state_of
        ]

    async def disable(self, workspace_id: str, key_id: str) -> KeySummary | None:
        """Stop a key: no hold succeeds from now on, and its secret is refused within 5 s.

        Plain updates, the state first: a transaction would make holds in flight fail.
        """
        with refusing_when_unavailable():
            pointer = await get_item(
                self._client, self._tables.core, key_pointer_key(workspace_id, key_id)
            )
            if pointer is None:
                return None
            digest = read_text(pointer, "hash")
            await self._switch_off(self._tables.ledger, key_state_key(key_id))
            await self._switch_off(self._tables.core, secret_key(digest))
        self._cache.pop(digest, None)
        return await self.get(workspace_id, key_id)

    async def _switch_off(self, table: str, key: Item) -> None:
        await self._client.call(
            "UpdateItem",
            {
                "TableName": table,
                "Key": key,
                "UpdateExpression": KEY_DISABLE.update,
                "ConditionExpression": KEY_DISABLE.condition,
                "ExpressionAttributeNames": {"#on": "on"},
                "ExpressionAttributeValues": {":zero": number(0)},
            },
        )

    async def _pointers(self, workspace_id: str) -> Sequence[Item]:
        pointers: list[Item] = []
        query: dict[str, object] = {
            "TableName": self._tables.core,
            "ConsistentRead": True,
            "KeyConditionExpression": POINTERS_OF_WORKSPACE,
            "ExpressionAttributeValues": {":pk": text(f"W#{workspace_id}"), ":prefix": text("K#")},
        }
        while True:
            reply = await self._client.call("Query", query)
            pointers += reply["Items"]
            if "LastEvaluatedKey" not in reply:
                return pointers
            query["ExclusiveStartKey"] = reply["LastEvaluatedKey"]

    def _pointer(self, new: NewKey, key_id: str, secret: str) -> Item:
        return {
            **key_pointer_key(new.workspace_id, key_id),
            **_described(new, key_id),
            "hash": text(secret_hash(secret)),
            "pre": text(self._prefix),
            "last": text(secret[-LAST_LENGTH:]),
            "at": number(int(self._clock.now_s())),
        }

    def _summary(self, pointer: Item, state: Item) -> KeySummary:
        key = read_key_state(state)
        limits = {
            period: limit
            for period, limit in key.limits_nano_usd.items()
            if limit != UNLIMITED_NANO_USD
        }
        remaining = key.remaining_nano_usd(int(self._clock.now_s()))
        return KeySummary(
            id=read_text(pointer, "kid"),
            workspace_id=read_text(pointer, "ws"),
            label=read_text(pointer, "label"),
            role=_role(pointer),
            prefix=read_text(pointer, "pre"),
            last_four=read_text(pointer, "last"),
            created_s=read_number(pointer, "at"),
            disabled=not key.enabled,
            tier=read_optional_text(pointer, "tier"),
            models=read_texts(pointer, "models"),
            limits_nano_usd=limits,
            remaining_nano_usd={period: remaining[period] for period in limits},
            spent_nano_usd=read_number(state, "us"),
            held_nano_usd=sum(read_numbers_by_name(state, "h").values()),
            requests_per_minute=key.rate.requests_per_minute,
            expires_s=read_optional_number(pointer, "ex"),
        )

    def _remember(self, digest: str, cached: _Cached) -> None:
        self._cache[digest] = cached
        self._cache.move_to_end(digest)
        if len(self._cache) > _CACHED_MAX:
            self._cache.popitem(last=False)


def _cached(row: Item | None, asked_s: float) -> _Cached:
    if row is None or read_number(row, "on") != 1:
        return _Cached(asked_s + _ABSENT_FOR_S, None)
    principal = Principal(
        key_id=read_text(row, "kid"),
        workspace_id=read_text(row, "ws"),
        role=_role(row),
        label=read_text(row, "label"),
        tier=read_optional_text(row, "tier"),
        models=read_texts(row, "models"),
        shards=read_number(row, "n"),
    )
    return _Cached(asked_s + _FOUND_FOR_S, principal, read_optional_number(row, "ex"))


def _secret_row(new: NewKey, key_id: str, digest: str, shards: int) -> Item:
    return {
        **secret_key(digest),
        **_described(new, key_id),
        "on": number(1),
        "n": number(shards),
    }


def _described(new: NewKey, key_id: str) -> Item:
    """What the secret's row and the workspace's pointer both say of a key."""
    described: Item = {
        "kid": text(key_id),
        "ws": text(new.workspace_id),
        "role": text(new.role),
        "label": text(new.label),
    }
    if new.tier is not None:
        described["tier"] = text(new.tier)
    if new.models is not None:
        described["models"] = texts(new.models)
    if new.expires_s is not None:
        described["ex"] = number(new.expires_s)
    return described


def _role(row: Item) -> KeyRole:
    # Only `create` writes roles, and NewKey allows no other.
    return cast(KeyRole, read_text(row, "role"))


def _put_if_absent(table: str, item: Item) -> dict[str, object]:
    return {"Put": {"TableName": table, "Item": item, "ConditionExpression": IF_ABSENT}}
