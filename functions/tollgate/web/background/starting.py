"""Creates a background response: admits its request, stores it, and replies at once."""

from collections.abc import Mapping
from functools import partial
from typing import Final

from msgspec import Struct, json

from tollgate.core.background import RESPONSE_PREFIX, BackgroundResponse
from tollgate.core.errors import permission_denied
from tollgate.core.ids import created_s
from tollgate.core.principal import PLAYGROUND
from tollgate.engine.admission import admit, budget_left_percent
from tollgate.engine.batches.waking import wake_worker
from tollgate.engine.files.named_files import find_files_of
from tollgate.engine.gateway import Call, Gateway
from tollgate.engine.generate import planning_request
from tollgate.engine.replies.sink import STREAM_HEADERS, ReplyWriter
from tollgate.ingress.base import ParsedCall, ServedBy
from tollgate.ingress.responses.render import ResponseRenderer
from tollgate.ingress.responses.stored import ENABLE_STORAGE
from tollgate.ingress.shared.media import field_refusal
from tollgate.stores.ports.batches import BackgroundServices
from tollgate.web.background.events import events_name, follow, queued_events
from tollgate.web.background.shown import QUEUED

# The part with the request, from which the worker makes the same call.
REQUEST: Final = "request"
# Headers that only authenticate the caller, which the worker does by the id of the key.
_CREDENTIALS: Final = frozenset({"authorization", "cookie", "proxy-authorization", "x-api-key"})


class StoredRequest(Struct, frozen=True, kw_only=True):
    """A request that waits for its worker."""

    headers: Mapping[str, str]
    """The caller's headers without credentials."""
    body: bytes


async def start_background(
    services: BackgroundServices,
    gateway: Gateway,
    call: Call,
    *,
    headers: Mapping[str, str],
    body: bytes,
    reply: ReplyWriter,
) -> None:
    """Store a request for a worker, and reply with the queued response, or with its events."""
    parsed, days = _check(call)
    await admit(gateway, call.principal, call.request_id)
    if parsed.request.names_files:
        # The caller learns of an unknown file now, and reads of others' files are recorded.
        await find_files_of(gateway, call)
    left = budget_left_percent(gateway, call.principal)
    wanted = partial(planning_request, call, budget_left_percent=left)
    now_s = gateway.clock.now_s()
    await gateway.computations(call).run(lambda: gateway.planner.plan(wanted(), now_s=now_s))
    job = BackgroundResponse(
        id=RESPONSE_PREFIX + call.request_id,
        workspace_id=call.principal.workspace_id,
        key_id=call.principal.key_id,
        member_id=call.principal.owner,
        created_s=created_s(call.request_id),
        days=days,
        user=parsed.request.user,
        streams=parsed.stream,
    )
    shown = _render_queued(gateway, parsed, job)
    request = StoredRequest(
        headers={name: value for name, value in headers.items() if name not in _CREDENTIALS},
        body=body,
    )
    await services.parts.put(job, REQUEST, json.encode(request))
    await services.parts.put(job, QUEUED, shown)
    if job.streams:
        await services.parts.put(job, events_name(0), queued_events(shown))
    await services.store.create(job)
    await wake_worker(services.queue, job)
    named = {"x-request-id": call.request_id}
    if not job.streams:
        await reply.start(200, {"content-type": "application/json", **named})
        await reply.end(shown)
        return
    await reply.start(200, {**STREAM_HEADERS, **named})
    async for frames in follow(services, job, after=-1, deadline=call.deadline):
        await reply.write(frames)
    await reply.end(b"")


def _check(call: Call) -> tuple[ParsedCall, int]:
    """Return the parsed request and the days for which its response is stored."""
    parsed, days = call.parsed, call.principal.response_days
    if call.principal.role == PLAYGROUND:
        # The response's worker would act for the key, so the source would not be the playground.
        raise permission_denied("A playground secret cannot start background responses.")
    if days is None:
        message = f"needs stored responses, and this key stores none: {ENABLE_STORAGE}"
        raise field_refusal("background", message)
    if not isinstance(parsed, ParsedCall) or parsed.stored_input is None:
        raise field_refusal("background", "needs `store: true`, because the answer is read later")
    if parsed.compacts is not None or parsed.window is not None:
        raise field_refusal("background", "a compaction cannot wait: request it on its own")
    return parsed, days


def _render_queued(gateway: Gateway, parsed: ParsedCall, job: BackgroundResponse) -> bytes:
    served = ServedBy(
        generation_id=job.bare_id,
        created_s=job.created_s,
        model=parsed.request.model,
        provider=None,
    )
    renderer = ResponseRenderer(parsed, served, credits_per_usd=gateway.credits_per_usd)
    return renderer.begun("queued")
