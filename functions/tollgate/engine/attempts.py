"""Runs the attempts of a generation one after another; no other code retries a generation.

An attempt commits at its first content event. If an attempt fails before that event, the next
attempt may serve the request. If it fails later, the whole generation fails.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from functools import partial, reduce
from typing import TYPE_CHECKING, Final, assert_never

from msgspec import Struct
from msgspec.structs import replace

from tollgate.core.buffer_budget import Buffered
from tollgate.core.clock import Deadline
from tollgate.core.content import ToolCall
from tollgate.core.dotted_names import DottedName
from tollgate.core.errors import (
    ErrorCode,
    GatewayError,
    MissingCredentials,
    RequestError,
    UpstreamError,
)
from tollgate.core.events import (
    ChosenGroup,
    Ended,
    Grouped,
    Output,
    PartDelta,
    PartDeltas,
    PartEnd,
    Partial,
    PartStart,
    UsageReported,
)
from tollgate.core.principal import Principal
from tollgate.core.request import GenerationRequest
from tollgate.core.secret import describe_remedy
from tollgate.core.usage import Usage
from tollgate.core.work.base import InputWork, Work
from tollgate.engine import retry
from tollgate.engine.attempt_cursor import AttemptCursor
from tollgate.engine.choices import Encoded, encode_attempt
from tollgate.engine.files.media import RequestMedia
from tollgate.engine.gateway import Gateway
from tollgate.engine.head_start import HeadStart
from tollgate.engine.meter import Meter
from tollgate.engine.routing.endpoint_reports import EndpointReports
from tollgate.engine.side_thread import Computations
from tollgate.ingress.base import ServedBy
from tollgate.providers.ports.base import Provider, Target
from tollgate.routing.planning.plan import Attempt, Plan

if TYPE_CHECKING:
    from tollgate.engine.guardrails.guards import GuardedGeneration

# Imported at first use, because most processes never serve such requests.
_LEAVE_TO_PROVIDER: Final = DottedName[Callable[[GenerationRequest, Target], GenerationRequest]](
    "tollgate.engine.rounds.native_tools:leave_to_provider"
)
_ENCODE_WORK: Final = DottedName[Callable[[Provider, Attempt, InputWork], Encoded]](
    "tollgate.engine.work.batches:encode_work"
)


class CommittedAttempt(Struct, frozen=True, kw_only=True):
    """An attempt that has committed."""

    target: Target
    depth: int
    """Index of the attempt in the plan, from 0."""
    adapted: tuple[str, ...]
    """Names of the caller's parameters and preferences that have no effect."""
    head: tuple[ChosenGroup, ...]
    """Events up to the commit point, and any later events that arrived in the same read."""
    rest: AsyncGenerator[Sequence[ChosenGroup], None]
    """Events after `head`."""
    connection: AsyncExitStack
    """A context manager whose exit closes both the connection and `rest`."""

    def served_by(self, context: "AttemptContext") -> ServedBy:
        """Return the details of the attempt for headers and replies."""
        requested = context.plan.attempts[0].target.model
        attempt = context.plan.attempts[self.depth]
        forms = context.media.forms
        return replace(
            served_by(context, attempt, adapted=self.adapted),
            fallback_from=requested if self.target.model != requested else None,
            fallback_depth=self.depth,
            read_files=forms.newly_read(self.target) if forms is not None else (),
        )


class AttemptContext(Struct, frozen=True, kw_only=True):
    """State shared by all attempts of one generation."""

    gateway: Gateway
    principal: Principal
    plan: Plan
    media: RequestMedia
    meter: Meter
    deadline: Deadline
    reports: EndpointReports
    head_start: HeadStart
    computations: Computations
    guards: "GuardedGeneration | None" = None
    """Guardrails of the gateway; None if none apply."""

    async def withhold(self, error: GatewayError) -> None:
        """Remove the prompt from an error's texts, in the side thread if the request is large.

        The meter caches the results for later use.
        """
        if isinstance(error, UpstreamError):
            for words in filter(None, (error.provider_words, error.quoted)):
                await self.computations.run(partial(self.meter.withhold, words))


