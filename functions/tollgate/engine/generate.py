"""Serves one generation from planning to settlement; every exit after the hold settles."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from tollgate.core.dotted_names import DottedName
from tollgate.core.errors import (
    BufferFull,
    ErrorCode,
    GatewayError,
    InternalError,
    LedgerError,
    OutcomeUnknown,
    UpstreamError,
)
from tollgate.core.limits import CostCeiling
from tollgate.core.records.generation import GenerationRecord, RoundsBound
from tollgate.core.request import GenerationRequest
from tollgate.engine.admission import admit, budget_left_percent
from tollgate.engine.attempts import AttemptContext, commit_first
from tollgate.engine.files.media import RequestMedia
from tollgate.engine.gateway import Call, Gateway
from tollgate.engine.head_start import HeadStart
from tollgate.engine.meter import Meter
from tollgate.engine.replies.provider_compaction import let_provider_compact
from tollgate.engine.replies.sink import ClientGone, EventSink
from tollgate.engine.rounds.tool_injection import InjectedTools
from tollgate.engine.routing.endpoint_reports import EndpointReports
from tollgate.engine.routing.measured_order import hold_and_order
from tollgate.engine.uncancelled import run_uncancelled
from tollgate.engine.usage.coverage import Coverage, deliver_metered, end_uncovered
from tollgate.ingress.base import ParsedCall, RecordPacker
from tollgate.routing.planning.cost_ceilings import refuse_fees
from tollgate.routing.planning.plan import Plan
from tollgate.routing.planning.planning_request import PlanningRequest
from tollgate.stores.ports.base import Hold

if TYPE_CHECKING:
    from tollgate.engine.guardrails.bounds import BoundedGuard
    from tollgate.engine.guardrails.guards import GuardedGeneration
    from tollgate.engine.replies.answer_cache import AnswerCaching
    from tollgate.engine.rounds.server_tools import OfferedTools

# Imported at first use, because most processes never serve requests that need these.
_COMPACT_WINDOW: Final = DottedName[Callable[..., Awaitable[tuple[Call, EventSink]]]](
    "tollgate.engine.replies.compacted_window:compact_window"
)
_COMPACTING_SINK: Final = DottedName[Callable[[EventSink, RecordPacker], EventSink]](
    "tollgate.engine.replies.compacting_sink:CompactingSink"
)
_FETCH_AWAITED: Final = DottedName[Callable[[Gateway, Call], Awaitable[Call]]](
    "tollgate.engine.files.named_files:fetch_awaited"
)
_FIND_CACHING: Final = DottedName[Callable[..., "AnswerCaching | None"]](
    "tollgate.engine.replies.answer_cache:find_caching"
)
_FIND_GUARDS: Final = DottedName[Callable[..., tuple["BoundedGuard", ...]]](
    "tollgate.engine.guardrails.guards:find_guards"
)
_GUARDED_GENERATION: Final = DottedName[Callable[..., "GuardedGeneration"]](
    "tollgate.engine.guardrails.guards:GuardedGeneration"
)
_FIND_FILES_OF: Final = DottedName[Callable[[Gateway, Call], Awaitable[Call]]](
    "tollgate.engine.files.named_files:find_files_of"
)
_OFFER_SERVER_TOOLS: Final = DottedName[Callable[..., "OfferedTools"]](
    "tollgate.engine.rounds.server_tools:offer_server_tools"
)
_READ_DOCUMENTS: Final = DottedName[Callable[..., Awaitable[Plan]]](
    "tollgate.engine.documents.document_reading:read_documents"
)
_STREAM_ROUNDS: Final = DottedName[
    Callable[[AttemptContext, EventSink, Coverage, InjectedTools], Awaitable[None]]
]("tollgate.engine.rounds.rounds:stream_rounds")

# Time reserved for settling: a few DynamoDB calls, each with a timeout of 1 s.
SETTLE_BUDGET_S: Final = 8.0


async def generate(gateway: Gateway, call: Call, sink: EventSink) -> None:
    """Serve one generation; once money is held, every exit settles unless the process dies.

    Errors before the hold are raised; later errors go to the sink. The generation is settled before
    the last byte is sent, because the platform may freeze the process right after that byte.
    """
    if isinstance(call.parsed, ParsedCall) and (call.parsed.window or call.parsed.edits):
        call, sink = await _COMPACT_WINDOW()(gateway, call, sink, generate=generate, plan=_plan)
    with gateway.buffers.open(call.principal.workspace_id):
        await _generate(gateway, call, sink)


async def _generate(gateway: Gateway, call: Call, sink: EventSink) -> None:
    names_files, has_documents = await _find_content(gateway, call)
    if call.parsed.awaits is not None or names_files or has_documents:
        await admit(gateway, call.principal, call.request_id)
    if call.parsed.awaits is not None:
        call = await _FETCH_AWAITED()(gateway, call)
        names_files, _ = await _find_content(gateway, call)
    if names_files:
        # The files may be large, and their contents become part of the request.
        call = replace(await _FIND_FILES_OF()(gateway, call), is_large=True)
        _, has_documents = await _find_content(gateway, call)
    tools: InjectedTools | None = None
    left_out: tuple[str, ...] = ()
    if isinstance(call.parsed, ParsedCall) and call.parsed.compacts is not None:
        sink = _COMPACTING_SINK()(sink, call.parsed.compacts)
    request = call.parsed.request
    if isinstance(request, GenerationRequest) and request.server_tools:
        offer = _OFFER_SERVER_TOOLS()(gateway.tools, gateway.planner, request, call.principal)
        tools, left_out = offer.injected, offer.left_out
        call = replace(call, parsed=replace(call.parsed, request=offer.request))
    rounds = tools.bound if tools else None
    if has_documents:
        call = replace(call, is_large=True)
    computations = gateway.computations(call)
    planner_input, plan = await _plan(gateway, call, rounds)
    call = let_provider_compact(call, plan, gateway.planner.catalog)
    media = RequestMedia(gateway.media, call.parsed.request, gateway.files, computations)
    if has_documents:
        plan = await _READ_DOCUMENTS()(gateway, call, plan, media, planning_request=planner_input)
    guards: tuple[BoundedGuard, ...] = ()
    if gateway.planner.catalog.guardrails or call.principal.guardrails:
        guard = partial(_guard, gateway, call, plan, ceiling=planner_input.ceiling)
        guards, plan = await computations.run(guard)
    caching: AnswerCaching | None = None
    if call.principal.answer_sharing is not None and tools is None and not left_out:
        caching = await computations.run(partial(_FIND_CACHING(), gateway, call, plan, guards))
    first = plan.attempts[0]
    is_whole = await computations.run(partial(media.is_whole_for, first.target))
    ready = media.request if is_whole and not guards else None
    async with aclosing(
        HeadStart(gateway, call.principal, first, ready, computations=computations)
    ) as head_start:
        (hold, plan), cancelled = await run_uncancelled(
            _hold(gateway, call, plan, head_start.begin)
        )
        if left_out:
            plan = replace(plan, unmet=(*plan.unmet, *left_out))
        meter = Meter(gateway.clock, call, plan, hold)
        context = AttemptContext(
            gateway=gateway,
            principal=call.principal,
            plan=plan,
            media=media,
            meter=meter,
            guards=_GUARDED_GENERATION()(guards, gateway, call, meter) if guards else None,
            deadline=call.deadline,
            reports=EndpointReports(
                gateway.cooldowns,
                gateway.cooldown,
                plan.speed_policy,
                probe=plan.trace.probe,
            ),
            head_start=head_start,
            computations=computations,
        )
        await _answer(context, sink, call, tools=tools, caching=caching, cancelled=cancelled)


async def _find_content(gateway: Gateway, call: Call) -> tuple[bool, bool]:
    """Return whether a request names uploaded files, and whether it has documents."""
    request = call.parsed.request
    return await gateway.computations(call).run(
        lambda: (request.names_files, request.has_documents)
    )


async def _plan(
    gateway: Gateway, call: Call, rounds: RoundsBound | None
) -> tuple[PlanningRequest, Plan]:
    now_s = gateway.clock.now_s()
    left = budget_left_percent(gateway, call.principal)

    def plan() -> tuple[PlanningRequest, Plan]:
        planner_input = planning_request(call, rounds, budget_left_percent=left)
        return planner_input, gateway.planner.plan(planner_input, now_s=now_s)

    return await gateway.computations(call).run(plan)


def _guard(
    gateway: Gateway, call: Call, plan: Plan, *, ceiling: CostCeiling | None
) -> tuple[tuple["BoundedGuard", ...], Plan]:
    """Return the call's guardrails, and the plan with the maximum cost of their judgements.

    Raises AccessError if both together may cost more than the ceiling.
    """
    guards = _FIND_GUARDS()(gateway, call, plan)
    fees = sum(each.cost_max_nano_usd for each in guards)
    refuse_fees(plan, fees, ceiling)
    return guards, replace(plan, cost_max_nano_usd=plan.cost_max_nano_usd + fees)


async def _answer(
    context: AttemptContext,
    sink: EventSink,
    call: Call,
    *,
    tools: InjectedTools | None,
    caching: "AnswerCaching | None",
    cancelled: asyncio.CancelledError | None,
) -> None:
    """Stream the answer, and settle the hold on every exit, even if `cancelled` is already set."""
    gateway, meter = context.gateway, context.meter
    failure: GatewayError | None = None
    async with sink.open(meter.hold):
        try:
            if cancelled is not None:
                raise cancelled
            await _stream_within_deadline(context, sink, call, tools=tools, caching=caching)
        except GatewayError as error:
            failure = error
        except ClientGone:
            raise
        except Exception as unexpected_error:
            gateway.journal.unexpected_error(unexpected_error, meter.hold.id)
            failure = InternalError()
            meter.fail(failure)
        finally:
            (record, unsettled), cancelled = await run_uncancelled(_settle(context))
            if cancelled is not None:
                raise cancelled
    failure = failure or unsettled
    if failure is None:
        await sink.finish(record)
    else:
        await sink.fail(failure, record)


def planning_request(
    call: Call, rounds: RoundsBound | None = None, *, budget_left_percent: int | None = None
) -> PlanningRequest:
    """Return the planner's input for a call; `rounds` limits the rounds with server tools."""
    return PlanningRequest.of(
        call.parsed.request,
        principal=call.principal,
        request_id=call.request_id,
        fallbacks=call.fallbacks,
        rounds=rounds,
        ceilings=call.ceilings,
        budget_left_percent=budget_left_percent,
    )


