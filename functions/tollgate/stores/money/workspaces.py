"""Workspaces in DynamoDB: their shards, locks and settings.

Requests do not read the workspace's item. Its lock is therefore copied to each shard, and its
number of shards, admission, response days, networks and maximum key age are copied to each secret's
item.
"""

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from tollgate.aws.attributes import Item, number, string
from tollgate.aws.aws_json import AwsCaller
from tollgate.aws.failures import (
    ConditionFailed,
    StoreUnavailable,
    TransactionCancelled,
    refusing_when_unavailable,
)
from tollgate.core.clock import Clock
from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.ids import IdSource
from tollgate.core.pages import Page
from tollgate.core.records.audit import SWEEPER, Actor
from tollgate.stores.aws.decoding import (
    decode_items,
    read_number,
    read_optional_number,
    read_optional_text,
    read_text,
)
from tollgate.stores.aws.expressions import (
    SECRET_COPY_ADMISSION,
    SECRET_COPY_NO_ADMISSION,
    WORKSPACE_COPIED,
    WORKSPACE_GROW,
    WORKSPACE_LOCK,
    ConditionalUpdate,
)
from tollgate.stores.aws.items import AnyItem, WorkspaceItem
from tollgate.stores.aws.row_ranges import all_rows
from tollgate.stores.aws.tables import (
    WORKSPACE_NAMES,
    Tables,
    get_item,
    get_items,
    is_workspace_id,
    query_rows,
    secret_key,
    workspace_key,
    workspace_name_key,
)
from tollgate.stores.aws.transactions import put_if_absent, transact
from tollgate.stores.keys.rows import is_gone, secret_hashes
from tollgate.stores.money.wallets import Wallets
from tollgate.stores.money.workspace_items import (
    ShardsChange,
    encode_workspace,
    lock_change,
    lock_of,
    read_workspace,
    replace_settings,
)
from tollgate.stores.ports.administration import WORKSPACES_PAGE_MAX, Workspace, WorkspaceSettings
from tollgate.stores.records.audit_log import AuditWriter
from tollgate.stores.rules.account import LOCKED, OPEN, PAUSED
from tollgate.stores.rules.audit_entries import AuditedChange
from tollgate.stores.rules.slices import SLICES_MAX, grown_count

_ROUNDS_MAX: Final = 5


