"""The credit of workspaces in DynamoDB: entries, balances and credit limits."""

import asyncio
import zlib
from collections.abc import Sequence

from tollgate.aws.attributes import Item, number
from tollgate.aws.aws_json import AwsCaller
from tollgate.aws.failures import StoreUnavailable, refusing_when_unavailable
from tollgate.core.clock import Clock
from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.ids import IdSource, is_id
from tollgate.core.money.amounts import usd_text
from tollgate.core.pages import Page
from tollgate.core.records.audit import Actor
from tollgate.stores.aws.decoding import decode_items, read_text
from tollgate.stores.aws.expressions import WORKSPACE_LEND, WORKSPACE_LEND_FIRST
from tollgate.stores.aws.items import AnyItem, CreditIdItem
from tollgate.stores.aws.tables import (
    Tables,
    entry_key,
    get_item,
    grant_key,
    query_rows,
    workspace_key,
)
from tollgate.stores.money.credit_items import read_entry
from tollgate.stores.money.credit_lots import CHANGES_MAX, CreditLots, sums_of
from tollgate.stores.money.credit_writes import CreditWriter
from tollgate.stores.money.wallets import Wallets
from tollgate.stores.money.workspaces import Workspaces
from tollgate.stores.ports.administration import Workspace
from tollgate.stores.ports.credit import ENTRIES_PAGE_MAX, Balance, CreditEntry
from tollgate.stores.rules.credit_lots import allot, spread, too_little_to_take


