"""The happy path, and the promise that every exit from it settles."""

import asyncio
from collections.abc import Coroutine
from contextlib import aclosing
from typing import Any, Final, TypeVar

from tollgate.core.errors import ErrorCode, GatewayError, InternalError, LedgerError, UpstreamError
from tollgate.core.generation import GenerationRecord
from tollgate.engine.attempts import Chain, Committed, committed
from tollgate.engine.gateway import Call, Gateway
from tollgate.engine.meter import Meter
from tollgate.engine.sink import EventSink
from tollgate.ingress.base import Served
from tollgate.routing.demand import Demand
from tollgate.stores.base import Hold

# Deciding and settling are a few DynamoDB calls that time out at 1 s each.
SETTLE_BUDGET_S: Final = 8.0

_Result = TypeVar("_Result")


async def generate(gateway: Gateway, call: Call, sink: EventSink) -> None:
    """Serve one generation. Once money is held, every exit this process survives settles.

    Raises what is refused before the hold; after it, errors go to the sink. Settling comes before
    the last byte: the platform may freeze the process as soon as that has left.
    """
    demand = Demand.of(
        call.parsed.request,
        principal=call.principal,
        request_id=call.request_id,
        fallbacks=call.fallbacks,
    )
    plan = gateway.planner.plan(demand, now_s=gateway.clock.now_s())
    hold = await gateway.ledger.hold(call.principal, plan.cost_max_nano_usd, call.request_id)
    meter = Meter(gateway.clock, call, plan, hold)
    chain = Chain(
        gateway=gateway,
        plan=plan,
        request=call.parsed.request,
        meter=meter,
        deadline=call.deadline,
    )
    failure: GatewayError | None = None
    async with sink.opened(hold):
        try:
            await _within_deadline(_stream(chain, sink), call, meter)
        except GatewayError as error:
            failure = error
        except Exception as defect:
            gateway.journal.defect(defect, hold.id)
            failure = InternalError()
            meter.fail(failure)
        finally:
            record, unsettled = await _outlive_cancellation(_settle(gateway, hold, meter))
    failure = failure or unsettled
    if failure is None:
        await sink.finish(record)
    else:
        await sink.fail(failure, record)


async def _stream(chain: Chain, sink: EventSink) -> None:
    meter = chain.meter
    async with committed(chain) as attempt:
        await sink.begin(_served(attempt, chain))
        for event in attempt.head:
            meter.observe(event)
            await sink.send(event)
        async with aclosing(attempt.rest) as rest:
            async for event in rest:
                meter.observe(event)
                await sink.send(event)


async def _within_deadline(stream: Coroutine[Any, Any, None], call: Call, meter: Meter) -> None:
    """Run the stream to its end, its failure, or the deadline, and tell the meter which it was."""
    try:
        async with asyncio.timeout(call.deadline.remaining_s()):
            await stream
    except GatewayError as error:
        meter.fail(error)
        raise
    except TimeoutError as late:
        how = "" if call.parsed.stream else " Longer answers need `stream: true`."
        message = f"The answer was not complete in time.{how}"
        cut_off = UpstreamError(ErrorCode.PROVIDER_TIMEOUT, message)
        if call.parsed.stream and meter.committed:
            meter.cut(cut_off)
        else:
            meter.fail(cut_off)
        raise cut_off from late


async def _settle(
    gateway: Gateway, hold: Hold, meter: Meter
) -> tuple[GenerationRecord, LedgerError | None]:
    """Decide and settle; returns the record that stands.

    What cannot be settled now is logged whole, and left to the sweeper.
    """
    record = meter.record()
    try:
        async with asyncio.timeout(SETTLE_BUDGET_S):
            record = await gateway.ledger.settle(hold, record)
    except (LedgerError, TimeoutError) as failure:
        gateway.journal.unsettled(record, failure)
        message = "The answer could not be recorded; try again."
        return record, LedgerError(ErrorCode.SERVICE_UNAVAILABLE, message)
    gateway.journal.settled(record)
    return record, None


async def _outlive_cancellation(work: Coroutine[Any, Any, _Result]) -> _Result:
    """Finish the work even if this task is cancelled meanwhile, then be cancelled."""
    task = asyncio.create_task(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as request:
            cancelled = request
    if cancelled is not None:
        raise cancelled
    return task.result()


def _served(attempt: Committed, chain: Chain) -> Served:
    asked = chain.plan.attempts[0].target.model
    return Served(
        generation_id=chain.meter.generation_id,
        created_s=chain.meter.created_s,
        model=attempt.target.model,
        provider=attempt.target.provider,
        fallback_from=asked if attempt.depth else None,
        fallback_depth=attempt.depth,
        adapted=attempt.adapted,
    )