def served_by(context: AttemptContext, attempt: Attempt, *, adapted: tuple[str, ...]) -> ServedBy:
    """Return the details of an endpoint that serves a generation, apart from failed attempts."""
    target, lifecycle = attempt.target, attempt.lifecycle
    return ServedBy(
        generation_id=context.meter.hold.id,
        created_s=context.meter.created_s,
        model=target.model,
        provider=target.provider,
        provider_name=target.provider_name,
        adapted=adapted,
        ending=lifecycle if lifecycle.notice_s <= context.meter.created_s else None,
        bend=context.plan.trace.bend,
    )


async def commit_first(context: AttemptContext) -> CommittedAttempt:
    """Return the first attempt that commits; the caller must close its connection.

    If no attempt commits, the error of the last attempt is raised.
    """
    plan = await _require_parameters(context)
    cursor = AttemptCursor(plan)
    without_key: list[MissingCredentials] = []
    while True:
        try:
            return await _commit(context, cursor)
        except UpstreamError as error:
            if isinstance(error, MissingCredentials):
                without_key.append(error)
            if cursor.attempt.service_tier is None or error.code not in retry.BUSY:
                # A busy service tier says nothing about the endpoint's default tier.
                context.reports.note_failure(cursor.attempt.target.endpoint_id, error)
            decision = cursor.advance(
                error,
                remaining_s=context.deadline.remaining_s(),
                jitter=context.gateway.ids.uniform(),
            )
            match decision:
                case retry.Again(delay_s):
                    await context.gateway.clock.sleep(delay_s)
                case retry.Next():
                    pass
                case retry.Stop():
                    if isinstance(error, MissingCredentials) and len(plan.attempts) > 1:
                        raise _error_of_missing_keys(plan, without_key) from error
                    raise
                case _:
                    assert_never(decision)


def _error_of_missing_keys(plan: Plan, missing: Sequence[MissingCredentials]) -> MissingCredentials:
    """Return one error that lists every place where a missing key could be set."""
    places = tuple(dict.fromkeys(place for each in missing for place in each.places))
    endpoints, name = len(plan.attempts), plan.trace.requested_model
    if len(missing) == endpoints:
        summary = f"None of the {endpoints} endpoints of {name} has a usable key here"
    else:
        summary = f"{len(missing)} of the {endpoints} endpoints of {name} have no usable key here"
    instruction = f": {describe_remedy(places)}" if places else ""
    return MissingCredentials(f"{summary}{instruction}.", places)


async def _require_parameters(context: AttemptContext) -> Plan:
    """Return the plan without endpoints that do not support a parameter, if the caller requires
    that.

    Each attempt is encoded to find the parameters that its codec drops or refuses. Raises
    RequestError if no endpoint remains.
    """
    if not context.media.request.preferences.require_parameters:
        return context.plan
    # Fields that the gateway does not know do not count as parameters.
    unknown = {*_unknown_names(context.media.request)}
    fitting: list[Attempt] = []
    refusals: list[RequestError] = []
    for attempt in context.plan.attempts:
        try:
            encoded = await _encode(context, attempt)
            left_out = tuple(name for name in encoded.unsupported if name not in unknown)
        except RequestError as refusal:
            refusals.append(refusal)
        except UpstreamError:
            # The error has another cause, such as a URL that cannot be fetched, and will occur
            # again when the attempt is made.
            fitting.append(attempt)
        else:
            if left_out:
                refusals.append(_unsupported(attempt, left_out))
            else:
                fitting.append(attempt)
    if not fitting:
        raise refusals[0]
    return replace(context.plan, attempts=tuple(fitting))


def _unknown_names(work: Work) -> tuple[str, ...]:
    native = work.native if isinstance(work, GenerationRequest) else None
    return native.unknown_names if native is not None else ()


def _unsupported(attempt: Attempt, left_out: tuple[str, ...]) -> RequestError:
    return RequestError(
        ErrorCode.INVALID_REQUEST,
        f"{attempt.target.provider} does not support {', '.join(left_out)}, "
        "and no other provider here supports every parameter.",
        param=left_out[0],
    )


