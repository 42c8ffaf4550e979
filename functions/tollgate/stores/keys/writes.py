"""Writes that change a key: conditional updates of its state, transactions on its other items."""

from collections.abc import Sequence

from msgspec import json

from tollgate.aws.attributes import AttributeValue, Item, number, string
from tollgate.aws.aws_json import AwsCaller
from tollgate.core.clock import Clock
from tollgate.core.ids import IdSource
from tollgate.stores.aws.decoding import read_number, read_text
from tollgate.stores.aws.expressions import (
    IF_ABSENT,
    IF_PRESENT,
    KEY_APPLIED,
    KEY_DELETE,
    KEY_DISABLE,
    SAME_CHANGE,
    SAME_HASH,
    UNCHANGED,
    same_values,
    set_and_remove,
)
from tollgate.stores.aws.items import KeyPointerItem, KeyStateItem, SecretItem, WorkspaceItem
from tollgate.stores.aws.tables import (
    Tables,
    key_pointer_key,
    key_state_key,
    secret_key,
    try_update,
    workspace_key,
)
from tollgate.stores.aws.transactions import transact
from tollgate.stores.keys.rows import (
    SETTING_ATTRIBUTES,
    WORKSPACE_COPIES,
    encode_settings,
    month_used_nano_usd,
    read_pending,
    revision_of,
    secret_hashes,
)
from tollgate.stores.keys.state_writes import StateWrites
from tollgate.stores.rules.key_settings import KeySettings
from tollgate.stores.rules.periods import bucket_names


class KeyWrites:
    """Writes to existing keys.

    Each write raises ConditionFailed or TransactionCancelled if the key has changed since it was
    read.
    """

    def __init__(self, client: AwsCaller, tables: Tables, *, ids: IdSource, clock: Clock) -> None:
        self._client = client
        self._tables = tables
        self._ids = ids
        self._clock = clock
        self._states = StateWrites(client, tables.ledger, clock)

    async def change_rows(
        self, pointer: Item, new: KeySettings, *other_actions: object, pending: bool
    ) -> list[str]:
        """Write settings to a key's items; return the hashes of its valid secrets.

        If `pending`, the pointer also stores the settings until `apply` writes them to the key's
        state. `other_actions` write the key's name and the audit log in the same transaction.
        """
        digests = [read_text(pointer, KeyPointerItem.HASH)]
        # DynamoDB deletes the item of a replaced secret some time after the grace period.
        if (
            KeyPointerItem.OLD_ENDS in pointer
            and read_number(pointer, KeyPointerItem.OLD_ENDS) > self._clock.now_s()
        ):
            digests.append(read_text(pointer, KeyPointerItem.OLD_HASH))
        content = encode_settings(new)
        absent = [name for name in SETTING_ATTRIBUTES if name not in content]
        on = number(0 if new.disabled else 1)
        revision: Item = {KeyPointerItem.REVISION: number(revision_of(pointer) + 1)}
        if pending:
            revision[KeyPointerItem.PENDING] = string(json.encode(new).decode())
        await self.transact(
            self._update_pointer(pointer, {**content, **revision}, absent=absent),
            *(
                _update(
                    self._tables.core,
                    secret_key(digest),
                    {**content, SecretItem.ENABLED: on},
                    absent=absent,
                )
                for digest in digests
            ),
            *other_actions,
        )
        return digests

    async def apply(self, pointer: Item) -> None:
        """Write the pending settings in a pointer to the key's state, once."""
        revision = revision_of(pointer)
        state_key = key_state_key(read_text(pointer, KeyPointerItem.KEY))
        await self._states.apply(state_key, read_pending(pointer), revision)
        values = {":rev": number(revision)}
        applied = KEY_APPLIED.build(self._tables.core, _key_of(pointer), values)
        await try_update(self._client, applied)

    def rotation(self, pointer: Item, secret_end: tuple[str, str], ends_s: int) -> list[object]:
        """Return the actions that give a key another secret.

        `secret_end` is the new secret's hash and last characters. A secret that an earlier rotation
        replaced is deleted.
        """
        digest, last = secret_end
        changed: Item = {
            KeyPointerItem.HASH: string(digest),
            KeyPointerItem.LAST: string(last),
            KeyPointerItem.ROTATED: number(int(self._clock.now_s())),
            KeyPointerItem.OLD_HASH: pointer[KeyPointerItem.HASH],
            KeyPointerItem.OLD_LAST: pointer[KeyPointerItem.LAST],
            KeyPointerItem.OLD_ENDS: number(ends_s),
        }
        table, old_row = self._tables.core, secret_key(read_text(pointer, KeyPointerItem.HASH))
        actions: list[object] = [
            self._update_pointer(pointer, changed),
            _update(
                table,
                old_row,
                {SecretItem.GRACE_ENDS: number(ends_s), SecretItem.DELETE_AT: number(ends_s)},
            ),
        ]
        if KeyPointerItem.OLD_HASH in pointer:
            older = secret_key(read_text(pointer, KeyPointerItem.OLD_HASH))
            actions.append({"Delete": {"TableName": table, "Key": older}})
        return actions

    async def note_reminder(self, pointer: Item, made_s: int, *other_actions: object) -> None:
        """Record that the rotation of the secret from the Unix second `made_s` was announced."""
        noted: Item = {KeyPointerItem.REMINDED: number(made_s)}
        await self.transact(self._update_pointer(pointer, noted), *other_actions)

    async def switch_off(self, key_id: str) -> None:
        """Change a key's state so that it admits no further requests; ignore a deleted state."""
        names, values = {"#on": KeyStateItem.ENABLED}, {":zero": number(0)}
        disabled = KEY_DISABLE.build(self._tables.ledger, key_state_key(key_id), values, names)
        await try_update(self._client, disabled)

    async def delete_secrets(self, pointer: Item, *other_actions: object) -> Sequence[str]:
        """Mark a key as being deleted and delete its secrets' items; return the secrets' hashes.

        `other_actions` write the audit log in the same transaction.
        """
        digests = secret_hashes(pointer)
        deleting: Item = {KeyPointerItem.DELETING: number(int(self._clock.now_s()))}
        await self.transact(
            self._update_pointer(pointer, deleting),
            *(
                {"Delete": {"TableName": self._tables.core, "Key": secret_key(digest)}}
                for digest in digests
            ),
            *other_actions,
        )
        return digests

    async def leave_tombstone(self, pointer: Item, state: Item, *release: object) -> None:
        """Delete a state without holds, after storing the key's spending; `release` frees the
        name.
        """
        second = int(self._clock.now_s())
        tombstone: Item = {
            KeyPointerItem.DELETED: number(second),
            KeyPointerItem.SPENT: state[KeyStateItem.SPENT],
            KeyPointerItem.MONTH_SPENT: number(month_used_nano_usd(state, second)),
            KeyPointerItem.MONTH: string(bucket_names(second)[2]),
        }
        await self.transact(
            {
                "Delete": {
                    "TableName": self._tables.ledger,
                    "Key": key_state_key(read_text(pointer, KeyPointerItem.KEY)),
                    "ConditionExpression": KEY_DELETE,
                    "ExpressionAttributeNames": {"#on": KeyStateItem.ENABLED},
                    "ExpressionAttributeValues": {
                        ":zero": number(0),
                        ":us": state[KeyStateItem.SPENT],
                    },
                }
            },
            _update(
                self._tables.core,
                _key_of(pointer),
                tombstone,
                same={KeyPointerItem.HASH: pointer[KeyPointerItem.HASH]},
                condition=SAME_HASH,
            ),
            *release,
        )

    async def transact(self, *actions: object) -> None:
        """Send the actions as one transaction: all are applied, or none."""
        await transact(self._client, self._ids, actions)

    def _update_pointer(self, pointer: Item, values: Item, absent: Sequence[str] = ()) -> object:
        """Return the action that updates a pointer if the key is unchanged since the read."""
        same = {KeyPointerItem.HASH: pointer[KeyPointerItem.HASH]}
        condition = UNCHANGED
        if KeyPointerItem.REVISION in pointer:
            same[KeyPointerItem.REVISION] = pointer[KeyPointerItem.REVISION]
            condition = SAME_CHANGE
        return _update(
            self._tables.core,
            _key_of(pointer),
            values,
            same=same,
            absent=absent,
            condition=condition,
        )


