"""The writes that change a key: its state under conditions, its rows in transactions."""

from collections.abc import Sequence

from msgspec import json

from tollgate.core.clock import Clock
from tollgate.core.ids import IdSource
from tollgate.stores.aws.attributes import AttributeValue, Item, number, string
from tollgate.stores.aws.aws_json import AwsCaller
from tollgate.stores.aws.decoding import read_number, read_text
from tollgate.stores.aws.expressions import (
    IF_ABSENT,
    IF_PRESENT,
    KEY_APPLIED,
    KEY_DELETE,
    KEY_DISABLE,
    SAME_CHANGE,
    SAME_HASH,
    SAME_SHARDS,
    UNCHANGED,
    set_and_remove,
)
from tollgate.stores.aws.failures import ConditionFailed
from tollgate.stores.aws.items import KeyPointerItem, KeyStateItem, SecretItem, WorkspaceItem
from tollgate.stores.aws.tables import (
    Tables,
    key_pointer_key,
    key_state_key,
    secret_key,
    workspace_key,
)
from tollgate.stores.aws.transactions import transact
from tollgate.stores.keys.rows import (
    SETTING_ATTRIBUTES,
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

    Each raises ConditionFailed or TransactionCancelled where a key is no longer as it was read.
    """

    def __init__(self, client: AwsCaller, tables: Tables, *, ids: IdSource, clock: Clock) -> None:
        self._client = client
        self._tables = tables
        self._ids = ids
        self._clock = clock
        self._states = StateWrites(client, tables.ledger, clock)

    async def change_rows(
        self, pointer: Item, new: KeySettings, *others: object, pending: bool
    ) -> list[str]:
        """Write the settings into a key's rows; return the hashes of its valid secrets.

        `pending` keeps them for the key's state too, which gets them by `apply`. `others` are the
        actions on the rows of names and of the audit log that belong to the change.
        """
        digests = [read_text(pointer, KeyPointerItem.HASH)]
        # An old secret's row is removed some time after its grace.
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
            *others,
        )
        return digests

    async def apply(self, pointer: Item) -> None:
        """Give the state of a key the settings that its pointer keeps for it, once."""
        revision = revision_of(pointer)
        state_key = key_state_key(read_text(pointer, KeyPointerItem.KEY))
        await self._states.apply(state_key, read_pending(pointer), revision)
        try:
            await self._client.call(
                "UpdateItem",
                {
                    "TableName": self._tables.core,
                    "Key": _key_of(pointer),
                    "UpdateExpression": KEY_APPLIED.update,
                    "ConditionExpression": KEY_APPLIED.condition,
                    "ExpressionAttributeValues": {":rev": number(revision)},
                },
            )
        except ConditionFailed:
            return

    def rotation(self, pointer: Item, secret_end: tuple[str, str], ends_s: int) -> list[object]:
        """Return the actions that give a key another secret.

        `secret_end` is the new secret's hash and last characters. The row of an older secret is
        deleted.
        """
        digest, last = secret_end
        changed: Item = {
            KeyPointerItem.HASH: string(digest),
            KeyPointerItem.LAST: string(last),
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

    async def switch_off(self, key_id: str) -> None:
        """Stop a state from admitting anything more; a deleted state is left alone."""
        try:
            await self._client.call(
                "UpdateItem",
                {
                    "TableName": self._tables.ledger,
                    "Key": key_state_key(key_id),
                    "UpdateExpression": KEY_DISABLE.update,
                    "ConditionExpression": KEY_DISABLE.condition,
                    "ExpressionAttributeNames": {"#on": KeyStateItem.ENABLED},
                    "ExpressionAttributeValues": {":zero": number(0)},
                },
            )
        except ConditionFailed:
            return

    async def delete_secrets(self, pointer: Item, *others: object) -> Sequence[str]:
        """Mark a key as deleted and delete the rows of its secrets; return the secrets' hashes.

        `others` are the actions on rows of the audit log that belong to the deletion.
        """
        digests = secret_hashes(pointer)
        deleting: Item = {KeyPointerItem.DELETING: number(int(self._clock.now_s()))}
        await self.transact(
            self._update_pointer(pointer, deleting),
            *(
                {"Delete": {"TableName": self._tables.core, "Key": secret_key(digest)}}
                for digest in digests
            ),
            *others,
        )
        return digests

    async def leave_tombstone(self, pointer: Item, state: Item, *release: object) -> None:
        """Delete a state without holds; the pointer keeps what the key has spent.

        `release` are the actions that free the key's name.
        """
        second = int(self._clock.now_s())
        gone: Item = {
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
                gone,
                same={KeyPointerItem.HASH: pointer[KeyPointerItem.HASH]},
                condition=SAME_HASH,
            ),
            *release,
        )

    async def transact(self, *actions: object) -> None:
        """Send the actions as one transaction: all of them are applied, or none."""
        await transact(self._client, self._ids, actions)

    def _update_pointer(self, pointer: Item, values: Item, absent: Sequence[str] = ()) -> object:
        """Return the action that updates a pointer which is still as it was read."""
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


def same_shards(tables: Tables, workspace_id: str, workspace: Item | None) -> object:
    """Return the check that a workspace still has the shards it was read with, or is absent."""
    check: dict[str, object] = {"TableName": tables.core, "Key": workspace_key(workspace_id)}
    if workspace is None:
        check["ConditionExpression"] = IF_ABSENT
    else:
        check["ConditionExpression"] = SAME_SHARDS
        check["ExpressionAttributeValues"] = {":n": workspace[WorkspaceItem.SHARDS]}
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
    """Return the action that sets and removes attributes of an existing row.

    `same` are values that the condition compares with.
    """
    same = same or {}
    write = set_and_remove(list(values), absent, condition)
    named = [KeyPointerItem.HASH] if KeyPointerItem.HASH in same else []
    names = {f"#{name}": name for name in (*values, *absent, *named)}
    sent: dict[str, AttributeValue] = {f":{name}": value for name, value in values.items()}
    sent |= {f":same{name}": value for name, value in same.items()}
    return {
        "Update": {
            "TableName": table,
            "Key": key,
            "UpdateExpression": write.update,
            "ConditionExpression": write.condition,
            "ExpressionAttributeNames": names,
            "ExpressionAttributeValues": sent,
        }
    }
