"""The writes that change the settings in a state, of a key or of a level above it."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from tollgate.core.clock import Clock
from tollgate.stores.aws.attributes import Item, number
from tollgate.stores.aws.aws_json import AwsCaller
from tollgate.stores.aws.decoding import read_number, read_text
from tollgate.stores.aws.expressions import key_change
from tollgate.stores.aws.failures import ConditionFailed, StoreUnavailable
from tollgate.stores.aws.items import AnyItem, KeyStateItem
from tollgate.stores.aws.tables import get_items
from tollgate.stores.keys.rows import state_revision
from tollgate.stores.keys.state_items import (
    LIMIT_NAMES,
    RATE_NAMES,
    encode_limits,
    encode_plain_settings,
    with_state,
)
from tollgate.stores.rules.key_settings import KeySettings
from tollgate.stores.rules.periods import live_buckets, live_minutes

# Holds write to a state as well, but a limit's bucket appears seldom.
_APPLIES_MAX: Final = 5


class StateWrites:
    """Changes of the settings that states have."""

    def __init__(self, client: AwsCaller, table: str, clock: Clock) -> None:
        self._client = client
        self._table = table
        self._clock = clock

    async def apply(self, state_key: Item, new: KeySettings, revision: int) -> None:
        """Give a state the settings of a revision, once; a state that is gone needs none."""
        for _ in range(_APPLIES_MAX):
            # A batch of one: the sweeper, too, may read states so.
            found = await get_items(self._client, self._table, [state_key])
            if not found or state_revision(found[0]) >= revision:
                return
            try:
                old = with_state(new, found[0])
                await self._change(state_key, found[0], old, new, revision=revision)
            except ConditionFailed:
                continue
            return
        name = read_text(state_key, AnyItem.PARTITION)
        raise StoreUnavailable(f"the state {name} keeps changing", maybe_applied=True)

    async def _change(
        self, state_key: Item, state: Item, old: KeySettings, new: KeySettings, *, revision: int
    ) -> None:
        """Write the settings that differ, unless those of this revision, or later ones, are there.

        Each limit is written only if it is still as it was read.
        """
        before, after = encode_plain_settings(old), encode_plain_settings(new)
        plain = {name: value for name, value in after.items() if value != before[name]}
        # A rate that stays keeps its bucket as it is; a rate that changes starts with a full one.
        if any(name in plain for name in RATE_NAMES):
            plain.update({name: after[name] for name in RATE_NAMES})
        names = {f"#{name}": name for name in plain}
        values = {f":{name}": value for name, value in plain.items()} | {":rv": number(revision)}
        was = encode_limits(old)
        moved = move_limits(
            state,
            {name: amount for name, amount in encode_limits(new).items() if amount != was[name]},
            int(self._clock.now_s()),
        )
        names |= moved.names
        values |= moved.values
        write = key_change(list(plain), moved.buckets)
        payload: dict[str, object] = {
            "TableName": self._table,
            "Key": state_key,
            "UpdateExpression": write.update,
            "ConditionExpression": write.condition,
            "ExpressionAttributeValues": values,
        }
        if names:
            payload["ExpressionAttributeNames"] = names
        await self._client.call("UpdateItem", payload)


class MovedLimits(Struct, frozen=True):
    """The part of a write that gives a state new limits, with the buckets that move along."""

    names: Mapping[str, str]
    values: Item
    buckets: Mapping[str, tuple[int, int]]
    """By limit, how many of its live buckets the state has, and how many it lacks."""


def move_limits(state: Item, amounts: Mapping[str, int], second: int) -> MovedLimits:
    """Return how a state gets these limits: each only if it is still as the state has it."""
    names: dict[str, str] = {}
    values: Item = {}
    buckets: dict[str, tuple[int, int]] = {}
    for limit, amount in amounts.items():
        was = read_number(state, limit)
        live = live_buckets_of(limit, second)
        existing = [name for name in live if name in state]
        absent = [name for name in live if name not in state]
        buckets[limit] = (len(existing), len(absent))
        names |= {f"#{limit}{index}": name for index, name in enumerate(existing)}
        names |= {f"#no{limit}{index}": name for index, name in enumerate(absent)}
        values |= {f":{limit}": number(amount), f":old{limit}": number(was)}
        if existing:
            values[f":more{limit}"] = number(amount - was)
    return MovedLimits(names, values, buckets)


def live_buckets_of(limit: str, second: int) -> tuple[str, ...]:
    """Return the buckets of a limit that a writer may touch now."""
    if limit == KeyStateItem.MINUTE_TOKENS:
        return live_minutes(second)
    period = next(period for period, name in LIMIT_NAMES.items() if name == limit)
    return live_buckets(period, second)
