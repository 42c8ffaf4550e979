"""A key's state as an item of the ledger table."""

from collections.abc import Mapping
from typing import Final

from tollgate.core.limits import Period
from tollgate.stores.aws.attributes import Item
from tollgate.stores.aws.decoding import read_number, reads_an_item
from tollgate.stores.aws.holds import hold_count
from tollgate.stores.aws.items import KeyStateItem
from tollgate.stores.rules.account import KeyState, RateState

LIMIT_NAMES: Final[Mapping[Period, str]] = {
    "day": KeyStateItem.DAY_LIMIT,
    "week": KeyStateItem.WEEK_LIMIT,
    "month": KeyStateItem.MONTH_LIMIT,
    "total": KeyStateItem.TOTAL_LIMIT,
}


@reads_an_item
def read_key_state(item: Item) -> KeyState:
    """A state as its item says."""
    return KeyState(
        enabled=read_number(item, KeyStateItem.ENABLED) == 1,
        expires_s=read_number(item, KeyStateItem.EXPIRES),
        concurrency=read_number(item, KeyStateItem.CONCURRENCY),
        holds=hold_count(item),
        limits_nano_usd={period: read_number(item, name) for period, name in LIMIT_NAMES.items()},
        buckets={
            name: int(value["N"]) for name, value in item.items() if name.startswith(("b_", "t_"))
        },
        rate=RateState(
            full_us=read_number(item, KeyStateItem.RATE_FULL),
            ready_us=read_number(item, KeyStateItem.RATE_READY),
            interval_us=read_number(item, KeyStateItem.RATE_INTERVAL),
            slack_us=read_number(item, KeyStateItem.RATE_SLACK),
        ),
        tokens_per_minute=read_number(item, KeyStateItem.MINUTE_TOKENS),
    )
