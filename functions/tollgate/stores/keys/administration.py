"""Administers keys in DynamoDB: creates, shows, changes, rotates and deletes them.

One transaction on the core table writes a change and its audit log entry. Afterwards, plain
conditional updates change the key's state, which every new hold reads and changes; a transaction on
the state would make concurrent holds fail. Until the state has the new settings, they are also
stored in the key's pointer. An interrupted change is completed by the key's next change or by
workspace maintenance.
"""

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from tollgate.aws.attributes import Item, number, string
from tollgate.aws.aws_json import AwsCaller
from tollgate.aws.failures import StoreUnavailable, TransactionCancelled, refusing_when_unavailable
from tollgate.core.clock import Clock
from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.ids import IdSource, is_id
from tollgate.core.pages import Page
from tollgate.core.principal import Principal
from tollgate.core.records.audit import Actor
from tollgate.stores.aws.decoding import decode_items, read_optional_text, read_text
from tollgate.stores.aws.holds import hold_count
from tollgate.stores.aws.items import AnyItem, KeyPointerItem
from tollgate.stores.aws.tables import (
    Tables,
    get_item,
    get_items,
    key_pointer_key,
    key_state_key,
    query_rows,
    workspace_key,
)
from tollgate.stores.aws.transactions import put_if_absent
from tollgate.stores.keys.lookup import DynamoKeyDirectory
from tollgate.stores.keys.names import KeyNames
from tollgate.stores.keys.rows import (
    encode_settings,
    is_deleting,
    is_gone,
    key_of_pointer,
    made_s,
    read_pending,
    secret_row,
    settings_of,
    summary_of,
)
from tollgate.stores.keys.secret import LAST_LENGTH, new_secret, secret_hash
from tollgate.stores.keys.state_items import changes_state, new_key_state
from tollgate.stores.keys.writes import KeyWrites, same_workspace
from tollgate.stores.people.level_items import join_levels
from tollgate.stores.ports.administration import KEYS_PAGE_MAX, CreatedKey, KeySummary, NewKey
from tollgate.stores.records.audit_log import AuditWriter
from tollgate.stores.rules.audit_entries import AuditedChange, SecretChange
from tollgate.stores.rules.key_names import KeyName
from tollgate.stores.rules.key_settings import KeySettings

# Maximum number of attempts while other writers change the key or its workspace.
_ROUNDS_MAX: Final = 5


