"""Workspaces in DynamoDB: their shards, locks and settings.

A hold reads no workspace, so what it needs is copied to the items that it writes or reads anyway:
the lock to each shard, the number of shards and the admission to each secret's row.
"""

from collections.abc import Callable, Sequence
from typing import Final, cast

from tollgate.core.clock import Clock
from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.ids import IdSource
from tollgate.core.pages import Page
from tollgate.core.principal import Admission
from tollgate.stores.administration import WORKSPACES_PAGE_MAX, Workspace, WorkspaceSettings
from tollgate.stores.aws.attributes import AttributeValue, Item, number, string
from tollgate.stores.aws.aws_json import AwsCaller
from tollgate.stores.aws.decoding import (
    decode_items,
    read_number,
    read_optional_number,
    read_optional_text,
    read_text,
    reads_an_item,
)
from tollgate.stores.aws.expressions import (
    IF_ABSENT,
    IF_PRESENT,
    SECRET_COPY_ADMISSION,
    SECRET_COPY_NO_ADMISSION,
    WORKSPACE_COPIED,
    WORKSPACE_GROW,
    WORKSPACE_LOCK,
    WORKSPACE_PAUSE,
    ConditionalUpdate,
    set_and_remove,
)
from tollgate.stores.aws.failures import (
    ConditionFailed,
    StoreUnavailable,
    TransactionCancelled,
    refusing_when_unavailable,
)
from tollgate.stores.aws.items import AnyItem, WorkspaceItem
from tollgate.stores.aws.tables import (
    WORKSPACE_NAMES,
    Tables,
    all_rows,
    get_item,
    get_items,
    is_workspace_id,
    query_rows,
    secret_key,
    workspace_key,
    workspace_name_key,
)
from tollgate.stores.keys.rows import is_gone, secret_hashes
from tollgate.stores.money.wallets import Wallets

SHARDS_MAX: Final = 16
_GROWS_BY: Final = 4
_ROUNDS_MAX: Final = 5
# The lock of a workspace: open, locked by an administrator, paused by its budget.
_OPEN: Final = 0
_LOCKED: Final = 1
_PAUSED: Final = 2
_SETTINGS: Final = (WorkspaceItem.ADMISSION, WorkspaceItem.BUDGET, WorkspaceItem.PAUSES)