async def _stream(
    context: AttemptContext,
    sink: EventSink,
    *,
    tools: InjectedTools | None,
    caching: "AnswerCaching | None",
) -> None:
    meter = context.meter
    coverage = Coverage(
        context.gateway.ledger,
        meter,
        choices=context.media.request.answers,
        output_limited=context.plan.trace.output_tokens_max is not None,
        ceiling_nano_usd=context.plan.ceiling_nano_usd,
        clock=context.gateway.clock,
    )
    context.reports.coverage = coverage
    if tools is not None:
        await _STREAM_ROUNDS()(context, sink, coverage, tools)
        return
    collecting = None
    if caching is not None:
        if await caching.answer(context, sink):
            return
        sink = collecting = caching.collecting(sink)
    attempt = await commit_first(context)
    async with attempt.connection:
        await sink.begin(attempt.served_by(context))
        goes_on = await deliver_metered(attempt.head, meter, sink, coverage)
        try:
            while goes_on and (events := await anext(attempt.rest, None)) is not None:
                goes_on = await deliver_metered(events, meter, sink, coverage)
            if not goes_on:
                await end_uncovered(sink, coverage, meter)
            elif collecting is not None:
                await collecting.keep(context, attempt)
        except UpstreamError as error:
            context.reports.note_failure(attempt.target.endpoint_id, error)
            raise