async def _encode(context: AttemptContext, attempt: Attempt) -> Encoded:
    provider = context.gateway.providers.provider(attempt.target.provider, context.principal)
    work = await context.media.inline(attempt.target)
    if context.guards is not None:
        work = await context.guards.admit(work)
    encode: Callable[[], Encoded]
    if isinstance(work, InputWork):
        encode = partial(_ENCODE_WORK(), provider, attempt, work)
    else:
        if work.server_tools:
            work = _LEAVE_TO_PROVIDER()(work, attempt.target)
        encode = partial(encode_attempt, provider, attempt, work)
    return await context.computations.run(encode)


async def _ready(
    context: AttemptContext, attempt: Attempt
) -> tuple[Encoded, AbstractAsyncContextManager[AsyncGenerator[Sequence[ChosenGroup], None]]]:
    """Return the encoded attempt and the context manager that sends its request."""
    prepared = await context.head_start.take(attempt)
    if prepared is not None:
        return prepared[0], prepared[0].open(prepared[1])
    encoded = await _encode(context, attempt)
    return encoded, encoded.open()


async def _commit(context: AttemptContext, cursor: AttemptCursor) -> CommittedAttempt:
    """Send an attempt and read until its first content event."""
    attempt = cursor.attempt
    if context.media.forms is not None:
        await context.media.forms.recognize_for(attempt.target)
    encoded, opening = await _ready(context, attempt)
    adapted = (*context.plan.unmet, *encoded.adapted)
    context.meter.begin_attempt(attempt, adapted)
    opened_s = context.gateway.clock.monotonic_s()
    peeked = _Peek()
    async with AsyncExitStack() as connection:
        try:
            async with asyncio.timeout(cursor.first_token_limit_s(context.deadline.remaining_s())):
                events = await connection.enter_async_context(opening)
                await peeked.read(events)
        except TimeoutError as late:
            failure = _timeout(attempt)
            context.meter.fail_attempt(attempt, failure, peeked.usage)
            raise failure from late
        except UpstreamError as failure:
            await context.withhold(failure)
            context.meter.fail_attempt(attempt, failure, peeked.usage)
            raise
        finally:
            peeked.buffered.release()
        context.meter.commit_attempt(attempt, streams=encoded.streams)
        if context.media.forms is not None:
            for fee in context.media.forms.fees_for(attempt.target):
                context.meter.charge(fee)
        first_token_ms = round((context.gateway.clock.monotonic_s() - opened_s) * 1000)
        context.reports.note_first_token(attempt.target, first_token_ms)
        return CommittedAttempt(
            target=attempt.target,
            depth=cursor.depth,
            adapted=adapted,
            head=tuple(peeked.events),
            rest=events,
            connection=connection.pop_all(),
        )


# Estimated size of an event that contains no text, such as a usage report.
_EVENT_BYTES: Final = 1024


class _Peek:
    """A buffer for an attempt's events, up to and including the read with the first content."""

    def __init__(self) -> None:
        self.events: list[ChosenGroup] = []
        self.buffered = Buffered()
        self._usages: defaultdict[int, Usage] = defaultdict(Usage)

    @property
    def usage(self) -> Usage:
        """Usage reported so far, summed over all choices."""
        return reduce(Usage.plus, self._usages.values(), Usage())

    async def read(self, reads: AsyncIterator[Sequence[ChosenGroup]]) -> None:
        async for events in reads:
            self.buffered.take(_EVENT_BYTES * len(events))
            self.events += events
            for choice, event in events:
                if isinstance(event, UsageReported):
                    self._usages[choice] = self._usages[choice].update(event.usage)
                if _commits(event):
                    return


def _commits(event: Grouped) -> bool:
    """Return True for content. The start of a text part does not commit, because providers often
    fail right after it.
    """
    match event:
        case PartDelta() | PartDeltas() | PartEnd() | Output() | Partial() | Ended():
            return True
        case PartStart(part=part):
            return isinstance(part, ToolCall)
        case _:
            return False


def _timeout(attempt: Attempt) -> UpstreamError:
    return UpstreamError(
        ErrorCode.PROVIDER_TIMEOUT,
        f"{attempt.target.provider} did not start its answer in time.",
    )
