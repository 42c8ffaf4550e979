"""A key's rows in the core table: one by each secret's hash, one by its workspace."""

from collections.abc import Mapping
from typing import Final

from msgspec.structs import fields

from tollgate.core.ids import created_s
from tollgate.core.limits import Period
from tollgate.stores.administration import KeySettings, KeySummary, OldSecret
from tollgate.stores.aws.attributes import AttributeValue, Item, number, string, texts
from tollgate.stores.aws.decoding import (
    read_number,
    read_numbers_by_name,
    read_optional_number,
    read_optional_text,
    read_text,
    read_texts,
    reads_an_item,
)
from tollgate.stores.aws.tables import secret_key
from tollgate.stores.keys.principals import labels_of, role_of
from tollgate.stores.keys.state_items import read_key_state
from tollgate.stores.rules.account import HOLDS_MAX, UNLIMITED
from tollgate.stores.rules.periods import PERIODS, bucket_names

# What both rows say of a key's settings; absent where a key has none.
DESCRIBED: Final = ("label", "tier", "models", "ex", "labels", "cd")


def described(settings: KeySettings) -> Item:
    """The settings that both rows repeat; those a key does not have are missing."""
    values: dict[str, AttributeValue | None] = {
        "label": string(settings.label),
        "tier": None if settings.tier is None else string(settings.tier),
        "models": None if settings.models is None else texts(settings.models),
        "ex": None if settings.expires_s is None else number(settings.expires_s),
        "labels": {"M": {name: string(label) for name, label in settings.labels.items()}}
        if settings.labels
        else None,
        "cd": None if settings.content_days is None else number(settings.content_days),
    }
    return {name: value for name, value in values.items() if value is not None}


def secret_row(digest: str, pointer: Item, settings: KeySettings, workspace: Item | None) -> Item:
    """Who a secret belongs to, with what authentication needs of the key and its workspace."""
    row: Item = {
        **secret_key(digest),
        **described(settings),
        "kid": pointer["kid"],
        "ws": pointer["ws"],
        "role": pointer["role"],
        "on": number(0 if settings.disabled else 1),
        "n": number(1) if workspace is None else workspace["n"],
    }
    if workspace is not None and "adm" in workspace:
        row["adm"] = workspace["adm"]
    return row


def key_of_pointer(pointer: Item) -> str:
    """The key that a pointer stands for: its place says so, whatever else it says."""
    return read_text(pointer, "sk").removeprefix("K#")


def is_gone(pointer: Item) -> bool:
    """Whether only the tombstone of a deleted key is left."""
    return "gone" in pointer


def settings_of(key: KeySettings) -> KeySettings:
    """The settings alone of something that has them."""
    return KeySettings(**{field.name: getattr(key, field.name) for field in fields(KeySettings)})


@reads_an_item
def summary_of(pointer: Item, state: Item, now_s: float) -> KeySummary:
    """A key as it may be shown."""
    key = read_key_state(state)
    second = int(now_s)
    limits = {period: limit for period, limit in key.limits_nano_usd.items() if limit != UNLIMITED}
    remaining = key.remaining_nano_usd(second)
    holds = read_numbers_by_name(state, "h")
    tokens = key.tokens_per_minute
    return KeySummary(
        id=read_text(pointer, "kid"),
        workspace_id=read_text(pointer, "ws"),
        label=read_text(pointer, "label"),
        role=role_of(pointer),
        prefix=read_text(pointer, "pre"),
        last_four=read_text(pointer, "last"),
        created_s=read_number(pointer, "at"),
        disabled=not key.enabled,
        tier=read_optional_text(pointer, "tier"),
        models=read_texts(pointer, "models"),
        labels=labels_of(pointer),
        limits_nano_usd=limits,
        remaining_nano_usd={period: remaining[period] for period in limits},
        used_nano_usd=used_nano_usd(key.limits_nano_usd, remaining, holds, second),
        spent_nano_usd=read_number(state, "us"),
        held_nano_usd=sum(holds.values()),
        requests_per_minute=key.rate.requests_per_minute,
        burst=key.rate.burst,
        tokens_per_minute=None if tokens == UNLIMITED else tokens,
        concurrency=None if key.concurrency == HOLDS_MAX else key.concurrency,
        expires_s=read_optional_number(pointer, "ex"),
        last_used_s=read_optional_number(state, "lu"),
        old_secret=_old_secret(pointer, state, now_s),
        content_days=read_optional_number(pointer, "cd"),
    )


def used_nano_usd(
    limits: Mapping[Period, int],
    remaining: Mapping[Period, int],
    holds: Mapping[str, int],
    second: int,
) -> dict[Period, int]:
    """What was spent in each period of a second: neither left of its limit nor held from it."""
    names = dict(zip(PERIODS, bucket_names(second), strict=True))
    used = {}
    for place, period in enumerate(PERIODS):
        held = sum(
            amount
            for hold_id, amount in holds.items()
            if bucket_names(created_s(hold_id))[place] == names[period]
        )
        used[period] = limits[period] - remaining[period] - held
    return used


@reads_an_item
def month_used_nano_usd(state: Item, second: int) -> int:
    """What one key has spent in the month of a second."""
    key = read_key_state(state)
    holds = read_numbers_by_name(state, "h")
    remaining = key.remaining_nano_usd(second)
    return used_nano_usd(key.limits_nano_usd, remaining, holds, second)["month"]


def _old_secret(pointer: Item, state: Item, now_s: float) -> OldSecret | None:
    expires_s = read_optional_number(pointer, "oldx")
    if expires_s is None or expires_s <= now_s:
        return None
    return OldSecret(
        last_four=read_text(pointer, "oldl"),
        expires_s=expires_s,
        last_used_s=read_optional_number(state, "lo"),
    )
