"""Stored responses, which keys of the same workspace can read and delete."""

from tollgate.aws.aws_json import AwsCaller
from tollgate.aws.failures import refusing_when_unavailable
from tollgate.core.clock import Clock
from tollgate.core.ids import IdSource
from tollgate.core.records.audit import Actor
from tollgate.stores.aws.tables import Tables
from tollgate.stores.aws.transactions import transact
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
        self._contents = contents
        self._ids = ids
        self._entries = AuditWriter(tables.core, ids=ids, clock=clock)

    async def get(self, workspace_id: str, generation_id: str) -> bytes | None:
        """Return a stored response of this workspace; None if missing, deleted or expired."""
        return await self._contents.get(workspace_id, generation_id)

    async def delete(self, workspace_id: str, generation_id: str, *, by: Actor) -> bool:
        """Delete a response; return False if the response does not exist.

        The audit log entry is written first, because no transaction covers both the table and the
        bucket. If the deletion then fails, the caller's retry writes a second entry.
        """
        if await self.get(workspace_id, generation_id) is None:
            return False
        change = AuditedChange(
            action="response.delete", target=f"resp_{generation_id}", workspace_id=workspace_id
        )
        with refusing_when_unavailable():
            await transact(self._client, self._ids, self._entries.puts(change, by))
        await self._contents.delete(workspace_id, generation_id)
        return True
