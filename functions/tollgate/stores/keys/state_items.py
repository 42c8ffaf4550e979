"""A key's state as a ledger item: settings that a hold checks, and what is left of each limit."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from msgspec.structs import replace

from tollgate.aws.attributes import Item, number, string
from tollgate.aws.aws_json import AwsCaller
from tollgate.core.dotted_names import DottedName
from tollgate.core.limits import LimitOwner, Period
from tollgate.stores.aws.decoding import (
    read_number,
    read_optional_number,
    read_text,
    reads_an_item,
)
from tollgate.stores.aws.holds import hold_count
from tollgate.stores.aws.items import AnyItem, KeyStateItem
from tollgate.stores.aws.tables import get_items, key_state_key, owner_of_state, state_key
from tollgate.stores.rules.account import HOLDS_MAX, NEVER_S, UNLIMITED, KeyState, RateState
from tollgate.stores.rules.key_settings import KeySettings
from tollgate.stores.rules.quotas import COUNTER_PREFIX

# Imported with the first full state.
_WITHOUT_WAITING: Final = DottedName[Callable[[KeyState, Iterable[str], float], KeyState]](
    "tollgate.stores.rules.sweep:without_waiting"
)
LIMIT_NAMES: Final[Mapping[Period, str]] = {
    "day": KeyStateItem.DAY_LIMIT,
    "week": KeyStateItem.WEEK_LIMIT,
    "month": KeyStateItem.MONTH_LIMIT,
    "total": KeyStateItem.TOTAL_LIMIT,
}
RATE_NAMES: Final = (
    KeyStateItem.RATE_FULL,
    KeyStateItem.RATE_READY,
    KeyStateItem.RATE_INTERVAL,
    KeyStateItem.RATE_SLACK,
)


@reads_an_item
def read_key_state(item: Item, now_us: int | None = None) -> KeyState:
    """Decode the state of a key or a level; `now_us` decides which holds take no place."""
    state = KeyState(
        enabled=read_number(item, KeyStateItem.ENABLED) == 1,
        expires_s=read_number(item, KeyStateItem.EXPIRES),
        concurrency=read_number(item, KeyStateItem.CONCURRENCY),
        holds=hold_count(item),
        limits_nano_usd={period: read_number(item, name) for period, name in LIMIT_NAMES.items()},
        buckets={
            name: int(value["N"]) for name, value in item.items() if name.startswith(("b_", "t_"))
        },
        counters={
            name: int(value["N"]) for name, value in item.items() if name.startswith(COUNTER_PREFIX)
        },
        rate=RateState(
            full_us=read_number(item, KeyStateItem.RATE_FULL),
            ready_us=read_number(item, KeyStateItem.RATE_READY),
            interval_us=read_number(item, KeyStateItem.RATE_INTERVAL),
            slack_us=read_number(item, KeyStateItem.RATE_SLACK),
        ),
        tokens_per_minute=read_number(item, KeyStateItem.MINUTE_TOKENS),
    )
    if now_us is None or state.holds < state.concurrency:
        return state
    return _WITHOUT_WAITING()(state, item[KeyStateItem.HOLDS]["M"], now_us / 1_000_000)


@reads_an_item
def count_slices(state: Item) -> int:
    """Return the number of slices of the state to which this item belongs."""
    return read_optional_number(state, KeyStateItem.SLICES) or 1


def settings_in_state(key: KeyState) -> Mapping[str, Any]:
    """Return the settings in a state, by their names in KeySettings."""
    tokens = key.tokens_per_minute
    limits = {period: limit for period, limit in key.limits_nano_usd.items() if limit != UNLIMITED}
    return {
        "disabled": not key.enabled,
        "limits_nano_usd": limits,
        "requests_per_minute": key.rate.requests_per_minute,
        "burst": key.rate.burst,
        "tokens_per_minute": None if tokens == UNLIMITED else tokens,
        "concurrency": None if key.concurrency == HOLDS_MAX else key.concurrency,
    }


def with_state(settings: KeySettings, state: Item) -> KeySettings:
    """Return `settings` with the values of the settings that the state stores."""
    key = read_key_state(state)
    expires_s = None if key.expires_s == NEVER_S else key.expires_s
    return replace(settings, **settings_in_state(key), expires_s=expires_s)


def new_key_state(key_id: str, workspace_id: str, settings: KeySettings) -> Item:
    """Return the initial state of a key."""
    state = new_state(key_state_key(key_id), settings)
    return {**state, KeyStateItem.WORKSPACE: string(workspace_id)}


def new_state(state_key: Item, settings: KeySettings) -> Item:
    """Return the initial state of a key or a level above it, without the workspace's id."""
    return {
        **state_key,
        **encode_plain_settings(settings),
        **{name: number(limit) for name, limit in encode_limits(settings).items()},
        KeyStateItem.SPENT: number(0),
        KeyStateItem.HOLDS: {"M": {}},
    }


def encode_plain_settings(settings: KeySettings) -> Item:
    """Return the attributes of the settings that have no buckets; the rate starts unused."""
    rate = RateState.fresh(settings.requests_per_minute, settings.burst)
    concurrency = HOLDS_MAX if settings.concurrency is None else settings.concurrency
    return {
        KeyStateItem.ENABLED: number(0 if settings.disabled else 1),
        KeyStateItem.EXPIRES: number(NEVER_S if settings.expires_s is None else settings.expires_s),
        KeyStateItem.CONCURRENCY: number(concurrency),
        **encode_rate(rate),
    }


def changes_state(old: KeySettings, new: KeySettings) -> bool:
    """Return whether a change of settings must also change the key's state."""
    return (
        encode_plain_settings(old) != encode_plain_settings(new)
        or encode_limits(old) != encode_limits(new)
        # The key's state contains the address, which must then be deleted.
        or (old.keep_address is not None and new.keep_address is None)
    )


def encode_rate(rate: RateState) -> Item:
    """Return the attributes that store a rate."""
    return {
        KeyStateItem.RATE_FULL: number(rate.full_us),
        KeyStateItem.RATE_READY: number(rate.ready_us),
        KeyStateItem.RATE_INTERVAL: number(rate.interval_us),
        KeyStateItem.RATE_SLACK: number(rate.slack_us),
    }


def encode_limits(settings: KeySettings) -> dict[str, int]:
    """Return the limits that have buckets, in nano-dollars or tokens, by attribute name."""
    limits = {
        name: settings.limits_nano_usd.get(period, UNLIMITED)
        for period, name in LIMIT_NAMES.items()
    }
    tokens = settings.tokens_per_minute
    return {**limits, KeyStateItem.MINUTE_TOKENS: UNLIMITED if tokens is None else tokens}


async def get_slices(
    client: AwsCaller, table: str, owner: LimitOwner, count: int
) -> dict[LimitOwner, Item]:
    """Return the existing items among the first `count` slices of a state, in order."""
    owners = [replace(owner, slice=index) for index in range(count)]
    item_of = {
        owner_of_state(read_text(item, AnyItem.PARTITION), owner.workspace_id): item
        for item in await get_items(client, table, [state_key(slice_) for slice_ in owners])
    }
    return {slice_: item_of[slice_] for slice_ in owners if slice_ in item_of}