class DynamoCreditStore:
    """Implements `stores.ports.administration.CreditStore`."""

    def __init__(
        self,
        client: AwsCaller,
        tables: Tables,
        wallets: Wallets,
        workspaces: Workspaces,
        *,
        ids: IdSource,
        clock: Clock,
    ) -> None:
        self._client = client
        self._tables = tables
        self._wallets = wallets
        self._workspaces = workspaces
        self._ids = ids
        self._clock = clock
        self._writer = CreditWriter(client, tables, ids=ids, clock=clock)
        self._lots = CreditLots(client, tables, wallets, ids=ids, clock=clock)

    async def grant(
        self, workspace_id: str, grant_id: str, amount_nano_usd: int, source: str, *, by: Actor
    ) -> bool:
        """Add credit once per grant id; return False if the grant already exists."""
        return await self.enter(
            CreditEntry(
                id=grant_id,
                workspace_id=workspace_id,
                kind="grant",
                amount_nano_usd=amount_nano_usd,
                note=source,
                created_s=int(self._clock.now_s()),
            ),
            by=by,
        )

    async def enter(self, entry: CreditEntry, *, by: Actor) -> bool:
        """Write an entry and change the balance; return False if the entry already exists."""
        with refusing_when_unavailable():
            shards = await self._find_shards(entry, by)
            for _ in range(CHANGES_MAX):
                lots = await self._lots.plan(entry, shards)
                outcome = await self._write_on_any(entry, shards, by, lots)
                if outcome is not None:
                    return outcome
            raise StoreUnavailable("the lots of credit keep changing", maybe_applied=False)

    async def _write_on_any(
        self, entry: CreditEntry, shards: int, by: Actor, lots: Sequence[object]
    ) -> bool | None:
        """Write an entry on the first shard with enough credit; return None if the lots have
        changed.
        """
        first = zlib.crc32(entry.id.encode())
        for step in range(shards):
            parts = {(first + step) % shards: entry.amount_nano_usd}
            match await self._writer.write(entry, parts, by, *lots):
                case "written":
                    return True
                case "repeated":
                    return False
                case "changed":
                    return None
                case "short":
                    continue
        shard_items = await self._wallets.items(entry.workspace_id, shards)
        available = sum(sums_of(shard_items).available_nano_usd.values())
        raise too_little_to_take(-entry.amount_nano_usd, available)

    async def _find_shards(self, entry: CreditEntry, by: Actor) -> int:
        """Return a workspace's number of shards; added credit creates a missing workspace."""
        if entry.amount_nano_usd > 0:
            return (await self._workspaces.ensure(entry.workspace_id, by=by)).shards
        workspace = await self._workspaces.read(entry.workspace_id)
        return 0 if workspace is None else workspace.shards

    async def entry(self, workspace_id: str, entry_id: str) -> CreditEntry | None:
        """Return the entry with this id, or None."""
        with refusing_when_unavailable():
            once = await get_item(
                self._client, self._tables.core, grant_key(workspace_id, entry_id)
            )
            if once is None:
                return None
            key = entry_key(workspace_id, read_text(once, CreditIdItem.PLACE))
            item = await get_item(self._client, self._tables.core, key)
            return None if item is None else read_entry(item)

    async def entries(
        self, workspace_id: str, *, after: str | None = None, limit: int = ENTRIES_PAGE_MAX
    ) -> Page[CreditEntry]:
        """Return a page of a workspace's entries, newest first."""
        if after is not None and not is_id(after):
            raise RequestError(
                ErrorCode.INVALID_REQUEST, "The cursor is not valid.", param="cursor"
            )
        with refusing_when_unavailable():
            rows, end = await query_rows(
                self._client,
                self._tables.core,
                f"W#{workspace_id}",
                "L#",
                after=None if after is None else entry_key(workspace_id, after),
                limit=limit,
                backwards=True,
            )
        position = None if end is None else read_text(end, AnyItem.SORT).removeprefix("L#")
        entries, unreadable = decode_items(read_entry, rows)
        return Page(found=tuple(entries), next=position, unreadable=tuple(unreadable))

    async def balance(self, workspace_id: str) -> Balance:
        """Return a workspace's balance by consistent reads; all zero for an unknown workspace."""
        with refusing_when_unavailable():
            workspace, stored = await asyncio.gather(
                self._workspaces.read(workspace_id), self._lots.read(workspace_id)
            )
            shards = 0 if workspace is None else workspace.shards
            sums = sums_of(await self._wallets.items(workspace_id, shards))
        lots = allot(
            stored, granted_nano_usd=sums.granted_nano_usd, spent_nano_usd=sums.spent_nano_usd
        )
        return Balance(
            granted_nano_usd=sums.granted_nano_usd,
            available_nano_usd=sum(sums.available_nano_usd.values()),
            held_nano_usd=sum(sums.holds.values()),
            spent_nano_usd=sums.spent_nano_usd,
            credit_limit_nano_usd=0 if workspace is None else workspace.credit_limit_nano_usd,
            lots=tuple(lot for lot in lots.lots if lot.left_nano_usd),
        )

    async def set_credit_limit(self, workspace_id: str, limit_nano_usd: int, *, by: Actor) -> bool:
        """Set a workspace's credit limit; return False if the limit is unchanged."""
        with refusing_when_unavailable():
            for _ in range(CHANGES_MAX):
                workspace = await self._workspaces.read(workspace_id)
                if workspace is None:
                    raise RequestError(
                        ErrorCode.NOT_FOUND,
                        f"There is no workspace {workspace_id!r}.",
                        param="workspace_id",
                    )
                if workspace.credit_limit_nano_usd == limit_nano_usd:
                    return False
                if await self._lend(workspace, limit_nano_usd, by):
                    return True
            raise StoreUnavailable(f"workspace {workspace_id} keeps changing", maybe_applied=False)

    async def _lend(self, workspace: Workspace, limit_nano_usd: int, by: Actor) -> bool:
        """Change a credit limit; return False if the limit or the credit has changed in the
        meantime.
        """
        difference = limit_nano_usd - workspace.credit_limit_nano_usd
        entry = CreditEntry(
            id=f"credit_line:{self._ids.new_id()}",
            workspace_id=workspace.id,
            kind="credit_line",
            amount_nano_usd=difference,
            note=f"credit limit ${usd_text(limit_nano_usd)}",
            created_s=int(self._clock.now_s()),
        )
        parts = {zlib.crc32(entry.id.encode()) % workspace.shards: difference}
        if difference < 0:
            parts = await self._find_unused(workspace, -difference)
        update = _lending(self._tables.core, workspace, limit_nano_usd)
        return await self._writer.write(entry, parts, by, update) == "written"

    async def _find_unused(self, workspace: Workspace, amount_nano_usd: int) -> dict[int, int]:
        """Return the lent credit to take from each shard; raise RequestError if too much of it is
        used.

        Expiring grants do not count, because they do not pay back lent credit.
        """
        sums = await self._lots.read_sums(workspace.id, workspace.shards)
        granted, spent = sums.granted_nano_usd, sums.spent_nano_usd
        stored = await self._lots.read(workspace.id)
        lots = allot(stored, granted_nano_usd=granted, spent_nano_usd=spent)
        available = sum(max(0, credit) for credit in sums.available_nano_usd.values())
        unused = max(0, min(available, granted - spent - lots.left_nano_usd))
        if unused < amount_nano_usd:
            lowest = workspace.credit_limit_nano_usd - unused
            raise RequestError(
                ErrorCode.INVALID_REQUEST,
                f"${usd_text(lowest)} of the credit limit is in use, so the new limit must be at "
                "least that. Book a payment first.",
                param="credit_limit",
            )
        return {
            shard: -part for shard, part in spread(amount_nano_usd, sums.available_nano_usd).items()
        }


def _lending(table: str, workspace: Workspace, limit_nano_usd: int) -> object:
    """Return the action that sets a credit limit, on condition that the old one is unchanged."""
    old = workspace.credit_limit_nano_usd
    write = WORKSPACE_LEND if old else WORKSPACE_LEND_FIRST
    values: Item = {":new": number(limit_nano_usd)}
    values[":old" if old else ":zero"] = number(old)
    return {"Update": write.build(table, workspace_key(workspace.id), values)}