class Workspaces:
    """Implements `WorkspaceStore`, with further methods for WorkspaceMaintenance."""

    def __init__(
        self, client: AwsCaller, tables: Tables, wallets: Wallets, *, ids: IdSource, clock: Clock
    ) -> None:
        self._client = client
        self._tables = tables
        self._wallets = wallets
        self._ids = ids
        self._clock = clock
        self._entries = AuditWriter(tables.core, ids=ids, clock=clock)

    async def create(
        self, workspace_id: str, settings: WorkspaceSettings, *, by: Actor
    ) -> Workspace | None:
        """Create a workspace; return None if its id is taken."""
        with refusing_when_unavailable():
            created = await self._create(workspace_id, settings, shards=1, by=by)
            return await self.read(workspace_id) if created else None

    async def ensure(self, workspace_id: str, *, by: Actor, shards: int = 1) -> Workspace:
        """Return a workspace; create a missing workspace with this number of shards."""
        with refusing_when_unavailable():
            for _ in range(_ROUNDS_MAX):
                workspace = await self.read(workspace_id)
                if workspace is not None:
                    return workspace
                await self._create(workspace_id, WorkspaceSettings(), shards=shards, by=by)
            raise StoreUnavailable(
                "the workspace cannot be read after its creation", maybe_applied=True
            )

    async def get(self, workspace_id: str) -> Workspace | None:
        """Return a workspace, or None."""
        with refusing_when_unavailable():
            return await self.read(workspace_id)

    async def list(
        self, *, after: str | None = None, limit: int = WORKSPACES_PAGE_MAX
    ) -> Page[Workspace]:
        """Return a page of workspaces, sorted by id."""
        with refusing_when_unavailable():
            names, end = await query_rows(
                self._client,
                self._tables.core,
                WORKSPACE_NAMES,
                "W#",
                after=None if after is None else workspace_name_key(after),
                limit=limit,
            )
            keys = [
                workspace_key(read_text(name, AnyItem.SORT).removeprefix("W#")) for name in names
            ]
            items = await get_items(self._client, self._tables.core, keys)
        workspaces, unreadable = decode_items(read_workspace, items)
        return Page(
            found=tuple(sorted(workspaces, key=lambda workspace: workspace.id)),
            next=None if end is None else read_text(end, AnyItem.SORT).removeprefix("W#"),
            unreadable=tuple(unreadable),
        )

    async def change(
        self,
        workspace_id: str,
        edit: Callable[[WorkspaceSettings], WorkspaceSettings],
        *,
        by: Actor,
    ) -> Workspace | None:
        """Replace the settings with the result of `edit`, and copy them to the items of secrets."""
        with refusing_when_unavailable():
            for _ in range(_ROUNDS_MAX):
                workspace = await self.read(workspace_id)
                if workspace is None:
                    return None
                old, new = workspace.settings, edit(workspace.settings)
                if new != old:
                    write, values, names = replace_settings(old, new)
                    entry = self._entry(by, "workspace.change", workspace_id, before=old, after=new)
                    try:
                        await self._decide(workspace_id, write, values, entry, names=names)
                    except TransactionCancelled:
                        continue
                await self.copy_to_secrets(workspace_id)
                return await self.read(workspace_id)
            raise StoreUnavailable(f"workspace {workspace_id} keeps changing", maybe_applied=False)

    async def set_locked(self, workspace_id: str, *, locked: bool, by: Actor) -> Workspace | None:
        """Lock or unlock a workspace; return None for an unknown workspace."""
        with refusing_when_unavailable():
            for _ in range(_ROUNDS_MAX):
                workspace = await self.read(workspace_id)
                if workspace is None:
                    return None
                old, now = lock_of(workspace), LOCKED if locked else OPEN
                action = "workspace.lock" if locked else "workspace.unlock"
                if old == now or await self._move_lock(
                    workspace_id, action, was=old, now=now, by=by
                ):
                    return await self.apply_lock(workspace_id)
            raise StoreUnavailable(f"workspace {workspace_id} keeps changing", maybe_applied=False)

    async def set_paused(self, workspace_id: str, *, paused: bool) -> None:
        """Pause or resume a workspace, unless an administrator has locked it."""
        old, now = (OPEN, PAUSED) if paused else (PAUSED, OPEN)
        action = "workspace.pause" if paused else "workspace.resume"
        if await self._move_lock(workspace_id, action, was=old, now=now, by=SWEEPER):
            await self.apply_lock(workspace_id)

    async def _move_lock(
        self, workspace_id: str, action: str, *, was: int, now: int, by: Actor
    ) -> bool:
        """Change a lock; return False if the stored lock is not `was`."""
        values = {":was": number(was), ":lk": number(now)}
        entry = self._entry(
            by, action, workspace_id, before=lock_change(was), after=lock_change(now)
        )
        try:
            await self._decide(workspace_id, WORKSPACE_LOCK, values, entry)
        except TransactionCancelled:
            return False
        return True

    async def apply_lock(self, workspace_id: str) -> Workspace | None:
        """Copy the lock to all shards; repeat this if the workspace changes in the meantime."""
        for _ in range(_ROUNDS_MAX):
            before = await self.read(workspace_id)
            if before is None:
                return None
            for shard in range(before.shards):
                await self._wallets.set_lock(workspace_id, shard, lock_of(before))
            if await self.read(workspace_id) == before:
                return before
        raise StoreUnavailable(f"workspace {workspace_id} keeps changing", maybe_applied=True)

    async def grow(self, workspace_id: str, *, holds: int = 0) -> bool:
        """Multiply the shards by four, up to sixteen; return False if nothing changed.

        If there are many `holds`, the shards are multiplied again until each has only a few.
        """
        workspace = await self.read(workspace_id)
        if workspace is None or workspace.shards >= SLICES_MAX:
            return False
        old, new = workspace.shards, grown_count(workspace.shards, holds)
        lock = lock_of(workspace)
        # The shards are created first, because all shards in the workspace's count must exist.
        for shard in range(old, new):
            await self._wallets.create(workspace_id, shard, lock=lock)
        values = {":new": number(new), ":n": number(old), ":lk": number(lock)}
        entry = self._entry(
            SWEEPER,
            "workspace.grow",
            workspace_id,
            before=ShardsChange(shards=old),
            after=ShardsChange(shards=new),
        )
        try:
            await self._decide(workspace_id, WORKSPACE_GROW, values, entry)
        except TransactionCancelled:
            return False
        await self.copy_to_secrets(workspace_id)
        return True

    async def copy_to_secrets(self, workspace_id: str) -> None:
        """Copy the settings that authentication needs to the items of secrets, unless
        that is done.
        """
        item = await get_item(self._client, self._tables.core, workspace_key(workspace_id))
        if item is None:
            return
        admission = read_optional_text(item, WorkspaceItem.ADMISSION)
        days = read_optional_number(item, WorkspaceItem.RESPONSE_DAYS)
        copied = f"{read_number(item, WorkspaceItem.SHARDS)} {admission}"
        networks = read_optional_text(item, WorkspaceItem.ALLOWED_IPS)
        age = read_optional_number(item, WorkspaceItem.KEY_DAYS)
        frame = read_optional_text(item, WorkspaceItem.USAGE_ON)
        marked = (("", days), ("ips=", networks), ("age=", age), ("usage=", frame))
        for mark, setting in marked:
            if setting is not None:
                copied = f"{copied} {mark}{setting}"
        if read_optional_text(item, WorkspaceItem.COPIED) == copied:
            return
        values: Item = {
            ":n": item[WorkspaceItem.SHARDS],
            ":wrd": number(days or 0),
            ":wip": string(networks or ""),
            ":wkd": number(age or 0),
            ":wuo": string(frame or ""),
        }
        write = SECRET_COPY_NO_ADMISSION
        if admission is not None:
            values[":adm"] = string(admission)
            write = SECRET_COPY_ADMISSION
        for pointer in await self.key_pointers(workspace_id):
            for digest in () if is_gone(pointer) else secret_hashes(pointer):
                try:
                    await self._update(secret_key(digest), write, values)
                except ConditionFailed:
                    continue
        await self._update(workspace_key(workspace_id), WORKSPACE_COPIED, {":told": string(copied)})

    async def key_pointers(self, workspace_id: str) -> Sequence[Item]:
        """Return the pointers to all keys, including deleted keys."""
        return await all_rows(self._client, self._tables.core, f"W#{workspace_id}", "K#")

    async def read(self, workspace_id: str) -> Workspace | None:
        """Return a workspace, or None; raise StoreUnavailable if the store cannot be reached."""
        item = await get_item(self._client, self._tables.core, workspace_key(workspace_id))
        return None if item is None else read_workspace(item)

    async def _create(
        self, workspace_id: str, settings: WorkspaceSettings, *, shards: int, by: Actor
    ) -> bool:
        if not is_workspace_id(workspace_id):
            raise RequestError(
                ErrorCode.INVALID_REQUEST,
                "A workspace id consists of lower-case letters and digits, with . _ - in between.",
                param="id",
            )
        # The shards are created first, because all shards in the workspace's count must exist.
        for shard in range(shards):
            await self._wallets.create(workspace_id, shard)
        item: Item = {
            **workspace_key(workspace_id),
            **encode_workspace(settings),
            WorkspaceItem.SHARDS: number(shards),
            WorkspaceItem.LOCK: number(OPEN),
            WorkspaceItem.CREATED: number(int(self._clock.now_s())),
        }
        rows = (item, workspace_name_key(workspace_id))
        entry = self._entry(by, "workspace.create", workspace_id, before=None, after=settings)
        try:
            puts = (put_if_absent(self._tables.core, row) for row in rows)
            await transact(self._client, self._ids, (*puts, *entry))
        except TransactionCancelled:
            return False
        return True

    def _entry(
        self,
        by: Actor,
        action: str,
        workspace_id: str,
        *,
        before: Struct | None,
        after: Struct,
    ) -> Sequence[object]:
        change = AuditedChange(
            action=action,
            target=workspace_id,
            workspace_id=workspace_id,
            before=before,
            after=after,
        )
        return self._entries.puts(change, by)

    async def _decide(
        self,
        workspace_id: str,
        write: ConditionalUpdate,
        values: Item,
        entry: Sequence[object],
        *,
        names: dict[str, str] | None = None,
    ) -> None:
        """Change a workspace and write the audit log entry, in one transaction."""
        update = write.build(self._tables.core, workspace_key(workspace_id), values, names)
        await transact(self._client, self._ids, ({"Update": update}, *entry))

    async def _update(self, key: Item, write: ConditionalUpdate, values: Item) -> None:
        await self._client.call("UpdateItem", write.build(self._tables.core, key, values))
