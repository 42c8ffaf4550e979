"""The seals of the audit log's days: sealing, export and verification."""

import gzip
from collections.abc import Sequence
from typing import Final

from msgspec import Raw, Struct, json
from msgspec.structs import replace

from tollgate.aws.attributes import Item, string
from tollgate.aws.aws_json import AwsCaller
from tollgate.aws.failures import ConditionFailed, refusing_when_unavailable
from tollgate.aws.objects import ObjectStore
from tollgate.core.clock import DAY_S, Clock
from tollgate.core.records.audit import AuditSeal, SealedDay
from tollgate.stores.aws.decoding import decode_items, read_text, reads_an_item
from tollgate.stores.aws.expressions import IF_ABSENT
from tollgate.stores.aws.items import AnyItem, AuditItem, AuditSealItem
from tollgate.stores.aws.row_ranges import all_rows, rows_between
from tollgate.stores.aws.tables import (
    WORKSPACE_NAMES,
    Tables,
    audit_month,
    audit_seal_key,
    audit_seals,
    audit_workspace,
    query_rows,
)
from tollgate.stores.rules.audit_chain import (
    StoredEntry,
    check_day,
    day_start_s,
    days_to_seal,
    links,
    seal_day,
)
from tollgate.stores.rules.audit_entries import first_entry_id

# A day before all seals, so that a single query finds the seal preceding a range.
_EARLIEST: Final = "D#0"


class _ExportedEntry(Struct, frozen=True, kw_only=True):
    """A line of an exported day."""

    id: str
    hash: str
    entry: Raw
    """The text of the entry exactly as stored, over which the hash is computed."""


class AuditSealing:
    """Seals and exports the closed days of all logs; concurrent runs write identical seals."""

    def __init__(
        self, client: AwsCaller, tables: Tables, bucket: ObjectStore | None, *, clock: Clock
    ) -> None:
        self._client = client
        self._table = tables.core
        self._bucket = bucket
        self._clock = clock

    async def seal_due(self) -> int:
        """Seal the closed days of every workspace's log and of the whole log; return their number.

        A day is exported before it is sealed, so a failed export is retried by the next run.
        """
        with refusing_when_unavailable():
            names = await all_rows(self._client, self._table, WORKSPACE_NAMES, "W#")
            workspaces = [read_text(name, AnyItem.SORT).removeprefix("W#") for name in names]
            return sum([await self._seal_log(each) for each in (*workspaces, None)])

    async def _seal_log(self, workspace_id: str | None) -> int:
        rows, _ = await query_rows(
            self._client, self._table, audit_seals(workspace_id), "D#", limit=1, backwards=True
        )
        before = next(iter(_read_seals(rows)), None)
        days = days_to_seal(None if before is None else before.day, self._clock.now_s())
        for day in days:
            entries = await read_day(self._client, self._table, workspace_id, day)
            sealed = seal_day(day, before, entries)
            if self._bucket is not None:
                await self._bucket.put(export_name(workspace_id, day), _export(sealed, entries))
            await self._put(workspace_id, sealed)
            before = sealed
        return len(days)

    async def _put(self, workspace_id: str | None, sealed: AuditSeal) -> None:
        item = {
            **audit_seal_key(workspace_id, sealed.day),
            AuditSealItem.SEAL: string(json.encode(sealed).decode()),
        }
        put = {"TableName": self._table, "Item": item, "ConditionExpression": IF_ABSENT}
        try:
            await self._client.call("PutItem", put)
        except ConditionFailed:
            # Another run sealed the same entries at the same time.
            return


async def compare_days(
    client: AwsCaller,
    table: str,
    workspace_id: str | None,
    days: Sequence[str],
    *,
    now_s: float,
) -> Sequence[SealedDay]:
    """Return consecutive days, compared with their seals."""
    if not days:
        return []
    partition, last = audit_seals(workspace_id), f"D#{days[-1]}"
    rows = await rows_between(client, table, partition, low=_EARLIEST, high=last, consistent=True)
    seals = {each.day: each for each in _read_seals(rows)}
    before = next((seals[day] for day in reversed(seals) if day < days[0]), None)
    checked: list[SealedDay] = []
    for day in days:
        entries = await read_day(client, table, workspace_id, day)
        checked.append(check_day(day, seals.get(day), before, entries, now_s=now_s))
        before = seals.get(day, before)
    return checked


async def read_day(
    client: AwsCaller, table: str, workspace_id: str | None, day: str
) -> list[StoredEntry]:
    """Return the stored entries of a day, oldest first."""
    start_s = day_start_s(day)
    partition = audit_month(start_s) if workspace_id is None else audit_workspace(workspace_id)
    end = first_entry_id((start_s + DAY_S) * 1_000)
    low = first_entry_id(start_s * 1_000)
    rows = await rows_between(client, table, partition, low=low, high=end, consistent=True)
    return [
        # A row without text is corrupt, but the chain covers it as well.
        StoredEntry(
            read_text(row, AnyItem.SORT),
            read_text(row, AuditItem.ENTRY) if AuditItem.ENTRY in row else "",
        )
        for row in rows
        if read_text(row, AnyItem.SORT) < end
    ]


def export_name(workspace_id: str | None, day: str) -> str:
    """Return the name of the object that contains an exported day."""
    folder = "all" if workspace_id is None else f"workspace={workspace_id}"
    return f"audit/{folder}/day={day}.jsonl.gz"


def _export(sealed: AuditSeal, entries: Sequence[StoredEntry]) -> bytes:
    """Return a day as gzipped JSON lines: its entries, then its seal."""
    lines = [
        _ExportedEntry(id=entry.id, hash=link, entry=Raw((entry.text or "null").encode()))
        for entry, link in zip(entries, links(sealed.previous, entries), strict=True)
    ]
    text = b"".join(json.encode(line) + b"\n" for line in (*lines, replace(sealed, marks="")))
    return gzip.compress(text, mtime=0)


def _read_seals(rows: Sequence[Item]) -> list[AuditSeal]:
    """Return the seals in items; a corrupt seal counts as missing."""
    seals, _ = decode_items(_read_seal, rows)
    return list(seals)


@reads_an_item
def _read_seal(item: Item) -> AuditSeal:
    return json.decode(read_text(item, AuditSealItem.SEAL), type=AuditSeal)
