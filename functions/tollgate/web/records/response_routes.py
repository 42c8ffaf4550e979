"""Routes that show and delete the stored responses of a workspace."""

import logging
from functools import partial
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Depends, HTTPException, Query, Request
from pydantic import BaseModel, Field
from pydantic_core import to_json
from starlette.responses import Response

from tollgate.core.background import BackgroundResponse
from tollgate.core.errors import RequestError, invalid_request, not_found
from tollgate.core.json_value import JsonObject
from tollgate.core.principal import Principal
from tollgate.core.records.audit import Actor
from tollgate.engine.side_thread import LARGE_BYTES
from tollgate.ingress.formats import RESPONSES
from tollgate.ingress.responses.stored import HOW_TO_STORE, StoredResponse, response_generation
from tollgate.stores.ports.administration import ResponseStore
from tollgate.web.admission import By, Caller, OwnThings, admitted_router
from tollgate.web.background.reading import (
    cancel_background,
    delete_background,
    find_background,
    show_background,
    stream_background,
)
from tollgate.web.http.paths import STREAMING_PATHS
from tollgate.web.http.reply import REPLY_BYTES_MAX, size_in_reply
from tollgate.web.own import Own
from tollgate.web.records.generation_routes import find_record
from tollgate.web.services import Services

_log: Final = logging.getLogger(__name__)

_LIMIT_MAX: Final = 100
_PARAM: Final = "response_id"
_SHOWN: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "description": "The response as it was sent.",
        "content": {
            "application/json": {"schema": {"$ref": "#/components/schemas/ResponseObject"}}
        },
    }
}
_Include = Annotated[
    list[Annotated[str, Field(max_length=128)]] | None,
    Query(
        alias="include[]",
        max_length=32,
        description="accepted, but everything stored is shown anyway",
    ),
]


class DeletedResponse(BaseModel):
    """A response that was deleted."""

    id: str
    object: Literal["response"] = "response"
    deleted: Literal[True] = True


class InputItems(BaseModel):
    """A page of input items, including the items of earlier turns."""

    object: Literal["list"] = "list"
    data: list[dict[str, Any]]
    first_id: str | None
    last_id: str | None
    has_more: bool


async def _read_id(request: Request, response_id: str) -> str:
    """Return the id in a path; reply with status 405 if the path belongs to a route that is not
    supported.
    """
    if request.scope["path"] in STREAMING_PATHS:
        raise HTTPException(405)
    return response_id


_ResponseId = Annotated[str, Depends(_read_id)]


def response_routes(services: Services) -> APIRouter:
    """Return the routes below `/v1/responses`."""
    router = admitted_router(services, prefix=RESPONSES.path, tag=RESPONSES.tag)
    _add_show(router, services)

    @router.delete("/{response_id}")
    async def delete_response(
        principal: Caller, own: OwnThings, by: By, response_id: _ResponseId
    ) -> DeletedResponse:
        """Delete a stored response; later responses that continue it keep its items."""
        responses, generation_id = await _reach(services, principal, own, response_id)
        job = await find_background(services, own, response_id)
        if job is not None and not job.is_ended:
            raise invalid_request("The response must be cancelled first.", _PARAM)
        held = job.generation_id if job is not None and job.generation_id else generation_id
        await services.check_response_holds(principal.workspace_id, held)
        deleted = await responses.delete(principal.workspace_id, generation_id, by=by)
        if job is not None:
            deleted = await delete_background(services, job)
        if not deleted:
            raise _not_found(principal)
        return DeletedResponse(id=response_id)

    @router.get("/{response_id}/input_items")
    async def list_input_items(
        principal: Caller,
        own: OwnThings,
        by: By,
        response_id: str,
        *,
        limit: Annotated[int, Query(ge=1, le=_LIMIT_MAX)] = 20,
        after: Annotated[str | None, Query(max_length=128, description="the id of an item")] = None,
        order: Literal["asc", "desc"] = "desc",
        include: _Include = None,
    ) -> InputItems:
        """List the items of a stored response's input, including earlier turns."""
        stored = await _find(services, principal, own, response_id)
        await services.note_read(principal, "response", response_id, by=by)
        items = _after(list(stored.input if order == "asc" else reversed(stored.input)), after)
        page = _first(items, limit)
        return InputItems(
            data=[dict(item) for item in page],
            first_id=_id_of(page[0]) if page else None,
            last_id=_id_of(page[-1]) if page else None,
            has_more=len(items) > len(page),
        )

    _add_cancel(router, services)
    return router


