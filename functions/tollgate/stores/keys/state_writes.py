"""Writes that change the settings in the state of a key or of a level above it."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from tollgate.aws.attributes import Item, number
from tollgate.aws.aws_json import AwsCaller
from tollgate.aws.failures import ConditionFailed, StoreUnavailable
from tollgate.core.clock import Clock
from tollgate.stores.aws.decoding import read_number, read_text
from tollgate.stores.aws.expressions import key_change
from tollgate.stores.aws.items import AnyItem, KeyStateItem
from tollgate.stores.aws.tables import get_items, try_update
from tollgate.stores.keys.rows import state_revision
from tollgate.stores.keys.session_expressions import KEY_ADDRESS_FORGET
from tollgate.stores.keys.state_items import (
    LIMIT_NAMES,
    RATE_NAMES,
    encode_limits,
    encode_plain_settings,
    with_state,
)
from tollgate.stores.rules.key_settings import KeySettings
from tollgate.stores.rules.periods import live_buckets, live_minutes

# Maximum number of attempts. A retry is rare: only a limit's first hold in a period creates a
# bucket, which makes a concurrent change of the settings fail.
_APPLIES_MAX: Final = 5


class StateWrites:
    """Changes of the settings in states."""

    def __init__(self, client: AwsCaller, table: str, clock: Clock) -> None:
        self._client = client
        self._table = table
        self._clock = clock

    async def apply(self, state_key: Item, new: KeySettings, revision: int) -> None:
        """Write the settings of a revision to a state, only once; ignore a deleted state."""
        for _ in range(_APPLIES_MAX):
            # Read a batch of one item, because the sweeper's role may read states only by
            # BatchGetItem.
            states = await get_items(self._client, self._table, [state_key])
            if not states or state_revision(states[0]) >= revision:
                return
            if new.keep_address is None and KeyStateItem.ADDRESS in states[0]:
                values = {":ad": states[0][KeyStateItem.ADDRESS]}
                forget = KEY_ADDRESS_FORGET.build(self._table, state_key, values)
                await try_update(self._client, forget)
            try:
                old = with_state(new, states[0])
                await self._change(state_key, states[0], old, new, revision=revision)
            except ConditionFailed:
                continue
            return
        name = read_text(state_key, AnyItem.PARTITION)
        raise StoreUnavailable(f"the state {name} keeps changing", maybe_applied=True)

    async def _change(
        self, state_key: Item, state: Item, old: KeySettings, new: KeySettings, *, revision: int
    ) -> None:
        """Write the settings that differ, unless the state has this revision or a later one.

        Each limit is written only if it still has the value that was read.
        """
        before, after = encode_plain_settings(old), encode_plain_settings(new)
        plain = {name: value for name, value in after.items() if value != before[name]}
        # An unchanged rate keeps its bucket; a changed rate starts with a full bucket.
        if any(name in plain for name in RATE_NAMES):
            plain.update({name: after[name] for name in RATE_NAMES})
        names = {f"#{name}": name for name in plain}
        values = {f":{name}": value for name, value in plain.items()} | {":rv": number(revision)}
        old_limits = encode_limits(old)
        moved = move_limits(
            state,
            {
                name: amount
                for name, amount in encode_limits(new).items()
                if amount != old_limits[name]
            },
            int(self._clock.now_s()),
        )
        names |= moved.names
        values |= moved.values
        write = key_change(list(plain), moved.buckets)
        await self._client.call("UpdateItem", write.build(self._table, state_key, values, names))


class MovedLimits(Struct, frozen=True):
    """The part of a write that sets new limits of a state and moves their buckets."""

    names: Mapping[str, str]
    """ExpressionAttributeNames of the buckets."""
    values: Item
    """ExpressionAttributeValues for the old limits, the new limits and the moved buckets."""
    buckets: Mapping[str, tuple[int, int]]
    """The numbers of existing and of absent live buckets, by limit."""


def move_limits(state: Item, amounts: Mapping[str, int], second: int) -> MovedLimits:
    """Return the part of a write that sets new limits if the old limits are unchanged.

    A limit's existing buckets change by the same amount as the limit, so that earlier usage still
    counts.
    """
    names: dict[str, str] = {}
    values: Item = {}
    buckets: dict[str, tuple[int, int]] = {}
    for limit, amount in amounts.items():
        old_amount = read_number(state, limit)
        live = live_buckets_of(limit, second)
        existing = [name for name in live if name in state]
        absent = [name for name in live if name not in state]
        buckets[limit] = (len(existing), len(absent))
        names |= {f"#{limit}{index}": name for index, name in enumerate(existing)}
        names |= {f"#no{limit}{index}": name for index, name in enumerate(absent)}
        values |= {f":{limit}": number(amount), f":old{limit}": number(old_amount)}
        if existing:
            values[f":more{limit}"] = number(amount - old_amount)
    return MovedLimits(names, values, buckets)


def live_buckets_of(limit: str, second: int) -> tuple[str, ...]:
    """Return the names of a limit's buckets that concurrent writers may change now."""
    if limit == KeyStateItem.MINUTE_TOKENS:
        return live_minutes(second)
    period = next(period for period, name in LIMIT_NAMES.items() if name == limit)
    return live_buckets(period, second)
