"""The cache of answers, as people of a workspace empty it."""

from tollgate.aws.aws_json import AwsCaller
from tollgate.aws.failures import refusing_when_unavailable
from tollgate.core.clock import Clock
from tollgate.core.ids import IdSource
from tollgate.core.records.audit import Actor
from tollgate.stores.aws.tables import Tables
from tollgate.stores.aws.transactions import transact
from tollgate.stores.records.answer_cache import ObjectAnswerCache
from tollgate.stores.records.audit_log import AuditWriter
from tollgate.stores.rules.audit_entries import cache_cleared


class AuditedAnswerCache:
    """Implements `stores.ports.administration.ClearableCache`."""

    def __init__(
        self,
        client: AwsCaller,
        tables: Tables,
        answers: ObjectAnswerCache,
        *,
        ids: IdSource,
        clock: Clock,
    ) -> None:
        self._client = client
        self._answers = answers
        self._ids = ids
        self._entries = AuditWriter(tables.core, ids=ids, clock=clock)

    async def clear(self, workspace_id: str, *, by: Actor) -> int:
        """Write an audit log entry, then delete a workspace's answers; return their number.

        The entry comes first, so a deletion that is cut short has one, too.
        """
        actions = self._entries.puts(cache_cleared(workspace_id), by)
        with refusing_when_unavailable():
            await transact(self._client, self._ids, actions)
        return await self._answers.clear(workspace_id)
