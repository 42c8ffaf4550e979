"""The transaction that changes how a state's limits are divided among its slices.

The transaction creates slices, rebalances them, or changes the limits of a state with slices. An
example in `rules/slices.py` shows the resulting parts. The parts add up to the limit before and
after the transaction: each slice's write requires that the slice's limit is unchanged and that the
room that the slice gives up is still unused. If a concurrent hold has taken that room, the whole
transaction fails and is retried after reading the slices again, so no limit is exceeded.
"""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tollgate.aws.attributes import Item, number, string
from tollgate.aws.aws_json import AwsCaller
from tollgate.aws.failures import CorruptItem, StoreUnavailable, TransactionCancelled
from tollgate.core.clock import Clock
from tollgate.core.ids import IdSource, created_s
from tollgate.core.limits import LimitOwner
from tollgate.stores.aws.decoding import (
    name_of_item,
    read_number,
    read_numbers_by_name,
    reads_an_item,
)
from tollgate.stores.aws.expressions import slice_change
from tollgate.stores.aws.items import KeyStateItem
from tollgate.stores.aws.tables import state_key
from tollgate.stores.aws.transactions import put_if_absent, transact
from tollgate.stores.keys.rows import state_revision
from tollgate.stores.keys.state_items import (
    LIMIT_NAMES,
    encode_limits,
    encode_rate,
    get_slices,
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

# Maximum number of attempts; concurrent holds rarely take the room that is being moved.
_TRIES_MAX: Final = 5
# Each request that arrives between the read and the transaction delays the time at which a rate's
# bucket is full. A retry therefore adds this margin to that time in the new slices; each further
# retry adds four times as much as the one before.
_RATE_MARGIN_US: Final = 250_000
_RATE_PART: Final = (KeyStateItem.RATE_INTERVAL, KeyStateItem.RATE_SLACK)


class Division(Struct, frozen=True, kw_only=True):
    """A new division of a state's limits among several slices."""

    owner: LimitOwner
    settings: KeySettings
    revision: int
    """Revision of the level's item, which also counts changes that do not concern the state."""
    slices_before: int
    """Number of slices now."""
    slices: int
    """Number of slices afterwards."""
    changes: bool = False
    """True to apply the settings of a later revision; False to divide the current settings again.
    """
    extra_actions: Sequence[object] = ()
    """Further actions of the same transaction."""


class SliceWrites:
    """Transactions that divide states into slices."""

    def __init__(self, client: AwsCaller, table: str, *, ids: IdSource, clock: Clock) -> None:
        self._client = client
        self._table = table
        self._ids = ids
        self._clock = clock

    async def read(self, owner: LimitOwner, slices: int) -> list[Item]:
        """Return the items of all slices, in order; raise CorruptItem if one is missing."""
        items = await get_slices(self._client, self._table, owner, slices)
        for slice_ in (_slice_of(owner, index) for index in range(slices)):
            if slice_ not in items:
                raise CorruptItem(name_of_item(state_key(slice_)), ValueError("a slice is missing"))
        return list(items.values())

    async def change(
        self, owner: LimitOwner, settings: KeySettings, *, revision: int, slices: int
    ) -> None:
        """Give all slices of a state the settings of a revision, in one transaction."""
        division = Division(
            owner=owner,
            settings=settings,
            revision=revision,
            slices_before=slices,
            slices=slices,
            changes=True,
        )
        if not await self.divide(division):
            raise StoreUnavailable(
                f"the slices of {owner.level} {owner.id} keep changing", maybe_applied=True
            )

    async def divide(self, division: Division) -> bool:
        """Write the slices' new parts; return False if concurrent writes make all attempts fail."""
        for attempt in range(_TRIES_MAX):
            items = await self.read(division.owner, division.slices_before)
            if division.changes and state_revision(items[0]) >= division.revision:
                return True
            margin_us = _RATE_MARGIN_US << 2 * (attempt - 1) if attempt else 0
            parts = _Parts(division, items, self._clock.now_s(), margin_us=margin_us)
            if not (division.changes or parts.have_settings):
                continue
            actions = [*division.extra_actions, *parts.actions(self._table)]
            if not actions:
                return True
            try:
                await transact(self._client, self._ids, actions)
            except TransactionCancelled:
                continue
            return True
        return False


class _Parts:
    """The new parts of the slices that were read, and the writes that store the parts."""

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
        old_rate = whole_rate([state.rate for state in self._states])
        self._rate_changes = (old_rate.interval_us, old_rate.burst) != (
            self._rate.interval_us,
            self._rate.burst,
        )
        sharing = self._states[: rated_count(old_rate.burst, division.slices_before)]
        # The transaction is applied only if every slice's rate bucket is full again by this time.
        self._full_us = (
            max(microseconds(now_s), *(state.rate.full_us for state in sharing)) + margin_us
        )

    @property
    def have_settings(self) -> bool:
        """True if the limits of the slices that were read add up to the settings.

        The slices are not read atomically: another division may have changed some of them in
        between, or the level's item may have stated too few slices. Parts computed from such a read
        would add up to a wrong limit.
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
        """Return the actions of the transaction, or no actions if every slice has its part
        already.
        """
        count, slices = self._division.slices_before, self._division.slices
        changes = [self._change(table, index) for index in range(count)]
        new = [self._new_slice(index) for index in range(count, slices)]
        return [
            *({"Update": change} for change in changes if change),
            *(put_if_absent(table, item) for item in new),
        ]

    def _parts_of(self, name: str, total: int) -> list[int]:
        """Return each slice's part of a limit that has buckets."""
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
        new = [0] * (self._division.slices - self._division.slices_before)
        return even_parts(total, [*committed, *new], [*held, *new])

    def _bucket(self, name: str) -> str:
        """Return the name of the bucket that counts a limit now."""
        if name == KeyStateItem.MINUTE_TOKENS:
            return minute_bucket(self._second)
        period = next(period for period, limit in LIMIT_NAMES.items() if limit == name)
        return bucket_names(self._second)[PERIODS.index(period)]

    def _change(self, table: str, index: int) -> dict[str, object] | None:
        """Return the update of an existing slice, or None if it has its part already."""
        item, division = self._items[index], self._division
        amounts = {
            name: parts[index]
            for name, parts in self._limits.items()
            # A change of settings writes every limit, which makes the write conditional on every
            # old limit: the revision alone would not show that the slice is unchanged since it was
            # read.
            if parts[index] != read_number(item, name)
            or (division.changes and parts[index] != UNLIMITED)
        }
        plain, values = self._plain(index)
        if not (amounts or plain or division.changes):
            return None
        moved = move_limits(item, amounts, self._second)
        room: dict[str, int] = {}
        for name, amount in amounts.items():
            gives, bucket = read_number(item, name) - amount, self._bucket(name)
            # The write requires that the slice has not used the amount that it gives up. If less
            # than this was unused when the slice was read, the level is over its limit, and there
            # is nothing to require.
            if gives > 0 and bucket in item and gives <= read_number(item, bucket):
                stored = [live for live in live_buckets_of(name, self._second) if live in item]
                room[name] = stored.index(bucket)
                values[f":room{name}"] = number(gives)
        holds, concurrency = self._states[index].holds, self._concurrency[index]
        write = slice_change(
            list(plain),
            moved.buckets,
            room,
            same_revision=not division.changes,
            fewer=holds <= concurrency < self._states[index].concurrency,
            shifts=":shift" in values,
        )
        names = {**{f"#{name}": name for name in plain}, **moved.names}
        all_values = {
            **{f":{name}": value for name, value in plain.items()},
            **moved.values,
            **values,
            ":rv": number(self._revision),
        }
        return write.build(table, state_key(_slice_of(division.owner, index)), all_values, names)

    def _plain(self, index: int) -> tuple[Item, Item]:
        """Return the attributes that a slice's write overwrites, and the values of its guards."""
        state, concurrency = self._states[index], self._concurrency[index]
        plain, guards = Item(), Item()
        if self._division.slices > self._division.slices_before:
            plain[KeyStateItem.SLICES] = number(self._division.slices)
        if concurrency != state.concurrency or self._division.changes:
            plain[KeyStateItem.CONCURRENCY] = number(concurrency)
            guards[":oldcc"] = number(state.concurrency)
        part = rate_part(self._rate, self._division.slices, index)
        if self._rate_changes:
            plain |= encode_rate(part)
        elif (part.interval_us, part.burst) != (state.rate.interval_us, state.rate.burst):
            # The slice gets another burst, but its bucket is full at the same time as before,
            # because the missing requests are divided among the slices in the same way as the rate.
            plain |= {name: encode_rate(part)[name] for name in _RATE_PART}
            guards[":shift"] = number(_full_after_us(state.rate) - _full_after_us(part))
            guards[":full"] = number(self._full_us)
        return plain, guards

    def _new_slice(self, index: int) -> Item:
        division = self._division
        part = rate_part(self._rate, division.slices, index)
        if not (self._rate_changes or part.is_unlimited or is_closed(part)):
            part = replace(
                part, full_us=self._full_us, ready_us=self._full_us - _full_after_us(part)
            )
        return {
            **new_state(state_key(_slice_of(division.owner, index)), division.settings),
            **{name: number(parts[index]) for name, parts in self._limits.items()},
            **encode_rate(part),
            KeyStateItem.CONCURRENCY: number(self._concurrency[index]),
            KeyStateItem.WORKSPACE: string(division.owner.workspace_id),
            KeyStateItem.REVISION: number(self._revision),
            KeyStateItem.SLICES: number(division.slices),
        }


def _slice_of(owner: LimitOwner, index: int) -> LimitOwner:
    """Return the owner of one slice of a state."""
    return replace(owner, slice=index)


@reads_an_item
def _held_in(item: Item, bucket: str) -> int:
    """Return the sum of the amounts that holds took from this bucket, and not from earlier
    buckets.
    """
    holds = read_numbers_by_name(item, KeyStateItem.HOLDS)
    return sum(amount for id_, amount in holds.items() if bucket in bucket_names(created_s(id_)))


def _full_after_us(rate: RateState) -> int:
    """Return the microseconds between the time at which a rate admits one request and the time at
    which its bucket is full.
    """
    return rate.interval_us * (rate.burst - 1)
