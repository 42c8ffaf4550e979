"""Erases an end user from the records of a workspace, with the content of the user's requests."""

from hashlib import sha256
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tollgate.aws.aws_json import AwsCaller
from tollgate.aws.failures import ConditionFailed, refusing_when_unavailable
from tollgate.core.clock import DAY_S, Clock
from tollgate.core.ids import IdSource
from tollgate.core.records.activity import day_of
from tollgate.core.records.audit import Actor
from tollgate.core.records.generation import GenerationRecord
from tollgate.stores.aws.expressions import IF_PRESENT
from tollgate.stores.aws.tables import Tables
from tollgate.stores.aws.transactions import transact
from tollgate.stores.records.audit_log import AuditWriter
from tollgate.stores.records.contents import ObjectContentLog
from tollgate.stores.records.generations import DynamoGenerationStore, record_item
from tollgate.stores.rules.audit_entries import AuditedChange
from tollgate.stores.rules.reports import ErasedUser

# Number of records that are read at a time.
_PAGE: Final = 250


class _ErasedChange(Struct, frozen=True, kw_only=True):
    """The result of an erasure as its audit entry shows it."""

    records: int
    unreadable: int


class Erasure:
    """Erases users from records that are still stored; repeated erasures are safe."""

    def __init__(
        self,
        client: AwsCaller,
        tables: Tables,
        generations: DynamoGenerationStore,
        contents: tuple[ObjectContentLog, ...],
        *,
        retention_s: int,
        ids: IdSource,
        clock: Clock,
    ) -> None:
        self._client = client
        self._table = tables.generations
        self._generations = generations
        self._contents = contents
        self._retention_s = retention_s
        self._ids = ids
        self._clock = clock
        self._entries = AuditWriter(tables.core, ids=ids, clock=clock)

    async def erase_user(self, workspace_id: str, user: str, *, by: Actor) -> ErasedUser:
        """Remove a user from the records and add the audit entry; raise LedgerError on failure.

        Records keep their cost and usage. A repetition after a failure continues.
        """
        records, days, unreadable = 0, list[str](), list[str]()
        now_s = int(self._clock.now_s())
        for second in range(now_s - self._retention_s - DAY_S, now_s + DAY_S + 1, DAY_S):
            day, before = day_of(second), records
            async for page in self._generations.read_day(workspace_id, day, page_max=_PAGE):
                unreadable += page.unreadable
                for record in page.found:
                    if record.user == user:
                        await self._erase(record)
                        records += 1
            if records > before:
                days.append(day)
        erased = ErasedUser(
            user=sha256(user.encode()).hexdigest(),
            records=records,
            days=tuple(days),
            unreadable=tuple(unreadable),
        )
        change = AuditedChange(
            action="user.erase",
            target=erased.user,
            workspace_id=workspace_id,
            after=_ErasedChange(records=records, unreadable=len(unreadable)),
        )
        with refusing_when_unavailable():
            await transact(self._client, self._ids, self._entries.puts(change, by))
        return erased

    async def _erase(self, record: GenerationRecord) -> None:
        # The record names the content, so it changes last.
        for contents in self._contents:
            await contents.delete(record.workspace_id, record.id)
        bare = replace(record, user=None, caller_labels={})
        put = {
            "TableName": self._table,
            "Item": record_item(bare, retention_s=self._retention_s),
            "ConditionExpression": IF_PRESENT,
        }
        try:
            with refusing_when_unavailable():
                await self._client.call("PutItem", put)
        except ConditionFailed:
            # The record has expired in the meantime.
            return
