"""Decides what follows a failed attempt: retry the endpoint, try the next one, or stop."""

from typing import Final

from msgspec import Struct

from tollgate.core.errors import ErrorCode, MissingCredentials, UpstreamError
from tollgate.routing.chains import RetrySection

# Another endpoint answers sooner than a busy one recovers (decision 0011).
BUSY: Final = frozenset({ErrorCode.PROVIDER_RATE_LIMIT, ErrorCode.PROVIDER_OVERLOADED})
_PASSING: Final = BUSY | {ErrorCode.PROVIDER_UNAVAILABLE}


class Again(Struct, frozen=True):
    """Decision to try the same endpoint after a pause."""

    delay_s: float


class Next(Struct, frozen=True):
    """Decision to make the next attempt in the plan."""


class Stop(Struct, frozen=True):
    """Decision to return the error to the caller."""


RetryDecision = Again | Next | Stop


class Situation(Struct, frozen=True, kw_only=True):
    """The facts about a failed attempt that decide what follows."""

    tries: int
    """Number of tries at this endpoint so far, including the failed one."""
    another_left: bool
    """True if the plan has another endpoint after this one."""
    remaining_s: float
    """Seconds until the generation's deadline."""
    next_on: frozenset[str]
    """Error codes after which the route tries the next endpoint."""


def decide(
    error: UpstreamError, situation: Situation, retry: RetrySection, jitter: float
) -> RetryDecision:
    """Return the decision after a failure; transports never retry. `jitter` is in [0, 1)."""
    moves_on = isinstance(error, MissingCredentials) or error.code in situation.next_on
    may_move = situation.another_left and moves_on
    if error.code in BUSY and may_move:
        return Next()
    if error.code in _PASSING and situation.tries <= retry.retries_max_on(error.code):
        retry_after_s = error.retry_after_s or 0.0
        delay_s = max(_delay_s(situation.tries, retry, jitter), retry_after_s)
        if retry_after_s <= retry.backoff_max_s and delay_s < situation.remaining_s:
            return Again(delay_s)
    return Next() if may_move else Stop()


def _delay_s(tries: int, retry: RetrySection, jitter: float) -> float:
    ceiling_s = min(retry.backoff_max_s, retry.backoff_min_s * 2.0 ** (tries - 1))
    return ceiling_s * (0.5 + jitter / 2)
