"""Encodes workspaces as items in the core table, and their changes for the audit log."""

from typing import Final, cast

from msgspec import Struct

from tollgate.aws.attributes import AttributeValue, Item, number, string
from tollgate.core.principal import Admission, UsageOn
from tollgate.stores.aws.decoding import (
    read_number,
    read_optional_number,
    read_optional_text,
    read_text,
    reads_an_item,
)
from tollgate.stores.aws.expressions import ConditionalUpdate, same_values, set_and_remove
from tollgate.stores.aws.items import AnyItem, WorkspaceItem
from tollgate.stores.ports.administration import Workspace, WorkspaceSettings
from tollgate.stores.rules.account import LOCKED, OPEN, PAUSED
from tollgate.stores.rules.audit_entries import LockChange

_SETTINGS: Final = (
    WorkspaceItem.ADMISSION,
    WorkspaceItem.BUDGET,
    WorkspaceItem.PAUSES,
    WorkspaceItem.RESPONSE_DAYS,
    WorkspaceItem.FILE_DAYS,
    WorkspaceItem.ALLOWED_IPS,
    WorkspaceItem.KEY_DAYS,
    WorkspaceItem.USAGE_ON,
)


class ShardsChange(Struct, frozen=True, kw_only=True):
    """A number of wallet shards, as shown in the audit log."""

    shards: int


def encode_workspace(settings: WorkspaceSettings) -> Item:
    """Return the attributes for the settings that have a value."""
    values: dict[str, AttributeValue | None] = {
        WorkspaceItem.ADMISSION: None if settings.admission is None else string(settings.admission),
        WorkspaceItem.BUDGET: None
        if settings.budget_nano_usd is None
        else number(settings.budget_nano_usd),
        WorkspaceItem.PAUSES: number(1) if settings.pause_at_budget else None,
        WorkspaceItem.RESPONSE_DAYS: None
        if settings.response_days is None
        else number(settings.response_days),
        WorkspaceItem.FILE_DAYS: None if settings.file_days is None else number(settings.file_days),
        WorkspaceItem.ALLOWED_IPS: None
        if settings.allowed_ips is None
        else string(settings.allowed_ips),
        WorkspaceItem.KEY_DAYS: None if settings.key_days is None else number(settings.key_days),
        WorkspaceItem.USAGE_ON: None if settings.usage_on is None else string(settings.usage_on),
    }
    return {name: value for name, value in values.items() if value is not None}


def replace_settings(
    old: WorkspaceSettings, new: WorkspaceSettings
) -> tuple[ConditionalUpdate, Item, dict[str, str]]:
    """Return an update with its values and names; it replaces settings if they still
    equal `old`.
    """
    before, after = encode_workspace(old), encode_workspace(new)
    lacking = [name for name in _SETTINGS if name not in before]
    removed = [name for name in before if name not in after]
    write = set_and_remove(list(after), removed, same_values(list(before), lacking))
    values = {f":{name}": value for name, value in after.items()}
    values |= {f":was_{name}": value for name, value in before.items()}
    return write, values, {f"#{name}": name for name in _SETTINGS}


def lock_change(lock: int) -> LockChange:
    """Return a stored lock in the form in which the audit log shows it."""
    return LockChange(locked=lock == LOCKED, paused=lock == PAUSED)


def lock_of(workspace: Workspace) -> int:
    """Return the number that is stored for a workspace's lock."""
    return LOCKED if workspace.locked else PAUSED if workspace.paused else OPEN


@reads_an_item
def read_workspace(item: Item) -> Workspace:
    """Decode a workspace."""
    lock = read_number(item, WorkspaceItem.LOCK)
    return Workspace(
        id=read_text(item, AnyItem.PARTITION).removeprefix("W#"),
        shards=read_number(item, WorkspaceItem.SHARDS),
        created_s=read_number(item, WorkspaceItem.CREATED),
        locked=lock == LOCKED,
        paused=lock == PAUSED,
        credit_limit_nano_usd=read_optional_number(item, WorkspaceItem.CREDIT_LIMIT) or 0,
        settings=WorkspaceSettings(
            # Only `encode_workspace` writes these attributes, so their types are known.
            admission=cast(Admission | None, read_optional_text(item, WorkspaceItem.ADMISSION)),
            budget_nano_usd=read_optional_number(item, WorkspaceItem.BUDGET),
            pause_at_budget=WorkspaceItem.PAUSES in item,
            response_days=read_optional_number(item, WorkspaceItem.RESPONSE_DAYS),
            file_days=read_optional_number(item, WorkspaceItem.FILE_DAYS),
            allowed_ips=read_optional_text(item, WorkspaceItem.ALLOWED_IPS),
            key_days=read_optional_number(item, WorkspaceItem.KEY_DAYS),
            usage_on=cast(UsageOn | None, read_optional_text(item, WorkspaceItem.USAGE_ON)),
        ),
    )
