"""The chain of attempts: the only place where a generation is tried again.

An attempt commits at its first content event. Until then its failure is noted and the next one may
serve; from then on its failure is the generation's.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import reduce
from typing import assert_never

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
from tollgate.engine.choices import Chosen, answering, asking
from tollgate.engine.cooldown import FailureReports
from tollgate.engine.gateway import Gateway
from tollgate.engine.media import RequestMedia
from tollgate.engine.meter import Meter
from tollgate.providers.base import Target
from tollgate.routing.plan import Attempt, Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """An attempt past its commit point: `head` are the events peeked at, `rest` those to come.

    `adapted` names the caller's parameters that the provider could not take.
    """

    target: Target
    depth: int
    adapted: tuple[str, ...]
    head: tuple[Chosen, ...]
    rest: AsyncGenerator[Chosen, None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """What the attempts of one generation share."""

    gateway: Gateway
    plan: Plan
    media: RequestMedia
    meter: Meter
    deadline: Deadline
    failures: FailureReports


@asynccontextmanager
async def committed(chain: Chain) -> AsyncIterator[Committed]:
    """The first attempt that commits; leaving the context closes its connection.

    Raises the last failure if none does.
    """
    async with AsyncExitStack() as connections:
        yield await _first_to_commit(chain, connections)


async def _first_to_commit(chain: Chain, connections: AsyncExitStack) -> Committed:
    attempts = chain.plan.attempts
    depth = tries = 0
    while True:
        attempt = attempts[depth]
        tries += 1
        try:
            return await _commit(chain, depth, connections)
        except UpstreamError as error:
            chain.failures.note(attempt.target.endpoint_id, error)
            situation = retry.Situation(
                tries=tries,
                another_left=depth + 1 < len(attempts),
                remaining_s=chain.deadline.remaining_s(),
                next_on=chain.plan.next_on,
            )
            verdict = retry.decide(error, situation, attempt.retry, chain.gateway.ids.uniform())
            match verdict:
                case retry.Again(delay_s):
                    await chain.gateway.clock.sleep(delay_s)
                case retry.Next():
                    depth, tries = depth + 1, 0
                case retry.Stop():
                    raise
                case _:
                    assert_never(verdict)


async def _commit(chain: Chain, depth: int, connections: AsyncExitStack) -> Committed:
    """Ask one endpoint and read up to its first content event."""
    attempt = chain.plan.attempts[depth]
    provider = chain.gateway.providers.provider(attempt.target.provider)
    request = await chain.media.inlined(attempt.target)
    asked = asking(provider, attempt, request)
    if asked.adapted and request.preferences.require_parameters:
        raise RequestError(
            ErrorCode.INVALID_REQUEST,
            f"{attempt.target.provider} does not take {', '.join(asked.adapted)}.",
            param="provider.require_parameters",
        )
    chain.meter.attempt_opened(attempt)
    peeked = _Peek()
    async with AsyncExitStack() as connection:
        try:
            async with asyncio.timeout(_first_token_limit_s(chain, depth)):
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
        depth=depth,
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


def _first_token_limit_s(chain: Chain, depth: int) -> float:
    """The configured limit, or an even share of what is left so that later attempts have a turn."""
    attempts_left = len(chain.plan.attempts) - depth
    configured_s = chain.plan.attempts[depth].timeouts.first_token_s
    if attempts_left == 1:
        # The deadline ends the last one, and says so in its own words.
        return configured_s
    return min(configured_s, chain.deadline.remaining_s() / attempts_left)


def _timed_out(attempt: Attempt, what: str) -> UpstreamError:
    return UpstreamError(ErrorCode.PROVIDER_TIMEOUT, f"{attempt.target.provider} {what}.")
