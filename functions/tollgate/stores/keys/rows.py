"""The items of a key in the core table: one per secret, and a pointer."""

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from msgspec import Struct, json

from tollgate.aws.attributes import AttributeValue, Item, number, string, texts
from tollgate.core.ids import created_s
from tollgate.core.limits import Period
from tollgate.core.money.amounts import nano_usd, usd
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
from tollgate.stores.keys.principals import read_labels, read_role
from tollgate.stores.keys.state_items import read_key_state, settings_in_state
from tollgate.stores.ports.administration import KeySummary, OldSecret
from tollgate.stores.rules.key_settings import KeySettings
from tollgate.stores.rules.periods import PERIODS, bucket_names, period_ends_s


class _StoredSetting(Struct, frozen=True):
    """The storage of a setting in both kinds of items: its attribute, encoder and decoder."""

    attribute: str
    encode: Callable[[Any], AttributeValue]
    """Encodes a value; if the setting is unset, the item does not have the attribute."""
    decode: Callable[[Item, str], object]
    """Decodes the attribute of an item, which may not have it."""


def _read_usd(row: Item, name: str) -> Decimal | None:
    amount = read_optional_number(row, name)
    return None if amount is None else usd(amount)


# Settings in the pointer and in each secret's item. All other settings are in the key's state,
# because every new hold checks them.
_ROW_SETTINGS: Final[Mapping[str, _StoredSetting]] = {
    "label": _StoredSetting(KeyRow.LABEL, string, read_text),
    "tier": _StoredSetting(KeyRow.TIER, string, read_optional_text),
    "models": _StoredSetting(KeyRow.MODELS, texts, read_texts),
    "expires_s": _StoredSetting(KeyRow.EXPIRES, number, read_optional_number),
    "labels": _StoredSetting(
        KeyRow.LABELS,
        lambda labels: {"M": {name: string(label) for name, label in labels.items()}},
        lambda row, _: read_labels(row),
    ),
    "content_days": _StoredSetting(KeyRow.CONTENT_DAYS, number, read_optional_number),
    "response_days": _StoredSetting(KeyRow.RESPONSE_DAYS, number, read_optional_number),
    "team_id": _StoredSetting(KeyRow.TEAM, string, read_optional_text),
    "member_id": _StoredSetting(KeyRow.MEMBER, string, read_optional_text),
    "allowed_ips": _StoredSetting(KeyRow.ALLOWED_IPS, string, read_optional_text),
    "prompt_policy": _StoredSetting(KeyRow.PROMPT_POLICY, string, read_optional_text),
    "guardrails": _StoredSetting(KeyRow.GUARDRAILS, string, read_optional_text),
    "max_cost": _StoredSetting(KeyRow.MAX_COST, lambda amount: number(nano_usd(amount)), _read_usd),
    "session_budget": _StoredSetting(
        KeyRow.SESSION_BUDGET, lambda amount: number(nano_usd(amount)), _read_usd
    ),
    "session_requests": _StoredSetting(KeyRow.SESSION_REQUESTS, number, read_optional_number),
    "quotas": _StoredSetting(KeyRow.QUOTAS, string, read_optional_text),
    "warn_at": _StoredSetting(KeyRow.WARN_AT, number, read_optional_number),
    "answer_cache": _StoredSetting(KeyRow.ANSWER_CACHE, string, read_optional_text),
    "keep_address": _StoredSetting(KeyRow.KEEP_ADDRESS, string, read_optional_text),
    "usage_on": _StoredSetting(KeyRow.USAGE_ON, string, read_optional_text),
}
SETTING_ATTRIBUTES: Final = tuple(stored.attribute for stored in _ROW_SETTINGS.values())


def encode_settings(settings: KeySettings) -> Item:
    """Return the attributes of the settings in both kinds of items, without unset settings."""
    return {
        stored.attribute: stored.encode(value)
        for name, stored in _ROW_SETTINGS.items()
        if (value := getattr(settings, name)) is not None and value != {}
    }


# Settings of a workspace that a secret's item may have, by their attribute in that item.
WORKSPACE_COPIES: Final = {
    SecretItem.ADMISSION: WorkspaceItem.ADMISSION,
    SecretItem.WORKSPACE_RESPONSE_DAYS: WorkspaceItem.RESPONSE_DAYS,
    SecretItem.WORKSPACE_IPS: WorkspaceItem.ALLOWED_IPS,
    SecretItem.WORKSPACE_KEY_DAYS: WorkspaceItem.KEY_DAYS,
    SecretItem.WORKSPACE_USAGE_ON: WorkspaceItem.USAGE_ON,
}


def secret_row(
    digest: str, pointer: Item, settings: KeySettings, workspace: Item | None, *, made_s: int
) -> Item:
    """Return a secret's item, with everything about the key and workspace that authentication
    needs.
    """
    shards = number(1) if workspace is None else workspace[WorkspaceItem.SHARDS]
    row: Item = {
        **secret_key(digest),
        **encode_settings(settings),
        **{name: pointer[name] for name in (KeyRow.KEY, KeyRow.WORKSPACE, KeyRow.ROLE)},
        SecretItem.ENABLED: number(0 if settings.disabled else 1),
        SecretItem.SHARDS: shards,
        SecretItem.MADE: number(made_s),
    }
    found = workspace or {}
    return row | {
        name: found[stated] for name, stated in WORKSPACE_COPIES.items() if stated in found
    }


