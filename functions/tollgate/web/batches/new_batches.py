"""Creates and finds batches, for the routes of both formats."""

from collections.abc import Mapping
from typing import Final

from tollgate.core.batches import BATCH_PREFIX, BATCH_WINDOW_S, Batch, BatchClient
from tollgate.core.errors import RequestError, not_found
from tollgate.core.principal import Principal
from tollgate.engine.batches.waking import wake_worker
from tollgate.stores.ports.batches import BatchPlace, BatchStore
from tollgate.web.own import Own
from tollgate.web.services import Services

_PARAM: Final = "batch_id"


def batch_store(services: Services) -> BatchStore:
    """Return the store of batches; raise RequestError if the deployment has none."""
    if services.batches is None:
        raise not_found("This deployment has no bucket for batches.")
    return services.batches


async def create_batch(
    services: Services,
    principal: Principal,
    *,
    client: BatchClient,
    endpoint: str,
    input_file_id: str,
    metadata: Mapping[str, str],
    output_expires_s: int,
    lines: int = 0,
) -> Batch:
    """Store a batch, which a worker then validates and runs, and wake a worker."""
    now_s = int(services.clock.now_s())
    batch = Batch(
        id=BATCH_PREFIX + services.ids.new_id(),
        workspace_id=principal.workspace_id,
        key_id=principal.key_id,
        member_id=principal.owner,
        client=client,
        endpoint=endpoint,
        input_file_id=input_file_id,
        times={"validating": now_s},
        expires_s=now_s + BATCH_WINDOW_S,
        metadata=metadata,
        lines=lines,
        output_expires_s=output_expires_s,
    )
    await batch_store(services).create(batch)
    await wake_worker(services.batch_queue, batch)
    return batch


async def find_batch(services: Services, own: Own, batch_id: str, client: BatchClient) -> Batch:
    """Return a batch that the caller may reach; raise RequestError(not_found) if there is none."""
    batch = await batch_store(services).get(BatchPlace(own.workspace_id, batch_id))
    if batch is None or batch.client != client or not own.reach.has(batch.member_id):
        raise no_batch()
    return batch


def no_batch() -> RequestError:
    """Return the refusal for an unknown id, which is the same as for another workspace's id."""
    return not_found("There is no such batch in this workspace.", _PARAM)
