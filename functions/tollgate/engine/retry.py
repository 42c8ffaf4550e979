"""Whether a failed attempt is tried again, handed to the next one, or is the end."""

from typing import Final

from msgspec import Struct

from tollgate.core.errors import ErrorCode, UpstreamError
from tollgate.routing.planning.plan import Retry

# Where the endpoint is busy, another one answers sooner than this one recovers.
_BUSY: Final = frozenset({ErrorCode.PROVIDER_RATE_LIMIT, ErrorCode.PROVIDER_OVERLOADED})
_PASSING: Final = _BUSY | {ErrorCode.PROVIDER_UNAVAILABLE}


class Again(Struct, frozen=True):
    """Try the same endpoint after a pause."""

    delay_s: float


class Next(Struct, frozen=True):
    """Go on to the next attempt of the plan."""


class Stop(Struct, frozen=True):
    """The error is the answer."""


RetryDecision = Again | Next | Stop


class Situation(Struct, frozen=True, kw_only=True):
    """Where a chain stands: tries made at this endpoint, whether another one and time are left."""

    tries: int
    another_left: bool
    remaining_s: float
    next_on: frozenset[str]


def decide(
    error: UpstreamError, situation: Situation, retry: Retry, jitter: float
) -> RetryDecision:
    """What follows a failure; `jitter` is uniform in [0, 1).

    The only retry loop there is: underneath, a request is repeated only if its kept connection
    turned out to be dead before a byte of an answer.
    """
    may_move = situation.another_left and error.code in situation.next_on
    if error.code in _BUSY and may_move:
        return Next()
    if error.code in _PASSING and situation.tries <= retry.retries_max_on(error.code):
        asked_s = error.retry_after_s or 0.0
        delay_s = max(_delay_s(situation.tries, retry, jitter), asked_s)
        if asked_s <= retry.backoff_max_s and delay_s < situation.remaining_s:
            return Again(delay_s)
    return Next() if may_move else Stop()


def _delay_s(tries: int, retry: Retry, jitter: float) -> float:
    ceiling_s = min(retry.backoff_max_s, retry.backoff_min_s * 2.0 ** (tries - 1))
    return ceiling_s * (0.5 + jitter / 2)
