"""The one transaction that gives the slices of a state their parts of its limits.

It makes slices, evens them out, and changes the limits of a state that has some. Parts add up to
the limit before and after it, and what a hold takes meanwhile fails it, so that no limit is passed.
"""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tollgate.core.clock import Clock
from tollgate.core.ids import IdSource, created_s
from tollgate.core.limits import LimitOwner
from tollgate.stores.aws.attributes import Item, number, string
from tollgate.stores.aws.aws_json import AwsCaller
from tollgate.stores.aws.decoding import read_number, read_numbers_by_name, reads_an_item
from tollgate.stores.aws.expressions import slice_change
from tollgate.stores.aws.failures import CorruptItem, StoreUnavailable, TransactionCancelled
from tollgate.stores.aws.items import KeyStateItem
from tollgate.stores.aws.tables import get_slices, state_key
from tollgate.stores.aws.transactions import put_if_absent, transact
from tollgate.stores.keys.rows import state_revision
from tollgate.stores.keys.state_items import (
    LIMIT_NAMES,
    encode_limits,
    encode_rate,
    new_state,
    read_key_state,
)
from tollgate.stores.keys.state_writes import live_buckets_of, move_limits
from tollgate.stores.rules.account import HOLDS_MAX, UNLIMITED, RateState, microseconds
from tollgate.stores.rules.key_settings import KeySettings
from tollgate.stores.rules.periods import PERIODS, bucket_names, minute_bucket
from tollgate.stores.rules.slices import (
    even_parts,
    is_closed,
    rate_part,
    rated_count,
    whole_limit,
    whole_rate,
)

# Holds write to the slices as well, but seldom take what is moved.
_TRIES_MAX: Final = 5
# How much further than seen the bucket of a rate may fill until a repeated transaction is there.
# Four times as much with each try: new slices of a rate begin with so much less.
_RATE_MARGIN_US: Final = 250_000
_RATE_PART: Final = (KeyStateItem.RATE_INTERVAL, KeyStateItem.RATE_SLACK)


class Division(Struct, frozen=True, kw_only=True):
    """The slices that a state is to have, and the settings that they share."""

    owner: LimitOwner
    settings: KeySettings
    revision: int
    """That of the level's row, which other changes than those of a state raise as well."""
    # Slices that there are, and that there are to be.
    was: int
    slices: int
    changes: bool = False
    """Whether the settings are of a later revision than the slices have."""
    others: Sequence[object] = ()
    """Actions of the same transaction."""


class SliceWrites:
    """Divides states."""

    def __init__(self, client: AwsCaller, table: str, *, ids: IdSource, clock: Clock) -> None:
        self._client = client
        self._table = table
        self._ids = ids
        self._clock = clock

    async def read(self, owner: LimitOwner, slices: int) -> list[Item]:
        """Return the items of all slices, in order; raise CorruptItem where one is missing."""
        items = await get_slices(self._client, self._table, owner, slices)
        for it in (_slice_of(owner, place) for place in range(slices)):
            if it not in items:
                raise CorruptItem(state_key(it), ValueError("a slice is missing"))
        return list(items.values())

    async def change(
        self, owner: LimitOwner, settings: KeySettings, *, revision: int, slices: int
    ) -> None:
        """Give a state the settings of a revision, once; all of its slices get them together."""
        division = Division(
            owner=owner,
            settings=settings,
            revision=revision,
            was=slices,
            slices=slices,
            changes=True,
        )
        if not await self.divide(division):
            raise StoreUnavailable(
                f"the slices of {owner.level} {owner.id} keep changing", maybe_applied=True
            )

    async def divide(self, division: Division) -> bool:
        """Give the slices their parts; return False where others keep changing them."""
        for attempt in range(_TRIES_MAX):
            items = await self.read(division.owner, division.was)
            if division.changes and state_revision(items[0]) >= division.revision:
                return True
            margin_us = _RATE_MARGIN_US << 2 * (attempt - 1) if attempt else 0
            parts = _Parts(division, items, self._clock.now_s(), margin_us=margin_us)
            if not (division.changes or parts.have_settings):
                continue
            actions = [*division.others, *parts.actions(self._table)]
            if not actions:
                return True
            try:
                await transact(self._client, self._ids, actions)
            except TransactionCancelled:
                continue
            return True
        return False


