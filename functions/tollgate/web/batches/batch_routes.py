"""Routes that create, list, show and cancel batches, in the format of OpenAI's clients."""

from typing import Annotated, Final

from fastapi import APIRouter, Query

from tollgate.core.errors import invalid_request, not_found
from tollgate.core.files.stored import StoredFile
from tollgate.engine.batches.lines import BATCH_FORMATS
from tollgate.engine.batches.waking import wake_worker
from tollgate.stores.ports.batches import BatchPlace
from tollgate.stores.rules.batches import cancel
from tollgate.web.admission import By, Caller, OwnThings, admitted_router
from tollgate.web.batches.batch_shapes import BatchBody, BatchList, BatchObject
from tollgate.web.batches.new_batches import (
    batch_store,
    create_batch,
    find_batch,
)
from tollgate.web.own import Own
from tollgate.web.services import Services

_LIMIT_MAX: Final = 100
_LIMIT_DEFAULT: Final = 20


def batch_routes(services: Services) -> APIRouter:
    """Return the routes below `/v1/batches`."""
    router = admitted_router(services, prefix="/v1/batches", tag="batches")

    @router.post("")
    async def create(body: BatchBody, principal: Caller, own: OwnThings, by: By) -> BatchObject:
        """Create a batch of the requests in a file, which run within 24 hours.

        The file is validated before any of its lines runs. Each line is billed as a request.
        """
        if body.endpoint not in BATCH_FORMATS:
            offered = ", ".join(BATCH_FORMATS)
            raise invalid_request(f"endpoint: must be one of {offered}.", "endpoint")
        file = await _find_file(services, own, body.input_file_id)
        if file.member_id != principal.owner:
            await services.note_read(principal, "file", file.id, by=by)
        batch = await create_batch(
            services,
            principal,
            client="openai",
            endpoint=body.endpoint,
            input_file_id=body.input_file_id,
            metadata=body.metadata or {},
            output_expires_s=body.output_expires_s,
        )
        return BatchObject.of(batch)

    @router.get("")
    async def list_batches(
        own: OwnThings,
        *,
        limit: Annotated[int, Query(ge=1, le=_LIMIT_MAX)] = _LIMIT_DEFAULT,
        after: Annotated[str | None, Query(max_length=64, description="the id of a batch")] = None,
    ) -> BatchList:
        """List the batches that the caller may reach, newest first."""
        page = await batch_store(services).page(
            own.workspace_id, limit=limit, after=after, reach=own.reach, client="openai"
        )
        return BatchList(
            data=[BatchObject.of(batch) for batch in page.found],
            first_id=page.found[0].id if page.found else None,
            last_id=page.found[-1].id if page.found else None,
            has_more=page.next is not None,
            unreadable=list(page.unreadable),
        )

    @router.get("/{batch_id}")
    async def show(own: OwnThings, batch_id: str) -> BatchObject:
        """Show a batch with its counts and its cost so far."""
        return BatchObject.of(await find_batch(services, own, batch_id, "openai"))

    @router.post("/{batch_id}/cancel")
    async def cancel_batch(own: OwnThings, batch_id: str) -> BatchObject:
        """Cancel a batch: no further line begins; the results of finished lines are kept and
        billed.
        """
        batch = await find_batch(services, own, batch_id, "openai")
        place, now_s = BatchPlace(batch.workspace_id, batch.id), services.clock.now_s()
        cancelled = await batch_store(services).change(place, lambda found: cancel(found, now_s))
        if cancelled is None:
            # The batch has ended, or its results are being written.
            return BatchObject.of(await find_batch(services, own, batch_id, "openai"))
        await wake_worker(services.batch_queue, cancelled)
        return BatchObject.of(cancelled)

    return router


async def _find_file(services: Services, own: Own, file_id: str) -> StoredFile:
    """Return a file of purpose `batch` that the caller may reach; raise RequestError for others."""
    file = None if services.files is None else await services.files.get(own.workspace_id, file_id)
    if file is None or not own.has_file(file):
        raise not_found("There is no such file in this workspace.", "input_file_id")
    if file.purpose != "batch":
        raise invalid_request(
            f"input_file_id: the file has the purpose {file.purpose}, and a batch needs `batch`.",
            "input_file_id",
        )
    return file
