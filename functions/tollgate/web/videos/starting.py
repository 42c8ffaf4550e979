"""Creates a video: holds its price, stores its request for a worker, and replies at once."""

from collections.abc import Mapping
from functools import partial
from typing import Final

from msgspec import Struct, json
from msgspec.structs import replace

from tollgate.core.errors import ErrorCode, GatewayError, permission_denied
from tollgate.core.ids import created_s
from tollgate.core.principal import PLAYGROUND
from tollgate.core.records.generation import GenerationRecord
from tollgate.core.usage import Usage
from tollgate.core.videos import VIDEO_PREFIX, Video
from tollgate.core.work.video import VideoRequest
from tollgate.engine.admission import admit, budget_left_percent
from tollgate.engine.batches.waking import wake_worker
from tollgate.engine.files.named_files import find_files_of
from tollgate.engine.gateway import Call, Gateway
from tollgate.engine.generate import planning_request
from tollgate.engine.guardrails.guards import find_guards
from tollgate.engine.replies.sink import ReplyWriter
from tollgate.engine.uncancelled import run_uncancelled
from tollgate.ingress.work.videos.format import show_video
from tollgate.routing.planning.plan import Attempt, Plan
from tollgate.routing.price import PriceSchedule, bill
from tollgate.stores.ports.base import Hold
from tollgate.stores.ports.batches import VideoServices
from tollgate.stores.rules.sweep import lost_generation

# Headers with credentials, which are not stored: the worker finds the caller by the key's id.
_CREDENTIALS: Final = frozenset({"authorization", "cookie", "proxy-authorization", "x-api-key"})


class VideoOffer(Struct, frozen=True):
    """An endpoint that may make the video, with the price at the time of the request."""

    endpoint_id: str
    prices: PriceSchedule


class QueuedVideo(Struct, frozen=True, kw_only=True):
    """The stored request for a video, with what workers need to submit and bill it."""

    headers: Mapping[str, str]
    """The caller's headers without credentials."""
    body: bytes
    hold: Hold
    offers: tuple[VideoOffer, ...]
    """The endpoints in the order of the plan; there is at least one."""
    next_on: frozenset[ErrorCode]
    """Kinds of refusals after which the next endpoint is tried."""


async def start_video(
    services: VideoServices,
    gateway: Gateway,
    call: Call,
    *,
    headers: Mapping[str, str],
    body: bytes,
    reply: ReplyWriter,
) -> None:
    """Hold the price of a video, store its request for a worker, and reply with the video."""
    request, principal = call.parsed.request, call.principal
    if not isinstance(request, VideoRequest):
        raise TypeError("not a request for a video")
    if principal.role == PLAYGROUND:
        # The worker would act for the key, and record `api` as the source instead of `playground`.
        raise permission_denied("A playground secret cannot create videos.")
    await admit(gateway, principal, call.request_id)
    if request.names_files:
        await find_files_of(gateway, call)
    plan = await _plan(gateway, call)
    if gateway.planner.catalog.guardrails or principal.guardrails:
        await gateway.computations(call).run(partial(find_guards, gateway, call, plan))
    queued, cancelled = await run_uncancelled(
        _queue(services, gateway, call, request=request, plan=plan, headers=headers, body=body)
    )
    if cancelled is not None:
        raise cancelled
    await reply.start(200, {"content-type": "application/json", "x-request-id": queued.bare_id})
    await reply.end(show_video(queued).model_dump_json().encode())


async def _plan(gateway: Gateway, call: Call) -> Plan:
    left = budget_left_percent(gateway, call.principal)
    wanted = partial(planning_request, call, budget_left_percent=left)
    now_s = gateway.clock.now_s()
    return await gateway.computations(call).run(lambda: gateway.planner.plan(wanted(), now_s=now_s))


async def _queue(
    services: VideoServices,
    gateway: Gateway,
    call: Call,
    *,
    request: VideoRequest,
    plan: Plan,
    headers: Mapping[str, str],
    body: bytes,
) -> Video:
    """Hold the whole price, and store the video; release the hold if it cannot be stored."""
    now_s = gateway.clock.now_s()
    offers = [_offer(attempt, request, now_s) for attempt in plan.attempts]
    try:
        # The cost of a video is known exactly, so credit must cover it, whatever `admission` says.
        hold = await gateway.ledger.hold(
            call.principal,
            max(_price_nano_usd(offer, request) for offer in offers),
            call.request_id,
            tokens=plan.tokens_max,
            covered=True,
            tier=plan.tier,
            session=call.session,
            models=plan.models,
        )
    finally:
        gateway.admissions.end(call.principal, call.request_id)
    video = Video(
        id=VIDEO_PREFIX + hold.id,
        workspace_id=hold.workspace_id,
        key_id=hold.key_id,
        member_id=call.principal.owner,
        user=request.user,
        created_s=created_s(hold.id),
        model=request.model,
        seconds=request.seconds,
        size=request.size,
    )
    open_ids = plan.under_quotas(hold.used_up).endpoint_ids
    queued = QueuedVideo(
        headers={name: value for name, value in headers.items() if name not in _CREDENTIALS},
        body=body,
        hold=replace(hold, rate_limit=None, token_limit=None, warning=None, tier=None),
        offers=tuple(offer for offer in offers if offer.endpoint_id in open_ids),
        next_on=plan.next_on,
    )
    try:
        await services.requests.put(video, json.encode(queued))
        await services.store.create(video)
    except GatewayError as failure:
        await gateway.ledger.settle(hold, unmade_record(hold, failure))
        raise
    await wake_worker(services.queue, video)
    return video


def _offer(attempt: Attempt, request: VideoRequest, now_s: float) -> VideoOffer:
    price = attempt.prices.at(now_s, 0, request.picture)
    return VideoOffer(attempt.target.endpoint_id, PriceSchedule(base=price))


def _price_nano_usd(offer: VideoOffer, request: VideoRequest) -> int:
    """Return the exact price of the video at an endpoint."""
    whole = Usage(video_seconds=request.seconds)
    return sum(line.cost_nano_usd for line in bill(whole, offer.prices.base))


def unmade_record(hold: Hold, failure: GatewayError) -> GenerationRecord:
    """Return the record, at cost 0, of a video that was refused or removed."""
    lost = lost_generation(
        hold.id, hold.workspace_id, hold.key_id, held_nano_usd=hold.wallet_nano_usd
    )
    return replace(lost, outcome="error", error=failure.code.value)