def key_of_pointer(pointer: Item) -> str:
    """Return the key id of a pointer. The id comes from the sort key, so even a corrupt pointer has
    one.
    """
    return read_text(pointer, AnyItem.SORT).removeprefix("K#")


def secret_hashes(pointer: Item) -> Sequence[str]:
    """Return the hashes of a key's current secret and, after a rotation, of the replaced one."""
    names = (KeyPointerItem.HASH, KeyPointerItem.OLD_HASH)
    return [read_text(pointer, name) for name in names if name in pointer]


def is_gone(pointer: Item) -> bool:
    """Return True if a pointer is the tombstone of a deleted key."""
    return KeyPointerItem.DELETED in pointer


def is_deleting(pointer: Item) -> bool:
    """Return True if a key is being deleted or is deleted."""
    return KeyPointerItem.DELETING in pointer or is_gone(pointer)


@reads_an_item
def made_s(pointer: Item) -> int:
    """Return the Unix second at which a key's current secret was created."""
    rotated_s = read_optional_number(pointer, KeyPointerItem.ROTATED)
    return read_number(pointer, KeyPointerItem.CREATED) if rotated_s is None else rotated_s


@reads_an_item
def revision_of(pointer: Item) -> int:
    """Return the number of changes of a key's settings."""
    return read_optional_number(pointer, KeyPointerItem.REVISION) or 0


@reads_an_item
def state_revision(state: Item) -> int:
    """Return the revision of the settings in a state."""
    return read_optional_number(state, KeyStateItem.REVISION) or 0


@reads_an_item
def read_pending(pointer: Item) -> KeySettings:
    """Return the settings in a pointer that the key's state does not have yet."""
    return json.decode(read_text(pointer, KeyPointerItem.PENDING), type=KeySettings)


def settings_of(key: KeySettings) -> KeySettings:
    """Return only the settings of a key summary or of a new key."""
    return KeySettings(**{name: getattr(key, name) for name in KeySettings.__struct_fields__})


@reads_an_item
def summary_of(pointer: Item, state: Item, now_s: float) -> KeySummary:
    """Return the summary of a key, decoded from its pointer and its state."""
    key = read_key_state(state)
    second = int(now_s)
    in_state = settings_in_state(key)
    remaining = key.remaining_nano_usd(second)
    holds = read_numbers_by_name(state, KeyStateItem.HOLDS)
    in_rows: dict[str, Any] = {
        name: stored.decode(pointer, stored.attribute) for name, stored in _ROW_SETTINGS.items()
    }
    return KeySummary(
        **in_rows,
        **in_state,
        id=read_text(pointer, KeyPointerItem.KEY),
        workspace_id=read_text(pointer, KeyPointerItem.WORKSPACE),
        role=read_role(pointer),
        prefix=read_text(pointer, KeyPointerItem.PREFIX),
        last_four=read_text(pointer, KeyPointerItem.LAST),
        created_s=read_number(pointer, KeyPointerItem.CREATED),
        secret_created_s=made_s(pointer),
        remaining_nano_usd={period: remaining[period] for period in in_state["limits_nano_usd"]},
        resets_s={period: period_ends_s(period, second) for period in in_state["limits_nano_usd"]},
        used_nano_usd=used_nano_usd(key.limits_nano_usd, remaining, holds, second),
        spent_nano_usd=read_number(state, KeyStateItem.SPENT),
        held_nano_usd=sum(holds.values()),
        hold_ids=tuple(sorted(holds)),
        counters=key.counters,
        read_s=second,
        last_used_s=read_optional_number(state, KeyStateItem.LAST_USED),
        last_address=read_optional_text(state, KeyStateItem.ADDRESS),
        last_address_s=read_optional_number(state, KeyStateItem.ADDRESS_SEEN),
        old_secret=_read_old_secret(pointer, state, now_s),
    )


def used_nano_usd(
    limits: Mapping[Period, int],
    remaining: Mapping[Period, int],
    holds: Mapping[str, int],
    second: int,
) -> dict[Period, int]:
    """Return the nano-dollars spent in each period at a given time: limit - remaining - held."""
    names = dict(zip(PERIODS, bucket_names(second), strict=True))
    used = {}
    for index, period in enumerate(PERIODS):
        held = sum(
            amount
            for hold_id, amount in holds.items()
            if bucket_names(created_s(hold_id))[index] == names[period]
        )
        used[period] = limits[period] - remaining[period] - held
    return used


@reads_an_item
def month_used_nano_usd(state: Item, second: int) -> int:
    """Return the nano-dollars that a key has spent in the month of the Unix time `second`."""
    key = read_key_state(state)
    holds = read_numbers_by_name(state, KeyStateItem.HOLDS)
    remaining = key.remaining_nano_usd(second)
    return used_nano_usd(key.limits_nano_usd, remaining, holds, second)["month"]


def _read_old_secret(pointer: Item, state: Item, now_s: float) -> OldSecret | None:
    expires_s = read_optional_number(pointer, KeyPointerItem.OLD_ENDS)
    if expires_s is None or expires_s <= now_s:
        return None
    return OldSecret(
        last_four=read_text(pointer, KeyPointerItem.OLD_LAST),
        expires_s=expires_s,
        last_used_s=read_optional_number(state, KeyStateItem.OLD_LAST_USED),
    )
