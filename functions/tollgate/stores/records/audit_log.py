"""The audit log in DynamoDB, which has two copies of each entry; both are written together with the
change.

One copy is in the workspace's partition. The other is for the operator, in the partition with all
entries for the month. Items are never updated or deleted.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

from msgspec import json

from tollgate.aws.attributes import Item, string
from tollgate.aws.aws_json import AwsCaller
from tollgate.aws.failures import refusing_when_unavailable
from tollgate.core.clock import Clock
from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.ids import IdSource
from tollgate.core.pages import Page
from tollgate.core.records.audit import Actor, AuditEntry, AuditFilter, SealedDay
from tollgate.stores.aws.decoding import decode_items, read_text, reads_an_item
from tollgate.stores.aws.expressions import ROWS_BETWEEN
from tollgate.stores.aws.items import AnyItem, AuditItem
from tollgate.stores.aws.tables import Tables, audit_key, audit_month, audit_workspace
from tollgate.stores.aws.transactions import put_if_absent
from tollgate.stores.records.audit_seals import compare_days
from tollgate.stores.rules.audit_chain import days_between
from tollgate.stores.rules.audit_entries import (
    AuditedChange,
    first_entry_id,
    is_entry_id,
    new_entry,
)

# Maximum number of items per query, and of queries per page.
_ROWS_MAX: Final = 200
_QUERIES_MAX: Final = 12


class AuditWriter:
    """Creates audit log entries for transactions that change something."""

    def __init__(self, table: str, *, ids: IdSource, clock: Clock) -> None:
        self._table = table
        self._ids = ids
        self._clock = clock

    def puts(self, change: AuditedChange, by: Actor) -> list[object]:
        """Return the actions that write the audit log entry for a change."""
        return entry_puts(self._table, new_entry(change, by, ids=self._ids, clock=self._clock))


def entry_puts(table: str, entry: AuditEntry) -> list[object]:
    """Return the actions that write an entry; an action fails if its item exists."""
    partitions = [audit_month(entry.at_ms // 1_000)]
    if entry.workspace_id is not None:
        partitions.append(audit_workspace(entry.workspace_id))
    content = {AuditItem.ENTRY: string(json.encode(entry).decode())}
    return [
        put_if_absent(table, {**audit_key(partition, entry.id), **content})
        for partition in partitions
    ]


class DynamoAuditLog:
    """Implements `stores.ports.administration.AuditLog`."""

    def __init__(self, client: AwsCaller, tables: Tables, clock: Clock) -> None:
        self._client = client
        self._table = tables.core
        self._clock = clock

    async def check(self, workspace_id: str | None, first: str, last: str) -> Sequence[SealedDay]:
        """Compare the UTC days in [first, last] with their seals, oldest first."""
        with refusing_when_unavailable():
            return await compare_days(
                self._client,
                self._table,
                workspace_id,
                days_between(first, last),
                now_s=self._clock.now_s(),
            )

    async def page(
        self,
        workspace_id: str | None,
        wanted: AuditFilter,
        *,
        limit: int,
        before: str | None = None,
    ) -> Page[AuditEntry]:
        """Return a page of entries with ids below `before`, newest first."""
        if before is not None and not is_entry_id(before):
            raise RequestError(
                ErrorCode.INVALID_REQUEST, "The cursor is not valid.", param="cursor"
            )
        upper = first_entry_id(wanted.until_s * 1_000)
        if before is not None:
            upper = min(before, upper)
        # The id of an access begins with its hour.
        low = first_entry_id((wanted.since_s - wanted.since_s % 3_600) * 1_000)
        entries_found: list[AuditEntry] = []
        corrupt: list[str] = []
        queries = 0

        def page(following: str | None) -> Page[AuditEntry]:
            return Page(found=tuple(entries_found), next=following, unreadable=tuple(corrupt))

        with refusing_when_unavailable():
            for partition, beginning in _partitions(workspace_id, low, upper):
                has_more = True
                while has_more and low < upper:
                    if queries == _QUERIES_MAX:
                        return page(upper)
                    queries += 1
                    rows, has_more = await self._rows(partition, low, upper)
                    for row in rows:
                        upper = read_text(row, AnyItem.SORT)
                        entries, names = decode_items(_read_entry, [row])
                        entries_found += [entry for entry in entries if wanted.accepts(entry)]
                        corrupt += names
                        if len(entries_found) == limit:
                            return page(upper)
                upper = beginning
        return page(None)

    async def _rows(self, partition: str, low: str, upper: str) -> tuple[list[Item], bool]:
        """Return the items in [low, upper), newest first, and True if there may be more."""
        reply = await self._client.call(
            "Query",
            {
                "TableName": self._table,
                "ConsistentRead": True,
                "KeyConditionExpression": ROWS_BETWEEN,
                "ExpressionAttributeValues": {
                    ":pk": string(partition),
                    ":low": string(low),
                    ":high": string(upper),
                },
                "ScanIndexForward": False,
                "Limit": _ROWS_MAX,
            },
        )
        rows = [row for row in reply["Items"] if read_text(row, AnyItem.SORT) != upper]
        return rows, "LastEvaluatedKey" in reply


def _partitions(workspace_id: str | None, low: str, upper: str) -> Iterator[tuple[str, str]]:
    """Yield a workspace's partition, or the partitions of all months, newest first.

    Each partition comes with an id that is lower than all ids in the partition.
    """
    if workspace_id is not None:
        yield audit_workspace(workspace_id), low
        return
    first, last = (datetime.fromtimestamp(int(bound[:10]), UTC) for bound in (low, upper))
    for month in range(last.year * 12 + last.month, first.year * 12 + first.month - 1, -1):
        year, month_index = divmod(month - 1, 12)
        second = int(datetime(year, month_index + 1, 1, tzinfo=UTC).timestamp())
        yield audit_month(second), first_entry_id(second * 1_000)


@reads_an_item
def _read_entry(item: Item) -> AuditEntry:
    return json.decode(read_text(item, AuditItem.ENTRY), type=AuditEntry)
