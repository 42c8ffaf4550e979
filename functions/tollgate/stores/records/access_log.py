"""The access log in DynamoDB, stored as entries of the audit log."""

import logging
from typing import Final

from tollgate.aws.aws_json import AwsCaller
from tollgate.aws.failures import TransactionCancelled, refusing_when_unavailable
from tollgate.core.clock import Clock
from tollgate.core.errors import GatewayError
from tollgate.core.ids import IdSource
from tollgate.core.records.audit import Actor, AuditEntry
from tollgate.stores.aws.tables import Tables
from tollgate.stores.aws.transactions import transact
from tollgate.stores.ports.access_log import Denial, ReadContent
from tollgate.stores.records.audit_log import entry_puts
from tollgate.stores.rules.access_entries import entry_of_read, entry_of_refusal

_log = logging.getLogger(__name__)

# Number of this hour's entries that a process remembers, to avoid writing them again.
_REMEMBERED_MAX: Final = 10_000


class DynamoAccessLog:
    """Implements `stores.ports.access_log.AccessLog`."""

    def __init__(self, client: AwsCaller, tables: Tables, *, ids: IdSource, clock: Clock) -> None:
        self._client = client
        self._table = tables.core
        self._ids = ids
        self._clock = clock
        self._written: set[str] = set()
        self._refused: set[str] = set()

    async def note_read(self, kind: ReadContent, target: str, *, by: Actor) -> None:
        """Write the entry for a read unless it exists; raise LedgerError on failure."""
        entry = entry_of_read(kind, target, by, now_s=self._clock.now_s())
        if entry.id in self._written:
            return
        await self._write(entry)
        # Only confirmed entries are remembered, so that no object is shown without one.
        _remember(self._written, entry.id)

    async def note_refusal(self, refusal: Denial, target: str, code: str, *, by: Actor) -> None:
        """Write the entry for a refusal, unless it exists or another call is writing it."""
        entry = entry_of_refusal(refusal, target, code, by, now_s=self._clock.now_s())
        if entry.id in self._refused:
            return
        _remember(self._refused, entry.id)
        try:
            await self._write(entry)
        except GatewayError as failed:
            self._refused.discard(entry.id)
            _log.warning("a refusal is not in the audit log: %s", failed)

    async def _write(self, entry: AuditEntry) -> None:
        try:
            with refusing_when_unavailable():
                await transact(self._client, self._ids, entry_puts(self._table, entry))
        except TransactionCancelled:
            # Another process has written the entry.
            return


def _remember(ids: set[str], entry_id: str) -> None:
    if len(ids) >= _REMEMBERED_MAX:
        ids.clear()
    ids.add(entry_id)
