"""The batches of a workspace in DynamoDB."""

from tollgate.aws.aws_json import AwsCaller
from tollgate.core.batches import Batch, BatchClient
from tollgate.core.clock import Clock
from tollgate.core.ids import IdSource
from tollgate.core.ownership import WHOLE_WORKSPACE, OwnerScope
from tollgate.core.pages import Page
from tollgate.stores.batches.jobs import BATCHES, DynamoJobStore


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
        return await self.page_of(
            workspace_id,
            lambda batch: batch.client == client and reach.has(batch.member_id),
            limit=limit,
            after=after,
        )