class DynamoKeyStore:
    """Implements `stores.ports.administration.KeyStore`; removes changed keys from `directory`."""

    def __init__(
        self,
        directory: DynamoKeyDirectory,
        client: AwsCaller,
        tables: Tables,
        *,
        ids: IdSource,
        clock: Clock,
        prefix: str,
    ) -> None:
        self._directory = directory
        self._client = client
        self._tables = tables
        self._ids = ids
        self._clock = clock
        self._prefix = prefix
        self._writes = KeyWrites(client, tables, ids=ids, clock=clock)
        self._names = KeyNames(client, tables)
        self._entries = AuditWriter(tables.core, ids=ids, clock=clock)

    async def authenticate(self, secret: str) -> Principal:
        return await self._directory.authenticate(secret)

    async def find_key(self, workspace_id: str, key_id: str) -> Principal:
        return await self._directory.find_key(workspace_id, key_id)

    async def note_use(self, principal: Principal) -> None:
        await self._directory.note_use(principal)

    async def note_address(self, principal: Principal, address: str | None) -> None:
        await self._directory.note_address(principal, address)

    async def create(self, new: NewKey, *, by: Actor) -> CreatedKey:
        """Create a key's name, secret, pointer and state in one transaction."""
        key_id = self._ids.new_id()
        secret = new_secret(self._prefix, self._ids.random_bytes)
        pointer: Item = {
            **key_pointer_key(new.workspace_id, key_id),
            **encode_settings(new),
            KeyPointerItem.KEY: string(key_id),
            KeyPointerItem.WORKSPACE: string(new.workspace_id),
            KeyPointerItem.ROLE: string(new.role),
            KeyPointerItem.CREATED: number(int(self._clock.now_s())),
            KeyPointerItem.PREFIX: string(self._prefix),
            KeyPointerItem.HASH: string(secret_hash(secret)),
            KeyPointerItem.LAST: string(secret[-LAST_LENGTH:]),
        }
        state = new_key_state(key_id, new.workspace_id, new)
        with refusing_when_unavailable():
            for _ in range(_ROUNDS_MAX):
                workspace = await self._workspace(new.workspace_id)
                row = secret_row(
                    secret_hash(secret), pointer, new, workspace, made_s=made_s(pointer)
                )
                claim = await self._names.claim(new.workspace_id, new.label, key_id)
                joins = await self._joins(new.workspace_id, new.team_id, new.member_id)
                try:
                    await self._writes.transact(
                        same_workspace(self._tables, new.workspace_id, workspace),
                        put_if_absent(self._tables.core, row),
                        put_if_absent(self._tables.core, pointer),
                        put_if_absent(self._tables.ledger, state),
                        claim,
                        *joins,
                        *self._entry(by, "key.create", pointer, new.label, after=new),
                    )
                except TransactionCancelled:
                    continue
                self._directory.forget(secret_hash(secret))
                return CreatedKey(
                    secret=secret, summary=summary_of(pointer, state, self._clock.now_s())
                )
            raise StoreUnavailable("the workspace keeps changing", maybe_applied=False)

    async def names(self, workspace_id: str) -> tuple[KeyName, ...]:
        with refusing_when_unavailable():
            return await self._names.read(workspace_id)

    async def get(self, workspace_id: str, key_id: str) -> KeySummary | None:
        with refusing_when_unavailable():
            rows = await self._rows(workspace_id, key_id)
            return None if rows is None else summary_of(*rows, self._clock.now_s())

    async def list(
        self, workspace_id: str, *, after: str | None = None, limit: int = KEYS_PAGE_MAX
    ) -> Page[KeySummary]:
        if after is not None and not is_id(after):
            raise RequestError(
                ErrorCode.INVALID_REQUEST, "The cursor is not valid.", param="cursor"
            )
        with refusing_when_unavailable():
            pointers, end = await self._pointers(workspace_id, after, limit)
            states = await get_items(
                self._client,
                self._tables.ledger,
                [key_state_key(key_of_pointer(pointer)) for pointer in pointers],
            )
        state_of = {
            read_text(state, AnyItem.PARTITION).removeprefix("K#"): state for state in states
        }
        now_s = self._clock.now_s()
        # A key without a state was deleted after its pointer had been read.
        summaries, unreadable = decode_items(
            lambda pointer: summary_of(pointer, state_of[key_of_pointer(pointer)], now_s),
            (pointer for pointer in pointers if key_of_pointer(pointer) in state_of),
        )
        return Page(found=tuple(summaries), next=end, unreadable=tuple(unreadable))

    async def change(
        self,
        workspace_id: str,
        key_id: str,
        edit: Callable[[KeySettings], KeySettings],
        *,
        by: Actor,
    ) -> KeySummary | None:
        with refusing_when_unavailable():
            for _ in range(_ROUNDS_MAX):
                rows = await self._rows(workspace_id, key_id)
                if rows is None or is_deleting(rows[0]):
                    return None
                pointer, state = rows
                if KeyPointerItem.PENDING in pointer:
                    await self._writes.apply(pointer)
                    continue
                old = settings_of(summary_of(pointer, state, self._clock.now_s()))
                new = edit(old)
                if new != old:
                    try:
                        await self._decide(pointer, old, new, by)
                    except TransactionCancelled:
                        continue
                    await self._complete(workspace_id, key_id)
                return await self.get(workspace_id, key_id)
            raise StoreUnavailable(f"key {key_id} keeps changing", maybe_applied=False)

    async def rotate(
        self, workspace_id: str, key_id: str, *, grace_s: int, by: Actor
    ) -> CreatedKey | None:
        secret = new_secret(self._prefix, self._ids.random_bytes)
        digest = secret_hash(secret)
        with refusing_when_unavailable():
            for _ in range(_ROUNDS_MAX):
                rows = await self._rows(workspace_id, key_id)
                if rows is None or is_deleting(rows[0]):
                    return None
                pointer, state = rows
                key = summary_of(pointer, state, self._clock.now_s())
                workspace = await self._workspace(workspace_id)
                now_s = int(self._clock.now_s())
                ends_s = now_s + grace_s
                last = secret[-LAST_LENGTH:]
                actions = self._writes.rotation(pointer, (digest, last), ends_s)
                settings = settings_of(key)
                if KeyPointerItem.PENDING in pointer:
                    settings = read_pending(pointer)
                row = secret_row(digest, pointer, settings, workspace, made_s=now_s)
                entry = self._entry(
                    by,
                    "key.rotate",
                    pointer,
                    key.label,
                    before=SecretChange(secret=f"…{key.last_four}"),
                    after=SecretChange(secret=f"…{last}", old_secret_expires_s=ends_s),
                )
                try:
                    await self._writes.transact(
                        same_workspace(self._tables, workspace_id, workspace),
                        put_if_absent(self._tables.core, row),
                        *actions,
                        *entry,
                    )
                except TransactionCancelled:
                    continue
                self._directory.forget(read_text(pointer, KeyPointerItem.HASH), digest)
                summary = await self.get(workspace_id, key_id)
                return None if summary is None else CreatedKey(secret=secret, summary=summary)
            raise StoreUnavailable(f"key {key_id} keeps changing", maybe_applied=False)

    async def delete(self, workspace_id: str, key_id: str, *, by: Actor) -> bool | None:
        """Delete a key, leaving its pointer as a tombstone with the key's spending.

        Returns False while requests in flight hold money; the key is already refused, and the
        caller repeats the call later. Returns None if the key does not exist.
        """
        if not is_id(key_id):
            return None
        with refusing_when_unavailable():
            for _ in range(_ROUNDS_MAX):
                pointer = await get_item(
                    self._client, self._tables.core, key_pointer_key(workspace_id, key_id)
                )
                if pointer is None:
                    return None
                if is_gone(pointer):
                    return True
                if not is_deleting(pointer):
                    label = read_optional_text(pointer, KeyPointerItem.LABEL)
                    entry = self._entry(by, "key.delete", pointer, label)
                    try:
                        digests = await self._writes.delete_secrets(pointer, *entry)
                    except TransactionCancelled:
                        continue
                    self._directory.forget(*digests)
                await self._writes.switch_off(key_id)
                state = await get_item(self._client, self._tables.ledger, key_state_key(key_id))
                if state is None:
                    continue
                if hold_count(state) > 0:
                    return False
                try:
                    release = await self._names.release(pointer)
                    await self._writes.leave_tombstone(pointer, state, *release)
                except TransactionCancelled:
                    continue
                return True
            raise StoreUnavailable(f"key {key_id} keeps changing", maybe_applied=False)

    async def _complete(self, workspace_id: str, key_id: str) -> None:
        """Complete a change whose settings are not yet in the key's state."""
        pointer = await get_item(
            self._client, self._tables.core, key_pointer_key(workspace_id, key_id)
        )
        if pointer is not None and KeyPointerItem.PENDING in pointer:
            await self._writes.apply(pointer)

    async def _decide(self, pointer: Item, old: KeySettings, new: KeySettings, by: Actor) -> None:
        """Write a change with its audit log entry.

        Raises RequestError if the new name is taken, or the new team or member does not exist.
        """
        workspace_id = read_text(pointer, KeyPointerItem.WORKSPACE)
        renaming: list[object] = []
        if new.label != old.label:
            claim = await self._names.claim(workspace_id, new.label, key_of_pointer(pointer))
            renaming = [claim, *await self._names.release(pointer)]
        joins = await self._joins(
            workspace_id,
            new.team_id if new.team_id != old.team_id else None,
            new.member_id if new.member_id != old.member_id else None,
        )
        entry = self._entry(by, "key.change", pointer, new.label, before=old, after=new)
        pending = changes_state(old, new)
        digests = await self._writes.change_rows(
            pointer, new, *renaming, *joins, *entry, pending=pending
        )
        self._directory.forget(*digests)

    async def _joins(
        self, workspace_id: str, team_id: str | None, member_id: str | None
    ) -> Sequence[object]:
        return await join_levels(
            self._client, self._tables.core, workspace_id, team_id=team_id, member_id=member_id
        )

    def _entry(
        self,
        by: Actor,
        action: str,
        pointer: Item,
        label: str | None,
        *,
        before: Struct | None = None,
        after: Struct | None = None,
    ) -> Sequence[object]:
        change = AuditedChange(
            action=action,
            target=key_of_pointer(pointer),
            workspace_id=read_text(pointer, KeyPointerItem.WORKSPACE),
            target_name=label,
            before=before,
            after=after,
        )
        return self._entries.puts(change, by)

    async def _rows(self, workspace_id: str, key_id: str) -> tuple[Item, Item] | None:
        """Return a key's pointer and state, or None if the key does not exist."""
        if not is_id(key_id):
            return None
        pointer = await get_item(
            self._client, self._tables.core, key_pointer_key(workspace_id, key_id)
        )
        if pointer is None or is_gone(pointer):
            return None
        state = await get_item(self._client, self._tables.ledger, key_state_key(key_id))
        return None if state is None else (pointer, state)

    async def _workspace(self, workspace_id: str) -> Item | None:
        return await get_item(self._client, self._tables.core, workspace_key(workspace_id))

    async def _pointers(
        self, workspace_id: str, after: str | None, limit: int
    ) -> tuple[Sequence[Item], str | None]:
        """Return the pointers of existing keys, and the last pointer's id if there may be more."""
        pointers: list[Item] = []
        start = None if after is None else key_pointer_key(workspace_id, after)
        while len(pointers) < limit:
            page, start = await query_rows(
                self._client,
                self._tables.core,
                f"W#{workspace_id}",
                "K#",
                after=start,
                limit=limit,
            )
            pointers += [pointer for pointer in page if not is_gone(pointer)]
            if start is None:
                break
        more = start is not None or len(pointers) > limit
        pointers = pointers[:limit]
        return pointers, key_of_pointer(pointers[-1]) if more else None