def same_workspace(tables: Tables, workspace_id: str, workspace: Item | None) -> object:
    """Return the check that the settings that secrets copy, or their absence, are unchanged.

    If they change while a key is created, the copying may have missed the key's new item.
    """
    check: dict[str, object] = {"TableName": tables.core, "Key": workspace_key(workspace_id)}
    if workspace is None:
        check["ConditionExpression"] = IF_ABSENT
    else:
        names = (WorkspaceItem.SHARDS, *WORKSPACE_COPIES.values())
        present = [name for name in names if name in workspace]
        absent = [name for name in names if name not in workspace]
        check["ConditionExpression"] = same_values(present, absent)
        check["ExpressionAttributeNames"] = {f"#{name}": name for name in names}
        check["ExpressionAttributeValues"] = {f":was_{name}": workspace[name] for name in present}
    return {"ConditionCheck": check}


def _key_of(pointer: Item) -> Item:
    return key_pointer_key(
        read_text(pointer, KeyPointerItem.WORKSPACE), read_text(pointer, KeyPointerItem.KEY)
    )


def _update(
    table: str,
    key: Item,
    values: Item,
    *,
    same: Item | None = None,
    absent: Sequence[str] = (),
    condition: str = IF_PRESENT,
) -> object:
    """Return the action that updates an existing item, on condition that it still has the values
    `same`.
    """
    same = same or {}
    write = set_and_remove(list(values), absent, condition)
    named = [KeyPointerItem.HASH] if KeyPointerItem.HASH in same else []
    names = {f"#{name}": name for name in (*values, *absent, *named)}
    expression_values: dict[str, AttributeValue] = {
        f":{name}": value for name, value in values.items()
    }
    expression_values |= {f":same{name}": value for name, value in same.items()}
    return {"Update": write.build(table, key, expression_values, names)}
