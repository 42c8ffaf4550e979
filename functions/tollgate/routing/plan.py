"""From a request to the endpoints that will be tried, in order, and what it can cost at most."""

from collections.abc import Sequence
from dataclasses import dataclass

from tollgate.core.generation import RoutingTrace
from tollgate.providers.base import Target, Timeouts
from tollgate.routing.price import Price


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """How often one endpoint is tried again, and how long to wait in between."""

    retries_max: int = 2
    backoff_min_s: float = 0.25
    backoff_max_s: float = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One endpoint to try, with its price and its limits."""

    target: Target
    price: Price
    timeouts: Timeouts
    retry: Retry


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What the planner decided: never empty.

    `next_on` are the error codes that move on to the next attempt; `cost_max_nano_usd` bounds the
    dearest attempt.
    """

    attempts: Sequence[Attempt]
    next_on: frozenset[str]
    cost_max_nano_usd: int
    catalog_sha: str
    trace: RoutingTrace
