"""The chain of attempts: the only place where a generation is tried again.

An attempt commits at its first content event. Until then its failure is noted and the next one may
serve; from then on its failure is the generation's.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import reduce
from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from tollgate.core.clock import Deadline
from tollgate.core.content import ToolCall
from tollgate.core.errors import ErrorCode, RequestError, UpstreamError
from tollgate.core.events import (
    Ended,
    PartDelta,
    PartEnd,
    PartStart,
    StreamEvent,
    UsageReported,
)
from tollgate.core.usage import Usage
from tollgate.engine import retry
from tollgate.engine.attempt_cursor import AttemptCursor
from tollgate.engine.choices import Chosen, EncodedAttempt, answering, asking
from tollgate.engine.cooldown import FailureReports
from tollgate.engine.gateway import Gateway
from tollgate.engine.media import RequestMedia
from tollgate.engine.meter import Meter
from tollgate.providers.base import Target
from tollgate.routing.planning.plan import Attempt, Plan


class Committed(Struct, frozen=True, kw_only=True):
    """An attempt past its commit point: `head` are the events peeked at, `rest` those to come.

    `adapted` names the caller's parameters that the provider could not take.
    """

    target: Target
    depth: int
    adapted: tuple[str, ...]
    head: tuple[Chosen, ...]
    rest: AsyncGenerator[Chosen, None]


class AttemptContext(Struct, frozen=True, kw_only=True):
    """What the attempts of one generation share."""

    gateway: Gateway
    plan: Plan
    media: RequestMedia
    meter: Meter
    deadline: Deadline
    failures: FailureReports


@asynccontextmanager
async def committed(chain: AttemptContext) -> AsyncIterator[Committed]:
    """The first attempt that commits; leaving the context closes its connection.

    Raises the last failure if none does.
    """
    async with AsyncExitStack() as connections:
        yield await _first_to_commit(chain, connections)


async def _first_to_commit(chain: AttemptContext, connections: AsyncExitStack) -> Committed:
    walk = AttemptCursor(await _fitting(chain))
    while True:
        try:
            return await _commit(chain, walk, connections)
        except UpstreamError as error:
            chain.failures.note(walk.attempt.target.endpoint_id, error)
            verdict = walk.failed(
                error,
                remaining_s=chain.deadline.remaining_s(),
                jitter=chain.gateway.ids.uniform(),
            )
            match verdict:
                case retry.Again(delay_s):
                    await chain.gateway.clock.sleep(delay_s)
                case retry.Next():
                    pass
                case retry.Stop():
                    raise
                case _:
                    assert_never(verdict)


async def _fitting(chain: AttemptContext) -> Plan:
    """The plan without the endpoints that cannot take every parameter, where that is required.

    Only encoding tells what a codec leaves out or refuses. RequestError if no endpoint is left.
    """
    if not chain.media.request.preferences.require_parameters:
        return chain.plan
    fitting: list[Attempt] = []
    refusals: list[RequestError] = []
    for attempt in chain.plan.attempts:
        try:
            left_out = (await _asking(chain, attempt)).adapted
        except RequestError as refusal:
            refusals.append(refusal)
        except UpstreamError:
            # Says nothing of parameters; the walk meets it again, and goes on from there.
            fitting.append(attempt)
        else:
            if left_out:
                refusals.append(_not_taken(attempt, left_out))
            else:
                fitting.append(attempt)
    if not fitting:
        raise refusals[0]
    return replace(chain.plan, attempts=tuple(fitting))


def _not_taken(attempt: Attempt, left_out: tuple[str, ...]) -> RequestError:
    return RequestError(
        ErrorCode.INVALID_REQUEST,
        f"{attempt.target.provider} does not take {', '.join(left_out)}, "
        "nor does any other provider here take every parameter.",
        param=left_out[0],
    )


async def _asking(chain: AttemptContext, attempt: Attempt) -> EncodedAttempt:
    provider = chain.gateway.providers.provider(attempt.target.provider)
    return asking(provider, attempt, await chain.media.inlined(attempt.target))


async def _commit(
    chain: AttemptContext, walk: AttemptCursor, connections: AsyncExitStack
) -> Committed:
    """Ask one endpoint and read up to its first content event."""
    attempt = walk.attempt
    asked = await _asking(chain, attempt)
    chain.meter.attempt_opened(attempt)
    peeked = _Peek()
    async with AsyncExitStack() as connection:
        try:
            async with asyncio.timeout(walk.first_token_limit_s(chain.deadline.remaining_s())):
                events = await connection.enter_async_context(answering(asked))
                await peeked.read(events)
        except TimeoutError as late:
            failure = _timed_out(attempt, "did not begin to answer in time")
            chain.meter.attempt_failed(attempt, failure, peeked.usage)
            raise failure from late
        except UpstreamError as failure:
            chain.meter.attempt_failed(attempt, failure, peeked.usage)
            raise
        connections.push_async_exit(connection.pop_all())
    chain.meter.attempt_committed(attempt, streams=len(asked.wires))
    return Committed(
        target=attempt.target,
        depth=walk.depth,
        adapted=asked.adapted,
        head=tuple(peeked.events),
        rest=events,
    )


class _Peek:
    """The events of an attempt up to the one that commits it, whichever choice that belongs to."""

    def __init__(self) -> None:
        self.events: list[Chosen] = []
        self._usages: defaultdict[int, Usage] = defaultdict(Usage)

    @property
    def usage(self) -> Usage:
        """What was reported of all choices."""
        return reduce(Usage.plus, self._usages.values(), Usage())

    async def read(self, events: AsyncIterator[Chosen]) -> None:
        async for choice, event in events:
            self.events.append((choice, event))
            if isinstance(event, UsageReported):
                self._usages[choice] = self._usages[choice].updated(event.usage)
            if _commits(event):
                return


def _commits(event: StreamEvent) -> bool:
    """Whether an event is content: an opened text part is not, providers break right after it."""
    match event:
        case PartDelta() | PartEnd() | Ended():
            return True
        case PartStart(part=part):
            return isinstance(part, ToolCall)
        case _:
            return False


def _timed_out(attempt: Attempt, what: str) -> UpstreamError:
    return UpstreamError(ErrorCode.PROVIDER_TIMEOUT, f"{attempt.target.provider} {what}.")
