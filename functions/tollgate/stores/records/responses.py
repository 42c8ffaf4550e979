"""Stored responses, which keys of the same workspace can read and delete."""

from tollgate.aws.attributes import Item, number
from tollgate.aws.aws_json import AwsCaller
from tollgate.aws.failures import StoreUnavailable, TransactionCancelled, refusing_when_unavailable
from tollgate.core.clock import DAY_S, Clock
from tollgate.core.ids import IdSource
from tollgate.core.records.audit import Actor
from tollgate.stores.aws.items import DeletedResponseItem
from tollgate.stores.aws.tables import Tables, deleted_response_key
from tollgate.stores.aws.transactions import put_if_absent, transact
from tollgate.stores.records.audit_log import AuditWriter
from tollgate.stores.records.contents import ObjectContentLog
from tollgate.stores.rules.audit_entries import AuditedChange


class AuditedResponses:
    """Implements `stores.ports.administration.ResponseStore`."""

    def __init__(
        self,
        client: AwsCaller,
        tables: Tables,
        contents: ObjectContentLog,
        *,
        ids: IdSource,
        clock: Clock,
    ) -> None:
        self._client = client
        self._table = tables.core
        self._contents = contents
        self._ids = ids
        self._clock = clock
        self._entries = AuditWriter(tables.core, ids=ids, clock=clock)

    async def get(self, workspace_id: str, generation_id: str) -> bytes | None:
        """Return a stored response of this workspace; None if missing, deleted or expired."""
        return await self._contents.get(workspace_id, generation_id)

    async def delete(self, workspace_id: str, generation_id: str, *, by: Actor) -> bool:
        """Delete a response; return False if the response does not exist, or is being deleted.

        One transaction writes the audit log entry and a mark, which exists once, because no
        transaction covers both the table and the bucket. A caller who finds the mark deletes the
        content too, in case the process that wrote the mark was killed.
        """
        if await self.get(workspace_id, generation_id) is None:
            return False
        change = AuditedChange(
            action="response.delete", target=f"resp_{generation_id}", workspace_id=workspace_id
        )
        mark: Item = {
            **deleted_response_key(workspace_id, generation_id),
            DeletedResponseItem.DELETE_AT: number(int(self._clock.now_s()) + DAY_S),
        }
        actions = [put_if_absent(self._table, mark), *self._entries.puts(change, by)]
        is_first = True
        with refusing_when_unavailable():
            try:
                await transact(self._client, self._ids, actions)
            except TransactionCancelled as cancelled:
                if cancelled.reasons[0].code != "ConditionalCheckFailed":
                    raise StoreUnavailable(str(cancelled), maybe_applied=False) from cancelled
                is_first = False
        await self._contents.delete(workspace_id, generation_id)
        return is_first