class _Parts:
    """The parts of slices that were read, and the writes by which they get them."""

    def __init__(
        self, division: Division, items: Sequence[Item], now_s: float, *, margin_us: int
    ) -> None:
        self._division = division
        self._items = items
        self._states = [read_key_state(item) for item in items]
        self._second = int(now_s)
        settings = division.settings
        self._revision = division.revision if division.changes else state_revision(items[0])
        self._limits = {
            name: self._parts_of(name, total) for name, total in encode_limits(settings).items()
        }
        self._concurrency = self._concurrencies(settings.concurrency)
        self._rate = RateState.fresh(settings.requests_per_minute, settings.burst)
        had = whole_rate([state.rate for state in self._states])
        self._rate_changes = (had.interval_us, had.burst) != (
            self._rate.interval_us,
            self._rate.burst,
        )
        sharing = self._states[: rated_count(had.burst, division.was)]
        # No bucket of a slice may be full later than this when the transaction comes.
        self._full_us = (
            max(microseconds(now_s), *(state.rate.full_us for state in sharing)) + margin_us
        )

    @property
    def have_settings(self) -> bool:
        """True if the slices, as they were read, have the settings between them.

        Slices are not read at one moment: some may be of before another division, or there may be
        more of them than the row said. Parts of such a read would be another limit.
        """
        settings = self._division.settings
        whole = {
            name: whole_limit([read_number(item, name) for item in self._items])
            for name in self._limits
        }
        at_once = sum(state.concurrency for state in self._states)
        return (
            whole == encode_limits(settings)
            and at_once == (settings.concurrency or HOLDS_MAX * len(self._states))
            and not self._rate_changes
        )

    def actions(self, table: str) -> list[object]:
        """Return the actions of the transaction, none where every slice has its part."""
        count, slices = self._division.was, self._division.slices
        changes = [self._change(place) for place in range(count)]
        new = [self._new_slice(place) for place in range(count, slices)]
        return [
            *({"Update": {"TableName": table, **change}} for change in changes if change),
            *(put_if_absent(table, item) for item in new),
        ]

    def _parts_of(self, name: str, total: int) -> list[int]:
        """Return the parts of a limit that has buckets, one for each slice."""
        slices = self._division.slices
        if total == UNLIMITED:
            return [UNLIMITED] * slices
        bucket = self._bucket(name)
        committed = [
            read_number(item, name) - read_number(item, bucket if bucket in item else name)
            for item in self._items
        ]
        held = [_held_in(item, bucket) for item in self._items]
        return self._even_parts(total, committed, held)

    def _concurrencies(self, total: int | None) -> list[int]:
        if total is None:
            return [HOLDS_MAX] * self._division.slices
        holds = [state.holds for state in self._states]
        return self._even_parts(total, holds, holds)

    def _even_parts(self, total: int, committed: list[int], held: list[int]) -> list[int]:
        new = [0] * (self._division.slices - self._division.was)
        return even_parts(total, [*committed, *new], [*held, *new])

    def _bucket(self, name: str) -> str:
        """Return the bucket that counts a limit at present."""
        if name == KeyStateItem.MINUTE_TOKENS:
            return minute_bucket(self._second)
        period = next(period for period, limit in LIMIT_NAMES.items() if limit == name)
        return bucket_names(self._second)[PERIODS.index(period)]

    def _change(self, place: int) -> dict[str, object] | None:
        """Return the update of a slice that is there, None where it has its part."""
        item, division = self._items[place], self._division
        amounts = {
            name: parts[place]
            for name, parts in self._limits.items()
            # A change has no limit of before to compare with: each slice must be as it was read.
            if parts[place] != read_number(item, name)
            or (division.changes and parts[place] != UNLIMITED)
        }
        plain, values = self._plain(place)
        if not (amounts or plain or division.changes):
            return None
        moved = move_limits(item, amounts, self._second)
        room: dict[str, int] = {}
        for name, amount in amounts.items():
            gives, bucket = read_number(item, name) - amount, self._bucket(name)
            # A limit that is passed already leaves no slice anything to have too little of.
            if gives > 0 and bucket in item and gives <= read_number(item, bucket):
                live = [it for it in live_buckets_of(name, self._second) if it in item]
                room[name] = live.index(bucket)
                values[f":room{name}"] = number(gives)
        holds, concurrency = self._states[place].holds, self._concurrency[place]
        write = slice_change(
            list(plain),
            moved.buckets,
            room,
            same_revision=not division.changes,
            fewer=holds <= concurrency < self._states[place].concurrency,
            shifts=":shift" in values,
        )
        names = {**{f"#{name}": name for name in plain}, **moved.names}
        return {
            "Key": state_key(_slice_of(division.owner, place)),
            "UpdateExpression": write.update,
            "ConditionExpression": write.condition,
            "ExpressionAttributeValues": {
                **{f":{name}": value for name, value in plain.items()},
                **moved.values,
                **values,
                ":rv": number(self._revision),
            },
            **({"ExpressionAttributeNames": names} if names else {}),
        }

    def _plain(self, place: int) -> tuple[Item, Item]:
        """Return the attributes that a slice gets as they are, and values of its guards."""
        state, concurrency = self._states[place], self._concurrency[place]
        plain, sent = Item(), Item()
        if self._division.slices > self._division.was:
            plain[KeyStateItem.SLICES] = number(self._division.slices)
        if concurrency != state.concurrency or self._division.changes:
            plain[KeyStateItem.CONCURRENCY] = number(concurrency)
            sent[":oldcc"] = number(state.concurrency)
        part = rate_part(self._rate, self._division.slices, place)
        if self._rate_changes:
            plain |= encode_rate(part)
        elif (part.interval_us, part.burst) != (state.rate.interval_us, state.rate.burst):
            # The bucket is full when it would have been: of what it lacks, others have their part.
            plain |= {name: encode_rate(part)[name] for name in _RATE_PART}
            sent[":shift"] = number(_full_after_us(state.rate) - _full_after_us(part))
            sent[":full"] = number(self._full_us)
        return plain, sent

    def _new_slice(self, place: int) -> Item:
        division = self._division
        part = rate_part(self._rate, division.slices, place)
        if not (self._rate_changes or part.is_unlimited or is_closed(part)):
            part = replace(
                part, full_us=self._full_us, ready_us=self._full_us - _full_after_us(part)
            )
        return {
            **new_state(state_key(_slice_of(division.owner, place)), division.settings),
            **{name: number(parts[place]) for name, parts in self._limits.items()},
            **encode_rate(part),
            KeyStateItem.CONCURRENCY: number(self._concurrency[place]),
            KeyStateItem.WORKSPACE: string(division.owner.workspace_id),
            KeyStateItem.REVISION: number(self._revision),
            KeyStateItem.SLICES: number(division.slices),
        }


def _slice_of(owner: LimitOwner, place: int) -> LimitOwner:
    """Return the owner of one slice of a state."""
    return replace(owner, slice=place)


@reads_an_item
def _held_in(item: Item, bucket: str) -> int:
    """Return what is held of what a bucket counts, which is not what an earlier period holds."""
    holds = read_numbers_by_name(item, KeyStateItem.HOLDS)
    return sum(amount for id_, amount in holds.items() if bucket in bucket_names(created_s(id_)))


def _full_after_us(rate: RateState) -> int:
    """Return how long after the next request may come the bucket of a rate is full."""
    return rate.interval_us * (rate.burst - 1)
