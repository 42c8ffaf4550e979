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
from tollgate.stores.aws.items import (
    AnyItem,
    KeyPointerItem,
    KeyRow,
    KeyStateItem,
    SecretItem,
    WorkspaceItem,
)
from tollgate.stores.aws.tables import secret_key
from tollgate.stores.keys.principals import labels_of, role_of
from tollgate.stores.keys.state_items import read_key_state
from tollgate.stores.rules.account import HOLDS_MAX, UNLIMITED
from tollgate.stores.rules.periods import PERIODS, bucket_names

# What both rows say of a key's settings; absent where a key has none.
DESCRIBED: Final = (
    KeyRow.LABEL,
    KeyRow.TIER,
    KeyRow.MODELS,
    KeyRow.EXPIRES,
    KeyRow.LABELS,
    KeyRow.CONTENT_DAYS,
)


def described(settings: KeySettings) -> Item:
    """The settings that both rows repeat; those a key does not have are missing."""
    values: dict[str, AttributeValue | None] = {
        KeyRow.LABEL: string(settings.label),
        KeyRow.TIER: None if settings.tier is None else string(settings.tier),
        KeyRow.MODELS: None if settings.models is None else texts(settings.models),
        KeyRow.EXPIRES: None if settings.expires_s is None else number(settings.expires_s),
        KeyRow.LABELS: {"M": {name: string(label) for name, label in settings.labels.items()}}
        if settings.labels
        else None,
        KeyRow.CONTENT_DAYS: None
        if settings.content_days is None
        else number(settings.content_days),
    }
    return {name: value for name, value in values.items() if value is not None}


def secret_row(digest: str, pointer: Item, settings: KeySettings, workspace: Item | None) -> Item:
    """Who a secret belongs to, with what authentication needs of the key and its workspace."""
    row: Item = {
        **secret_key(digest),
        **described(settings),
        SecretItem.KEY: pointer[KeyPointerItem.KEY],
        SecretItem.WORKSPACE: pointer[KeyPointerItem.WORKSPACE],
        SecretItem.ROLE: pointer[KeyPointerItem.ROLE],
        SecretItem.ENABLED: number(0 if settings.disabled else 1),
        SecretItem.SHARDS: number(1) if workspace is None else workspace[WorkspaceItem.SHARDS],
    }
    if workspace is not None and WorkspaceItem.ADMISSION in workspace:
        row[SecretItem.ADMISSION] = workspace[WorkspaceItem.ADMISSION]
    return row


def key_of_pointer(pointer: Item) -> str:
    """The key that a pointer stands for: its place says so, whatever else it says."""
    return read_text(pointer, AnyItem.SORT).removeprefix("K#")


def is_gone(pointer: Item) -> bool:
    """Whether only the tombstone of a deleted key is left."""
    return KeyPointerItem.DELETED in pointer


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
    holds = read_numbers_by_name(state, KeyStateItem.HOLDS)
    tokens = key.tokens_per_minute
    return KeySummary(
        id=read_text(pointer, KeyPointerItem.KEY),
        workspace_id=read_text(pointer, KeyPointerItem.WORKSPACE),
        label=read_text(pointer, KeyPointerItem.LABEL),
        role=role_of(pointer),
        prefix=read_text(pointer, KeyPointerItem.PREFIX),
        last_four=read_text(pointer, KeyPointerItem.LAST),
        created_s=read_number(pointer, KeyPointerItem.CREATED),
        disabled=not key.enabled,
        tier=read_optional_text(pointer, KeyPointerItem.TIER),
        models=read_texts(pointer, KeyPointerItem.MODELS),
        labels=labels_of(pointer),
        limits_nano_usd=limits,
        remaining_nano_usd={period: remaining[period] for period in limits},
        used_nano_usd=used_nano_usd(key.limits_nano_usd, remaining, holds, second),
        spent_nano_usd=read_number(state, KeyStateItem.SPENT),
        held_nano_usd=sum(holds.values()),
        requests_per_minute=key.rate.requests_per_minute,
        burst=key.rate.burst,
        tokens_per_minute=None if tokens == UNLIMITED else tokens,
        concurrency=None if key.concurrency == HOLDS_MAX else key.concurrency,
        expires_s=read_optional_number(pointer, KeyPointerItem.EXPIRES),
        last_used_s=read_optional_number(state, KeyStateItem.LAST_USED),
        old_secret=_old_secret(pointer, state, now_s),
        content_days=read_optional_number(pointer, KeyPointerItem.CONTENT_DAYS),
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
    holds = read_numbers_by_name(state, KeyStateItem.HOLDS)
    remaining = key.remaining_nano_usd(second)
    return used_nano_usd(key.limits_nano_usd, remaining, holds, second)["month"]


def _old_secret(pointer: Item, state: Item, now_s: float) -> OldSecret | None:
    expires_s = read_optional_number(pointer, KeyPointerItem.OLD_ENDS)
    if expires_s is None or expires_s <= now_s:
        return None
    return OldSecret(
        last_four=read_text(pointer, KeyPointerItem.OLD_LAST),
        expires_s=expires_s,
        last_used_s=read_optional_number(state, KeyStateItem.OLD_LAST_USED),
    )
