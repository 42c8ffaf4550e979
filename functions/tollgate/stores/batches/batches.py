"""The batches of a workspace in DynamoDB."""

from typing import Final

from tollgate.aws.aws_json import AwsCaller
from tollgate.aws.failures import refusing_when_unavailable
from tollgate.core.batches import Batch, BatchClient
from tollgate.core.clock import Clock
from tollgate.core.errors import invalid_request
from tollgate.core.ids import IdSource, is_id
from tollgate.core.ownership import WHOLE_WORKSPACE, OwnerScope
from tollgate.core.pages import Page
from tollgate.stores.aws.decoding import decode_items
from tollgate.stores.aws.tables import query_rows
from tollgate.stores.batches.jobs import BATCHES, DynamoJobStore
from tollgate.stores.batches.keys import batch_partition

_READ_AT_ONCE: Final = 100
BATCH_PAGE_MAX: Final = 100


class DynamoBatchStore(DynamoJobStore[Batch]):
    """Implements `stores.ports.batches.BatchStore`."""

    def __init__(self, client: AwsCaller, table: str, *, ids: IdSource, clock: Clock) -> None:
        super().__init__(client, table, BATCHES, ids=ids, clock=clock)

    async def page(
        self,
        workspace_id: str,
        *,
        limit: int,
        after: str | None = None,
        reach: OwnerScope = WHOLE_WORKSPACE,
        client: BatchClient = "openai",
    ) -> Page[Batch]:
        if after is not None and not is_id(self.bare(after)):
            raise invalid_request("after: must be the id of a batch.", "after")
        partition = batch_partition(workspace_id)
        start = None if after is None else self._key(partition, after)
        limit, found, corrupt = min(limit, BATCH_PAGE_MAX), list[Batch](), list[str]()
        with refusing_when_unavailable():
            while len(found) <= limit:
                rows, start = await query_rows(
                    self._client,
                    self._table,
                    partition,
                    BATCHES.rows,
                    after=start,
                    limit=_READ_AT_ONCE,
                    backwards=True,
                )
                batches, names = decode_items(self.decode, rows)
                found += (
                    batch
                    for batch in batches
                    if batch.client == client and reach.has(batch.member_id)
                )
                corrupt += names
                if start is None:
                    break
        page = tuple(found[:limit])
        following = page[-1].id if len(found) > limit else None
        return Page(found=page, next=following, unreadable=tuple(corrupt))
