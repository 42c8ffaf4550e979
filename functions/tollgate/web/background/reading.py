"""Finds, shows, streams and cancels background responses for their callers."""

from collections.abc import AsyncIterator
from functools import partial
from typing import Final

from starlette.responses import Response, StreamingResponse
from starlette.types import Scope

from tollgate.core.background import BackgroundResponse
from tollgate.core.clock import Deadline
from tollgate.core.errors import RequestError, invalid_request, not_found
from tollgate.engine.replies.sink import STREAM_HEADERS
from tollgate.ingress.responses.stored import response_generation
from tollgate.stores.ports.batches import BackgroundServices, BatchPlace
from tollgate.stores.rules.background import cancel_answer
from tollgate.web.background.events import follow
from tollgate.web.background.shown import show_state
from tollgate.web.own import Own
from tollgate.web.services import Services

# Seconds for which one request follows a stream, which callers resume. A buffered function replies
# with the events so far, well before its platform's limit of 29 seconds and 6 MB.
_FOLLOW_S: Final = 840.0
_BUFFERED_S: Final = 20.0
_BUFFERED_BYTES_MAX: Final = 4_000_000
_BUFFERED: Final = "aws.context"


async def find_background(
    services: Services, own: Own, response_id: str
) -> BackgroundResponse | None:
    """Return a background response that the caller may reach; None if there is none."""
    if services.background is None or response_generation(response_id) is None:
        return None
    place = BatchPlace(own.workspace_id, response_id)
    job = await services.background.store.get(place)
    if job is None or not own.reach.has(job.member_id):
        return None
    # The table deletes expired items only after a while.
    return job if services.clock.now_s() < job.created_s + job.kept_s else None


async def show_background(services: Services, job: BackgroundResponse) -> Response:
    """Return a response in its present state; raise RequestError if its contents are gone."""
    shown = await show_state(job, _stores(services).parts)
    if shown is None:
        raise _gone()
    return Response(shown, media_type="application/json")


def stream_background(
    services: Services, job: BackgroundResponse, scope: Scope, *, after: int
) -> Response:
    """Return the events of a response whose number is above `after`."""
    if not job.streams:
        raise invalid_request(
            "stream: only a response that was created with `stream: true` can be streamed.",
            "stream",
        )
    buffered = _BUFFERED in scope
    deadline = Deadline.within(services.clock, _BUFFERED_S if buffered else _FOLLOW_S)
    events = follow(_stores(services), job, after=after, deadline=deadline)
    return StreamingResponse(
        _first_bytes(events) if buffered else events, headers=dict(STREAM_HEADERS)
    )


async def cancel_background(services: Services, job: BackgroundResponse) -> BackgroundResponse:
    """Cancel a response unless it has ended, and return its last state."""
    store, now_s = _stores(services).store, services.clock.now_s()
    place = BatchPlace(job.workspace_id, job.id)
    cancelled = await store.change(place, partial(cancel_answer, now_s=now_s))
    found = cancelled or await store.get(place)
    if found is None:
        raise _gone()
    return found


async def delete_background(services: Services, job: BackgroundResponse) -> bool:
    """Delete a response that has ended, with its request and events; return False if another
    caller has deleted it.
    """
    stores = _stores(services)
    await stores.parts.clear(job)
    return await stores.store.delete(BatchPlace(job.workspace_id, job.id))


def _stores(services: Services) -> BackgroundServices:
    if services.background is None:
        raise RuntimeError("a background response without stores")
    return services.background


async def _first_bytes(events: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    size_bytes = 0
    async for frames in events:
        yield frames
        size_bytes += len(frames)
        if size_bytes > _BUFFERED_BYTES_MAX:
            return


def _gone() -> RequestError:
    return not_found("The response was deleted or has expired.", "response_id")
