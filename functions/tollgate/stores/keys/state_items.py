"""A key's state as an item of the ledger table."""

from collections.abc import Mapping
from typing import Final

from tollgate.core.limits import Period
from tollgate.stores.aws.attributes import Item
from tollgate.stores.aws.decoding import read_number, reads_an_item
from tollgate.stores.aws.holds import hold_count
from tollgate.stores.rules.account import KeyState, RateState
from tollgate.stores.rules.periods import PERIODS

LIMIT_NAMES: Final[Mapping[Period, str]] = dict(zip(PERIODS, ("ld", "lw", "lm", "lt"), strict=True))
MINUTE_LIMIT_NAME: Final = "tl"


@reads_an_item
def read_key_state(item: Item) -> KeyState:
    """A state as its item says."""
    return KeyState(
        enabled=read_number(item, "on") == 1,
        expires_s=read_number(item, "ex"),
        concurrency=read_number(item, "cc"),
        holds=hold_count(item),
        limits_nano_usd={period: read_number(item, name) for period, name in LIMIT_NAMES.items()},
        buckets={
            name: int(value["N"]) for name, value in item.items() if name.startswith(("b_", "t_"))
        },
        rate=RateState(
            full_us=read_number(item, "tat"),
            ready_us=read_number(item, "ra"),
            interval_us=read_number(item, "gi"),
            slack_us=read_number(item, "gs"),
        ),
        tokens_per_minute=read_number(item, MINUTE_LIMIT_NAME),
    )
