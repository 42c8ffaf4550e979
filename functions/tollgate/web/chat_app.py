"""The streaming application, which serves the metered routes."""

from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace
from starlette.middleware import Middleware
from starlette.routing import Router
from starlette.types import ASGIApp, Receive, Scope
from typing_extensions import override

from tollgate.core.clock import DEADLINE_EXTENSION, Deadline
from tollgate.core.dotted_names import DottedName
from tollgate.core.errors import GatewayError, InternalError, invalid_request
from tollgate.core.idempotency import Claim
from tollgate.core.request import GenerationRequest
from tollgate.core.tracing import PlatformIds
from tollgate.core.work.base import Work
from tollgate.core.work.kinds import WORK_KINDS
from tollgate.engine.admission import budget_left_percent
from tollgate.engine.ceilings import find_limits, in_session
from tollgate.engine.gateway import Call, Gateway
from tollgate.engine.generate import SETTLE_BUDGET_S, generate, planning_request
from tollgate.engine.replies.content_log import ContentLog, ContentSink
from tollgate.engine.replies.kept_answers import AnswerStore
from tollgate.engine.replies.reply_sink import reply_sink
from tollgate.engine.replies.sink import (
    ClientGone,
    EventSink,
    refused_headers,
    request_headers,
    send_error,
)
from tollgate.engine.side_thread import LARGE_BYTES
from tollgate.ingress.base import ParsedCall, ParsedWork, Routed
from tollgate.ingress.format_rows import IngressFormat
from tollgate.ingress.formats import FORMATS, RESPONSES
from tollgate.routing.planning.catalog import Catalog
from tollgate.stores.ports.base import SealKeys
from tollgate.stores.ports.batches import BackgroundServices, ShadowServices, VideoServices
from tollgate.web.generation.endpoints import ByPath, LazyCounting
from tollgate.web.generation.entrance import (
    Entered,
    Entrance,
    FormatEndpoint,
    Gateways,
    RequestServices,
    labels_of,
)
from tollgate.web.generation.idempotency import claim_of, generate_once
from tollgate.web.http.cors import WebLimits, cors
from tollgate.web.http.paths import CanonicalPath
from tollgate.web.http.reply import AsgiReply, unless_gone
from tollgate.web.http.request_id import (
    RequestIds,
    client_request_id,
    platform_ids_of,
    request_id_of,
)
from tollgate.web.http.source_address import source_address
from tollgate.web.http.unknown_callers import unknown_callers

# Imported at first use, because most processes never serve such requests.
_APPLY_PRESET: Final = DottedName[Callable[[Catalog, ParsedCall], ParsedCall]](
    "tollgate.engine.presets:apply_preset"
)
_STORING_SINK: Final = DottedName[Callable[..., EventSink]](
    "tollgate.web.records.response_storage:StoringSink"
)

ShadowSource = Callable[[], ShadowServices | None]
_SHADOW_SINK: Final = DottedName[Callable[..., EventSink]](
    "tollgate.web.shadows.sending:shadow_sink"
)
BackgroundSource = Callable[[], BackgroundServices | None]
_START_BACKGROUND: Final = DottedName[Callable[..., Coroutine[Any, Any, None]]](
    "tollgate.web.background.starting:start_background"
)
VideoSource = Callable[[], VideoServices | None]
_START_VIDEO: Final = DottedName[Callable[..., Coroutine[Any, Any, None]]](
    "tollgate.web.videos.starting:start_video"
)


def chat_app(
    services: RequestServices,
    gateways: Gateways,
    limits: WebLimits,
    *,
    answers: AnswerStore | None = None,
    contents: ContentLog | None = None,
    responses: ContentLog | None = None,
    seals: SealKeys | None = None,
    background: BackgroundSource | None = None,
    shadows: ShadowSource | None = None,
    videos: VideoSource | None = None,
) -> ASGIApp:
    """Return the app that serves the metered routes.

    `answers` stores replies for Idempotency-Key; without it, the header is refused. `contents`
    stores the content of keys that opt in, and `responses` stores the responses that later requests
    may refer to. `seals` has the keys that seal compacted conversations. `background` returns the
    stores of responses that workers answer, `shadows` that of shadow runs, and `videos` those of
    videos; each may be None.
    """
    endpoints: dict[str, ASGIApp] = {}
    for format_ in FORMATS:
        refers = format_.parse_read is not None
        entrance = Entrance(
            services,
            gateways,
            limits,
            responses=responses if refers else None,
            seals=seals if refers else None,
        )
        endpoints[format_.path] = MeteredEndpoint(
            format_,
            entrance,
            answers=answers,
            contents=contents,
            background=background if format_ is RESPONSES else None,
            shadows=shadows,
            videos=videos,
        )
        if format_.alias is not None:
            endpoints[format_.alias.path] = endpoints[format_.path]
        if format_.counting is not None:
            endpoints[format_.counting.path] = LazyCounting(format_, entrance)
    # A bare router is enough, because each endpoint handles all of its failures.
    return Router(
        redirect_slashes=False,
        default=ByPath(endpoints),
        middleware=[
            *source_address(limits),
            *unknown_callers(limits, services.clock),
            Middleware(RequestIds, ids=services.ids),
            Middleware(CanonicalPath),
            cors(limits),
        ],
    )