async def _stream_within_deadline(
    context: AttemptContext,
    sink: EventSink,
    call: Call,
    *,
    tools: InjectedTools | None,
    caching: "AnswerCaching | None",
) -> None:
    """Stream until the answer ends, fails or reaches the deadline, and record a failure."""
    meter = context.meter
    stream = partial(_stream, context, tools=tools, caching=caching)
    limit = asyncio.timeout(call.deadline.remaining_s())
    try:
        async with limit:
            if context.guards is None:
                await stream(sink)
            else:
                await context.guards.stream(sink, stream)
    except BufferFull as full:
        if meter.committed:
            # The caller pays. Otherwise callers could request huge answers at the operator's cost.
            meter.cut(full)
        else:
            meter.fail(full)
        raise
    except GatewayError as error:
        try:
            await context.withhold(error)
        finally:
            meter.fail(error)
        raise
    except TimeoutError as late:
        if not limit.expired():
            raise
        how = "" if call.parsed.stream else " Longer answers need `stream: true`."
        message = f"The answer was not complete in time.{how}"
        cut_off = UpstreamError(ErrorCode.PROVIDER_TIMEOUT, message)
        if call.parsed.stream and meter.committed:
            meter.cut(cut_off)
        else:
            meter.fail(cut_off)
        raise cut_off from late


async def _hold(
    gateway: Gateway, call: Call, plan: Plan, meanwhile: Callable[[], None]
) -> tuple[Hold, Plan]:
    principal = call.principal
    try:
        with gateway.refusals.repeating(principal.key_id, gateway.clock):
            holding = gateway.ledger.hold(
                principal,
                plan.cost_max_nano_usd,
                call.request_id,
                tokens=plan.tokens_max,
                covered=(principal.admission or gateway.admission) == "covered",
                tier=plan.tier,
                session=call.session,
                models=plan.models,
                meanwhile=meanwhile,
            )
            return await hold_and_order(gateway, plan, holding)
    finally:
        gateway.admissions.end(principal, call.request_id)


async def _settle(context: AttemptContext) -> tuple[GenerationRecord, LedgerError | None]:
    """Settle the generation; return its record, and an error if the record could not be written.

    A record that cannot be written now is logged in full, and the sweeper releases its hold.
    """
    gateway = context.gateway
    hold, record = context.meter.hold, context.meter.record()
    try:
        if _is_one_of_several(record, gateway):
            context.reports.note_answer(record)
        context.reports.release_probe()
    except Exception as unexpected_error:
        gateway.journal.unexpected_error(unexpected_error, hold.id)
    try:
        async with asyncio.timeout(SETTLE_BUDGET_S):
            record = await gateway.ledger.settle(hold, record)
    except Exception as failure:
        gateway.journal.unsettled(record, failure)
        if not isinstance(failure, LedgerError | TimeoutError):
            gateway.journal.unexpected_error(failure, hold.id)
        return record, OutcomeUnknown(hold.id)
    gateway.journal.settled(record)
    await context.reports.deliver(gateway.journal, hold.id)
    return record, None


def _is_one_of_several(record: GenerationRecord, gateway: Gateway) -> bool:
    """Return True if the model has several endpoints; with one, its speed is never used."""
    if record.model is None:
        return False
    return len(gateway.planner.catalog.models[record.model].endpoints) > 1