def _add_show(router: APIRouter, services: Services) -> None:
    """Add the route that shows a response or streams its events."""

    @router.get("/{response_id}", responses=_SHOWN, response_class=Response)
    async def show_response(
        principal: Caller,
        own: OwnThings,
        by: By,
        response_id: _ResponseId,
        *,
        request: Request,
        include: _Include = None,
        stream: Annotated[
            bool | None,
            Query(description="the events of a background response created with `stream: true`"),
        ] = None,
        starting_after: Annotated[
            int, Query(ge=-1, description="the number of the last event that the caller has")
        ] = -1,
    ) -> Response:
        """Show a stored response of this workspace, or a background response in any state."""
        job = await find_background(services, own, response_id)
        if job is not None:
            if not stream:
                return await _show_job(services, principal, job, by=by)
            await services.note_read(principal, "response", response_id, by=by)
            return stream_background(services, job, request.scope, after=starting_after)
        if stream:
            raise invalid_request(
                "stream: only background responses can be streamed again; leave it out.", "stream"
            )
        stored = await _find(services, principal, own, response_id)
        await services.note_read(principal, "response", response_id, by=by)
        return Response(stored.response, media_type="application/json")


def _add_cancel(router: APIRouter, services: Services) -> None:
    """Add the route that cancels background responses."""

    @router.post("/{response_id}/cancel", responses=_SHOWN, response_class=Response)
    async def cancel_response(
        principal: Caller, own: OwnThings, by: By, response_id: str
    ) -> Response:
        """Cancel a background response; one that has ended is only shown.

        A generation that runs is billed for its output until then.
        """
        job = await find_background(services, own, response_id)
        if job is not None:
            cancelled = await cancel_background(services, job)
            return await _show_job(services, principal, cancelled, by=by)
        await _find(services, principal, own, response_id)
        raise invalid_request(
            "Cannot cancel a synchronous response. Only responses with `background: true` can be "
            "cancelled.",
            _PARAM,
        )


async def _show_job(
    services: Services, principal: Principal, job: BackgroundResponse, *, by: Actor
) -> Response:
    """Return a background response in its present state; record the read if it may have content."""
    if job.generation_id is not None:
        await services.note_read(principal, "response", job.id, by=by)
    return await show_background(services, job)


async def _find(
    services: Services, principal: Principal, own: Own, response_id: str
) -> StoredResponse:
    """Return a stored response that the caller can access; raise RequestError if there is none."""
    responses, generation_id = await _reach(services, principal, own, response_id)
    stored = await responses.get(principal.workspace_id, generation_id)
    if stored is None:
        raise _not_found(principal)
    try:
        return await services.side.run(
            principal.workspace_id,
            partial(StoredResponse.from_bytes, stored),
            is_large=len(stored) > LARGE_BYTES,
        )
    except ValueError as corrupt:
        _log.error("the stored response resp_%s is corrupt: %s", generation_id, corrupt)
        raise _not_found(principal) from corrupt


async def _reach(
    services: Services, principal: Principal, own: Own, response_id: str
) -> tuple[ResponseStore, str]:
    """Return the store of responses, and the id of a response's generation.

    Raises RequestError for a response that the caller cannot access. Once the record of a
    generation has expired, its response is accessible only to callers with access to the whole
    workspace.
    """
    generation_id = response_generation(response_id)
    if generation_id is None or services.responses is None:
        raise _not_found(principal)
    if await find_background(services, own, response_id) is not None:
        return services.responses, generation_id
    if not own.is_all and await find_record(services, own, generation_id) is None:
        raise _not_found(principal)
    return services.responses, generation_id


def _not_found(principal: Principal) -> RequestError:
    """Return the refusal for an unknown id, which is the same as for an id of another workspace."""
    if principal.role == "inference" and principal.response_days is None:
        return invalid_request(HOW_TO_STORE, _PARAM)
    return not_found("There is no such stored response in this workspace.", _PARAM)


def _after(items: list[JsonObject], after: str | None) -> list[JsonObject]:
    if after is None:
        return items
    for place, item in enumerate(items):
        if _id_of(item) == after:
            return items[place + 1 :]
    raise invalid_request("after: the input has no such item.", "after")


def _first(items: list[JsonObject], limit: int) -> list[JsonObject]:
    """Return up to `limit` items, but at least one, that fit into a reply on the platform."""
    size = 0
    for place, item in enumerate(items[:limit]):
        size += size_in_reply(to_json(item))
        if place and size > REPLY_BYTES_MAX:
            return items[:place]
    return items[:limit]


def _id_of(item: JsonObject) -> str:
    return str(item["id"])
