"""A key's state as an item of the ledger table."""

from collections.abc import Mapping
from typing import Final

from tollgate.core.limits import Period
from tollgate.ledger.account import HOLDS_MAX, NEVER_S, UNLIMITED, KeyState, RateState
from tollgate.ledger.periods import PERIODS
from tollgate.stores.attributes import Item, number, text
from tollgate.stores.base import KeySettings
from tollgate.stores.holds import hold_count
from tollgate.stores.reading import read_number, reads_an_item
from tollgate.stores.tables import key_state_key

LIMIT_NAMES: Final[Mapping[Period, str]] = dict(zip(PERIODS, ("ld", "lw", "lm", "lt"), strict=True))
MINUTE_LIMIT_NAME: Final = "tl"


def new_key_state(key_id: str, workspace_id: str, settings: KeySettings) -> Item:
    """The state a key starts with."""
    return {
        **key_state_key(key_id),
        "ws": text(workspace_id),
        **plain_attributes(settings),
        **{name: number(limit) for name, limit in limit_attributes(settings).items()},
        "us": number(0),
        "h": {"M": {}},
    }


def plain_attributes(settings: KeySettings) -> Item:
    """What a change of settings just overwrites; a new rate starts with a full bucket."""
    rate = RateState.fresh(settings.requests_per_minute, settings.burst)
    return {
        "on": number(0 if settings.disabled else 1),
        "ex": number(NEVER_S if settings.expires_s is None else settings.expires_s),
        "cc": number(HOLDS_MAX if settings.concurrency is None else settings.concurrency),
        "tat": number(rate.full_us),
        "ra": number(rate.ready_us),
        "gi": number(rate.interval_us),
        "gs": number(rate.slack_us),
    }


def limit_attributes(settings: KeySettings) -> dict[str, int]:
    """The limits that have buckets, by attribute."""
    limits = {
        name: settings.limits_nano_usd.get(period, UNLIMITED)
        for period, name in LIMIT_NAMES.items()
    }
    tokens = settings.tokens_per_minute
    return {**limits, MINUTE_LIMIT_NAME: UNLIMITED if tokens is None else tokens}


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