class Workspaces:
    """Implements `stores.administration.WorkspaceStore`, and what WorkspaceMaintenance needs."""

    def __init__(
        self, client: AwsCaller, tables: Tables, wallets: Wallets, *, ids: IdSource, clock: Clock
    ) -> None:
        self._client = client
        self._tables = tables
        self._wallets = wallets
        self._ids = ids
        self._clock = clock

    async def create(self, workspace_id: str, settings: WorkspaceSettings) -> Workspace | None:
        """Create a workspace; None if its id is taken."""
        with refusing_when_unavailable():
            made = await self._create(workspace_id, settings, shards=1)
            return await self.read(workspace_id) if made else None

    async def ensure(self, workspace_id: str, *, shards: int = 1) -> Workspace:
        """Return a workspace, created with so many shards if there is none."""
        with refusing_when_unavailable():
            for _ in range(_ROUNDS_MAX):
                workspace = await self.read(workspace_id)
                if workspace is not None:
                    return workspace
                await self._create(workspace_id, WorkspaceSettings(), shards=shards)
            raise StoreUnavailable("the workspace does not appear", maybe_applied=True)

    async def get(self, workspace_id: str) -> Workspace | None:
        """Return a workspace, None if there is none with this id."""
        with refusing_when_unavailable():
            return await self.read(workspace_id)

    async def list(
        self, *, after: str | None = None, limit: int = WORKSPACES_PAGE_MAX
    ) -> Page[Workspace]:
        """Return a page of workspaces in the order of their ids."""
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
        found, unreadable = decode_items(_read_workspace, items)
        return Page(
            found=tuple(sorted(found, key=lambda workspace: workspace.id)),
            next=None if end is None else read_text(end, AnyItem.SORT).removeprefix("W#"),
            unreadable=tuple(unreadable),
        )

    async def change(
        self, workspace_id: str, edit: Callable[[WorkspaceSettings], WorkspaceSettings]
    ) -> Workspace | None:
        """Replace the settings by what `edit` returns, and copy them to the secrets' rows."""
        with refusing_when_unavailable():
            workspace = await self.read(workspace_id)
            if workspace is None:
                return None
            content = _encode_settings(edit(workspace.settings))
            absent = [name for name in _SETTINGS if name not in content]
            await self._update(
                workspace_id,
                set_and_remove(list(content), absent, IF_PRESENT),
                {f":{name}": value for name, value in content.items()},
                names={f"#{name}": name for name in (*content, *absent)},
            )
            await self.copy_to_secrets(workspace_id)
            return await self.read(workspace_id)

    async def set_locked(self, workspace_id: str, *, locked: bool) -> Workspace | None:
        """Lock or unlock a workspace; None if there is none."""
        with refusing_when_unavailable():
            try:
                lock = number(_LOCKED if locked else _OPEN)
                await self._update(workspace_id, WORKSPACE_LOCK, {":lk": lock})
            except ConditionFailed:
                return None
            return await self.apply_lock(workspace_id)

    async def set_paused(self, workspace_id: str, *, paused: bool) -> None:
        """Pause or resume a workspace, unless an administrator has locked it."""
        was, now = (_OPEN, _PAUSED) if paused else (_PAUSED, _OPEN)
        try:
            values = {":was": number(was), ":lk": number(now)}
            await self._update(workspace_id, WORKSPACE_PAUSE, values)
        except ConditionFailed:
            return
        await self.apply_lock(workspace_id)

    async def apply_lock(self, workspace_id: str) -> Workspace | None:
        """Copy the lock to all shards, again while the workspace changes meanwhile."""
        for _ in range(_ROUNDS_MAX):
            before = await self.read(workspace_id)
            if before is None:
                return None
            locked = before.locked or before.paused
            for shard in range(before.shards):
                await self._wallets.set_locked(workspace_id, shard, locked=locked)
            if await self.read(workspace_id) == before:
                return before
        raise StoreUnavailable(f"workspace {workspace_id} keeps changing", maybe_applied=True)

    async def grow(self, workspace_id: str) -> bool:
        """Multiply the shards by four, up to sixteen; return False where it cannot grow, or just
        did."""
        workspace = await self.read(workspace_id)
        if workspace is None or workspace.shards >= SHARDS_MAX:
            return False
        old, new = workspace.shards, min(workspace.shards * _GROWS_BY, SHARDS_MAX)
        lock = _LOCKED if workspace.locked else _PAUSED if workspace.paused else _OPEN
        # The shards come first: once the workspace counts them, all of them exist.
        for shard in range(old, new):
            await self._wallets.create(workspace_id, shard, locked=lock != _OPEN)
        try:
            values = {":new": number(new), ":n": number(old), ":lk": number(lock)}
            await self._update(workspace_id, WORKSPACE_GROW, values)
        except ConditionFailed:
            return False
        await self.copy_to_secrets(workspace_id)
        return True

    async def copy_to_secrets(self, workspace_id: str) -> None:
        """Copy a workspace's shards and admission to its secrets' rows, unless they have them."""
        item = await get_item(self._client, self._tables.core, workspace_key(workspace_id))
        if item is None:
            return
        admission = read_optional_text(item, WorkspaceItem.ADMISSION)
        copied = f"{read_number(item, WorkspaceItem.SHARDS)} {admission}"
        if read_optional_text(item, WorkspaceItem.COPIED) == copied:
            return
        values: Item = {":n": item[WorkspaceItem.SHARDS]}
        write = SECRET_COPY_NO_ADMISSION
        if admission is not None:
            values[":adm"] = string(admission)
            write = SECRET_COPY_ADMISSION
        for pointer in await self.key_pointers(workspace_id):
            for digest in () if is_gone(pointer) else secret_hashes(pointer):
                try:
                    await self._send(secret_key(digest), write, values)
                except ConditionFailed:
                    continue
        await self._update(workspace_id, WORKSPACE_COPIED, {":told": string(copied)})

    async def key_pointers(self, workspace_id: str) -> Sequence[Item]:
        """Return the pointers of all keys, deleted ones included."""
        return await all_rows(self._client, self._tables.core, f"W#{workspace_id}", "K#")

    async def read(self, workspace_id: str) -> Workspace | None:
        """Return a workspace, None if there is none; raise StoreUnavailable if unreachable."""
        item = await get_item(self._client, self._tables.core, workspace_key(workspace_id))
        return None if item is None else _read_workspace(item)

    async def _create(self, workspace_id: str, settings: WorkspaceSettings, *, shards: int) -> bool:
        if not is_workspace_id(workspace_id):
            raise RequestError(
                ErrorCode.INVALID_REQUEST,
                "A workspace is named by lower-case letters, digits, and . _ - inside.",
                param="id",
            )
        # The shards come first: once the workspace counts them, all of them exist.
        for shard in range(shards):
            await self._wallets.create(workspace_id, shard)
        item: Item = {
            **workspace_key(workspace_id),
            **_encode_settings(settings),
            WorkspaceItem.SHARDS: number(shards),
            WorkspaceItem.LOCK: number(_OPEN),
            WorkspaceItem.CREATED: number(int(self._clock.now_s())),
        }
        rows = (item, workspace_name_key(workspace_id))
        puts = [
            {"TableName": self._tables.core, "Item": row, "ConditionExpression": IF_ABSENT}
            for row in rows
        ]
        try:
            await self._client.call(
                "TransactWriteItems",
                {
                    "ClientRequestToken": self._ids.new_id(),
                    "TransactItems": [{"Put": put} for put in puts],
                },
            )
        except TransactionCancelled:
            return False
        return True

    async def _update(
        self,
        workspace_id: str,
        write: ConditionalUpdate,
        values: Item,
        *,
        names: dict[str, str] | None = None,
    ) -> None:
        await self._send(workspace_key(workspace_id), write, values, names=names)

    async def _send(
        self,
        key: Item,
        write: ConditionalUpdate,
        values: Item,
        *,
        names: dict[str, str] | None = None,
    ) -> None:
        payload: dict[str, object] = {
            "TableName": self._tables.core,
            "Key": key,
            "UpdateExpression": write.update,
            "ConditionExpression": write.condition,
        }
        if values:
            payload["ExpressionAttributeValues"] = values
        if names:
            payload["ExpressionAttributeNames"] = names
        await self._client.call("UpdateItem", payload)


def _encode_settings(settings: WorkspaceSettings) -> Item:
    values: dict[str, AttributeValue | None] = {
        WorkspaceItem.ADMISSION: None if settings.admission is None else string(settings.admission),
        WorkspaceItem.BUDGET: None
        if settings.budget_nano_usd is None
        else number(settings.budget_nano_usd),
        WorkspaceItem.PAUSES: number(1) if settings.pause_at_budget else None,
    }
    return {name: value for name, value in values.items() if value is not None}


@reads_an_item
def _read_workspace(item: Item) -> Workspace:
    lock = read_number(item, WorkspaceItem.LOCK)
    return Workspace(
        id=read_text(item, AnyItem.PARTITION).removeprefix("W#"),
        shards=read_number(item, WorkspaceItem.SHARDS),
        created_s=read_number(item, WorkspaceItem.CREATED),
        locked=lock == _LOCKED,
        paused=lock == _PAUSED,
        settings=WorkspaceSettings(
            # Only `_encode_settings` writes it.
            admission=cast(Admission | None, read_optional_text(item, WorkspaceItem.ADMISSION)),
            budget_nano_usd=read_optional_number(item, WorkspaceItem.BUDGET),
            pause_at_budget=WorkspaceItem.PAUSES in item,
        ),
    )