class _Admitted(Struct, frozen=True, kw_only=True):
    gateway: Gateway
    call: Call
    claim: Claim | None
    body: bytes
    sent: bytes
    """The body as it was sent, while `body` describes a form as JSON."""
    headers: Mapping[str, str]


class MeteredEndpoint(FormatEndpoint):
    """An ASGI endpoint that authenticates, parses and generates, in one client format."""

    def __init__(
        self,
        format_: IngressFormat,
        entrance: Entrance,
        *,
        answers: AnswerStore | None,
        contents: ContentLog | None,
        background: BackgroundSource | None = None,
        shadows: ShadowSource | None = None,
        videos: VideoSource | None = None,
    ) -> None:
        super().__init__(format_, entrance)
        self._videos = videos
        self._background = background
        self._shadows = shadows
        self._answers = answers
        self._contents = contents

    @override
    async def _serve(self, scope: Scope, receive: Receive, reply: AsgiReply) -> None:
        request_id = request_id_of(scope)
        admitted: _Admitted | None = None
        try:
            admitted = await self._admit(scope, receive)
            await unless_gone(self._answer(admitted, reply), receive)
        except ClientGone:
            raise
        except GatewayError as refusal:
            parsed = admitted.call.parsed if admitted else None
            named = refused_headers(self._ingress, refusal, request_id, parsed)
            routed = await _routed(admitted) if admitted else None
            await send_error(reply, self._ingress, refusal, named, routed=routed)
        except Exception as unexpected_error:
            self._services.journal.unexpected_error(unexpected_error, request_id)
            if reply.started:
                raise
            named = request_headers(request_id)
            await send_error(reply, self._ingress, InternalError(), named)
        finally:
            if admitted is not None:
                admitted.gateway.admissions.end(admitted.call.principal, admitted.call.request_id)

    async def _admit(self, scope: Scope, receive: Receive) -> _Admitted:
        entered = await self._entrance.enter(scope, receive)
        try:
            return await self._parse(entered, scope)
        except BaseException:
            self._entrance.leave(entered)
            raise

    async def _parse(self, entered: Entered, scope: Scope) -> _Admitted:
        gateway = entered.gateway
        call, body = await self.read_call(entered, self._deadline(scope), platform_ids_of(scope))
        if not call.parsed.stream:
            sooner = call.deadline.sooner(gateway.timing.non_streamed_total_s)
            call = replace(call, deadline=sooner)
        claim = await self._entrance.compute(
            entered, partial(claim_of, entered.headers, call, path=scope["path"], body=body)
        )
        if claim is not None and call.parsed.episode_id is None:
            # The episode id is stored with the answer, because a replay belongs to the same
            # episode.
            named = replace(call.parsed, episode_id=self._services.ids.new_uuid7())
            call = replace(call, parsed=named)
        return _Admitted(
            gateway=gateway,
            call=call,
            claim=claim,
            body=body,
            sent=entered.body,
            headers=entered.headers,
        )

    async def read_call(
        self, entered: Entered, deadline: Deadline, platform_ids: PlatformIds
    ) -> tuple[Call, bytes]:
        """Parse a request, and return its call and its body as JSON."""
        headers, gateway, body = entered.headers, entered.gateway, entered.body
        entrance = self._entrance
        parsed: ParsedWork | None = await entrance.parse_read(entered, self._format)
        if parsed is None:
            parse = partial(self._ingress.parse, body, headers)
            parsed = await entrance.compute(entered, parse)
        if isinstance(parsed, ParsedCall) and parsed.request.preset is not None:
            apply = partial(_APPLY_PRESET(), gateway.planner.catalog, parsed)
            parsed = await entrance.compute(entered, apply)
        body = parsed.described or body
        parsed = replace(
            parsed,
            request=in_session(parsed.request, headers),
            tells_routing=_enables(headers, "x-tollgate-metadata"),
            shows_provider=_enables(headers, "x-tollgate-provider-errors"),
        )
        limits = find_limits(headers, entered.principal, parsed.request)
        if isinstance(parsed, ParsedCall) and parsed.usage_on is None:
            parsed = replace(parsed, usage_on=entered.principal.usage_on)
        call = Call(
            principal=entered.principal,
            reach=entered.reach,
            parsed=parsed,
            request_id=entered.request_id,
            ingress_format=self._format.name,
            deadline=deadline,
            client_request_id=client_request_id(headers),
            platform_ids=platform_ids,
            labels=labels_of(entered, parsed),
            ceilings=limits.ceilings,
            session=limits.session,
            cache_control=headers.get("cache-control", ""),
            fallbacks=headers.get("x-disable-fallback", "").lower() != "true",
            is_large=entered.is_large or _is_large(parsed.request),
        )
        return call, body

    async def _answer(self, admitted: _Admitted, reply: AsgiReply) -> None:
        call, gateway = admitted.call, admitted.gateway
        if isinstance(call.parsed, ParsedCall) and call.parsed.background:
            services = None if self._background is None else self._background()
            await self._start(_START_BACKGROUND, services, admitted, reply, field="background")
            return
        if WORK_KINDS[call.parsed.request.kind].is_job:
            stores = None if self._videos is None else self._videos()
            await self._start(_START_VIDEO, stores, admitted, reply, field="model")
            return
        sink = self._sink(reply, admitted)
        if admitted.claim is None:
            await generate(gateway, call, sink)
            return
        if self._answers is None:
            raise invalid_request(
                "Idempotency-Key needs stored replies, and this deployment stores none."
            )
        await generate_once(
            gateway,
            self._answers,
            admitted.claim,
            call=call,
            sink=sink,
            reply=reply,
            ingress=self._ingress,
        )

    async def _start(
        self,
        start: DottedName[Callable[..., Coroutine[Any, Any, None]]],
        services: BackgroundServices | VideoServices | None,
        admitted: _Admitted,
        reply: AsgiReply,
        *,
        field: str,
    ) -> None:
        """Store a request for a worker; `field` asks for that."""
        if services is None:
            raise invalid_request(f"{field}: this deployment has no bucket.", field)
        if admitted.claim is not None:
            raise invalid_request("Idempotency-Key: not for requests that a worker answers.")
        gateway, call, headers = admitted.gateway, admitted.call, admitted.headers
        await start()(services, gateway, call, headers=headers, body=admitted.sent, reply=reply)

    def _sink(self, reply: AsgiReply, admitted: _Admitted) -> EventSink:
        call, gateway, around = admitted.call, admitted.gateway, self._storing(admitted)
        sink = reply_sink(gateway, reply, self._ingress, call.parsed, around=around)
        return self._shadowing(self.logging_sink(sink, gateway, call, admitted.body), gateway, call)

    def _shadowing(self, sink: EventSink, gateway: Gateway, call: Call) -> EventSink:
        """Return a sink that also hands a drawn request to its route's shadow."""
        if self._contents is None or self._shadows is None or call.principal.content_days is None:
            return sink
        route = gateway.planner.route_of(call.parsed.request.model)
        shadow = None if route is None else gateway.planner.catalog.routes[route].shadow
        services = None if shadow is None else self._shadows()
        if services is None:
            return sink
        return _SHADOW_SINK()(sink, gateway, call, services, route=route, shadow=shadow)

    def logging_sink(self, sink: EventSink, gateway: Gateway, call: Call, body: bytes) -> EventSink:
        """Return a sink that also stores the content, if the caller's key opts in."""
        days = call.principal.content_days
        if self._contents is None or days is None:
            return sink
        work = call.parsed.request
        return ContentSink(sink, self._contents, side=gateway.side, body=body, work=work, days=days)

    def _storing(self, admitted: _Admitted) -> Callable[[EventSink], EventSink] | None:
        """Return a wrapper for the reply's sink that stores the response; None to store nothing."""
        call, days = admitted.call, admitted.call.principal.response_days
        responses, input_ = self._entrance.responses, call.parsed.stored_input
        if responses is None or days is None or input_ is None:
            return None
        return partial(
            _STORING_SINK(),
            responses=responses,
            call=call,
            input_=input_,
            gateway=admitted.gateway,
            ingress=self._ingress,
            days=days,
        )

    def _deadline(self, scope: Scope) -> Deadline:
        clock = self._services.clock
        extensions = scope.get("extensions") or {}
        total_s = self._entrance.limits.stream_total_s
        if DEADLINE_EXTENSION in extensions:
            total_s = extensions[DEADLINE_EXTENSION]["epoch_ms"] / 1000 - clock.now_s()
        return Deadline.within(clock, total_s - SETTLE_BUDGET_S)


def _enables(headers: Mapping[str, str], name: str) -> bool:
    return headers.get(name, "").lower() == "enabled"


def _is_large(work: Work) -> bool:
    """Return True for a request that is large when its stored turns are included."""
    return isinstance(work, GenerationRequest) and work.size_bytes > LARGE_BYTES


async def _routed(admitted: _Admitted) -> Routed | None:
    """Return the routing of a request that was refused before any attempt.

    Returns None unless the caller asked for the routing with x-tollgate-metadata.
    """
    call, gateway = admitted.call, admitted.gateway
    if not call.parsed.tells_routing:
        return None
    now_s = gateway.clock.now_s()
    left = budget_left_percent(gateway, call.principal)
    wanted = partial(planning_request, call, budget_left_percent=left)
    trace = await gateway.computations(call).run(
        lambda: gateway.planner.survey(wanted(), now_s=now_s).trace
    )
    return Routed(
        requested=call.parsed.request.model,
        catalog_sha=gateway.planner.catalog.sha,
        route=trace.route if trace else None,
        rule=trace.rule if trace else None,
    )
