"""Routes of message batches, in the format of Anthropic's clients."""

from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request
from msgspec import Struct, json
from starlette.responses import Response

from tollgate.core.batches import KEPT_DAYS, Batch
from tollgate.core.clock import DAY_S
from tollgate.core.errors import invalid_request, not_found
from tollgate.core.files.stored import NewFile
from tollgate.core.principal import Principal
from tollgate.engine.batches.waking import wake_worker
from tollgate.ingress.formats import MESSAGES
from tollgate.stores.ports.batches import BatchPlace
from tollgate.stores.rules.batches import cancel
from tollgate.web.access import MESSAGE_BATCHES
from tollgate.web.admission import By, Caller, OwnThings, admitted_router
from tollgate.web.batches.message_batch_shapes import (
    BatchedMessage,
    DeletedMessageBatch,
    MessageBatchBody,
    MessageBatchList,
    MessageBatchObject,
    batch_id_of,
    shown_id_of,
)
from tollgate.web.batches.new_batches import (
    batch_store,
    create_batch,
    find_batch,
    no_batch,
)
from tollgate.web.files.file_routes import content_reply
from tollgate.web.own import Own
from tollgate.web.services import Services

_LIMIT_MAX: Final = 1_000
_LIMIT_DEFAULT: Final = 20
_CONTENT: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "description": "The results, one JSON object a line.",
        "content": {"application/jsonl": {"schema": {"type": "string", "format": "binary"}}},
    },
    302: {"description": "The URL of the results, which is valid for minutes."},
}


class _Line(Struct, kw_only=True):
    """A request, in the form of a line of the batch's file."""

    custom_id: str
    body: dict[str, Any]
    method: str = "POST"
    url: str = MESSAGES.path


def message_batch_routes(services: Services, *, body_bytes_max: int) -> APIRouter:
    """Return the routes below `/v1/messages/batches`."""
    router = admitted_router(
        services, prefix=MESSAGE_BATCHES, tag="batches", body_bytes_max=body_bytes_max
    )
    _add_creation(router, services)
    _add_batch(router, services)
    return router


def _add_creation(router: APIRouter, services: Services) -> None:
    @router.post("")
    async def create_message_batch(
        request: Request, body: MessageBatchBody, principal: Caller
    ) -> MessageBatchObject:
        """Create a batch of messages, which run within 24 hours; each is billed as a request."""
        _check_ids(body.requests)
        batch = await create_batch(
            services,
            principal,
            client="anthropic",
            endpoint=MESSAGES.path,
            input_file_id=await _store(services, principal, body.requests),
            metadata={},
            output_expires_s=KEPT_DAYS * DAY_S,
            lines=len(body.requests),
        )
        return _shown(request, batch)

    @router.get("")
    async def list_message_batches(
        request: Request,
        own: OwnThings,
        *,
        limit: Annotated[int, Query(ge=1, le=_LIMIT_MAX)] = _LIMIT_DEFAULT,
        after_id: Annotated[
            str | None, Query(max_length=64, description="the id of a message batch")
        ] = None,
    ) -> MessageBatchList:
        """List the message batches that the caller may reach, newest first."""
        page = await batch_store(services).page(
            own.workspace_id,
            limit=limit,
            after=None if after_id is None else batch_id_of(after_id),
            reach=own.reach,
            client="anthropic",
        )
        return MessageBatchList(
            data=[_shown(request, batch) for batch in page.found],
            first_id=shown_id_of(page.found[0]) if page.found else None,
            last_id=shown_id_of(page.found[-1]) if page.found else None,
            has_more=page.next is not None,
        )


def _add_batch(router: APIRouter, services: Services) -> None:
    async def find(own: Own, batch_id: str) -> Batch:
        return await find_batch(services, own, batch_id_of(batch_id), "anthropic")

    @router.get("/{batch_id}")
    async def show_message_batch(
        request: Request, own: OwnThings, batch_id: str
    ) -> MessageBatchObject:
        """Show a message batch with its counts."""
        return _shown(request, await find(own, batch_id))

    @router.get("/{batch_id}/results", responses=_CONTENT, response_class=Response)
    async def show_results(principal: Caller, own: OwnThings, by: By, batch_id: str) -> Response:
        """Download the results of an ended batch: a deployment redirects to its bucket."""
        batch, files = await find(own, batch_id), services.files
        if batch.output_file_id is None or files is None:
            raise not_found("The batch has no results yet.", "batch_id")
        file = await files.get(own.workspace_id, batch.output_file_id)
        found = None if file is None else await files.download(file)
        if file is None or found is None:
            raise not_found("The results were deleted or have expired.", "batch_id")
        await services.note_read(principal, "file", file.id, by=by)
        return content_reply(file, found)

    @router.post("/{batch_id}/cancel")
    async def cancel_message_batch(
        request: Request, own: OwnThings, batch_id: str
    ) -> MessageBatchObject:
        """Cancel a batch: no further request begins; the results of finished requests are kept and
        billed.
        """
        batch = await find(own, batch_id)
        place, now_s = BatchPlace(batch.workspace_id, batch.id), services.clock.now_s()
        cancelled = await batch_store(services).change(place, lambda found: cancel(found, now_s))
        if cancelled is None:
            return _shown(request, await find(own, batch_id))
        await wake_worker(services.batch_queue, cancelled)
        return _shown(request, cancelled)

    @router.delete("/{batch_id}")
    async def delete_message_batch(own: OwnThings, by: By, batch_id: str) -> DeletedMessageBatch:
        """Delete a batch that has ended, with its requests and results."""
        batch = await find(own, batch_id)
        if not batch.is_ended:
            raise invalid_request("A batch that has not ended must be cancelled first.", "batch_id")
        if services.files is None:
            raise no_batch()
        for file_id in filter(None, (batch.input_file_id, batch.output_file_id)):
            await services.check_file_holds(batch.workspace_id, file_id)
            await services.files.delete(batch.workspace_id, file_id, by=by)
        if not await batch_store(services).delete(BatchPlace(batch.workspace_id, batch.id)):
            raise no_batch()
        return DeletedMessageBatch(id=shown_id_of(batch))


def _check_ids(requests: list[BatchedMessage]) -> None:
    """Raise RequestError if two requests have the same id."""
    seen = dict[str, int]()
    for index, each in enumerate(requests):
        first = seen.setdefault(each.custom_id, index)
        if first != index:
            field = f"requests.{index}.custom_id"
            raise invalid_request(f"{field}: requests[{first}] has the same custom_id.", field)


async def _store(services: Services, principal: Principal, requests: list[BatchedMessage]) -> str:
    """Store the requests as the batch's file, and return the file's id."""
    if services.files is None:
        raise not_found("This deployment has no bucket for batches.")
    content = b"".join(
        json.encode(_Line(custom_id=each.custom_id, body=each.params)) + b"\n" for each in requests
    )
    new = NewFile(
        workspace_id=principal.workspace_id,
        key_id=principal.key_id,
        member_id=principal.owner,
        filename="requests.jsonl",
        purpose="batch",
        media_type="application/jsonl",
        expires_after_s=KEPT_DAYS * DAY_S,
    )
    return (await services.files.create(await services.for_workspace(new), content)).id


def _shown(request: Request, batch: Batch) -> MessageBatchObject:
    # The URL includes /api, because every host serves paths below /api, and API Gateway's own
    # domain serves no others.
    host = f"{request.url.scheme}://{request.url.netloc}"
    return MessageBatchObject.of(batch, f"{host}/api{MESSAGE_BATCHES}")
