"""What the planner decides: the endpoints to try, in order, and how it came to them."""

from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from tollgate.core.errors import ErrorCode
from tollgate.core.generation import RoutingTrace
from tollgate.core.limits import TierLimits
from tollgate.providers.base import Target, Timeouts
from tollgate.routing.planning.rules import SkippedRule
from tollgate.routing.price import PriceSchedule


class Retry(Struct, frozen=True, kw_only=True):
    """How often one endpoint is tried again, by error, and how long to wait in between."""

    retries_max: int = 2
    backoff_min_s: float = 0.25
    backoff_max_s: float = 4.0
    retries_max_by_error: Mapping[ErrorCode, int] = field(default_factory=dict)

    def retries_max_on(self, code: ErrorCode) -> int:
        """How often an endpoint is tried again after this error."""
        return self.retries_max_by_error.get(code, self.retries_max)


class Attempt(Struct, frozen=True, kw_only=True):
    """One endpoint to try, with its price and its limits."""

    target: Target
    prices: PriceSchedule
    timeouts: Timeouts
    retry: Retry


class Candidate(Struct, frozen=True, kw_only=True):
    """An endpoint that was considered: what it costs at most, how it was drawn, why it is out.

    `model_draw` and `draw` are the scores of its model within a step and of itself within its
    model, with their weights in percent; None where nothing was drawn. `removed` is None for
    those that will be tried.
    """

    attempt: Attempt
    cost_max_nano_usd: int
    model_weight: int | None = None
    model_draw: float | None = None
    weight: int | None = None
    draw: float | None = None
    removed: str | None = None


class Plan(Struct, frozen=True, kw_only=True):
    """What the planner decided: never empty.

    `next_on` are the error codes that move on to the next attempt; `cost_max_nano_usd` bounds the
    dearest attempt, `tokens_max` is what counts against tokens per minute; `tier` is what the key's
    tier limits. `candidates` are all endpoints of the chain, in the order before resting ones were
    moved; `skipped` the rules before the one that applied.
    """

    attempts: Sequence[Attempt]
    next_on: frozenset[ErrorCode]
    cost_max_nano_usd: int
    tokens_max: int
    catalog_sha: str
    trace: RoutingTrace
    tier: TierLimits | None = None
    candidates: Sequence[Candidate] = ()
    skipped: Sequence[SkippedRule] = ()

    @property
    def endpoint_ids(self) -> frozenset[str]:
        """The endpoints that may be asked."""
        return frozenset(attempt.target.endpoint_id for attempt in self.attempts)

    def resting_last(self, resting: Collection[str]) -> "Plan":
        """The plan with resting endpoints moved to its end: they may still be better than none."""
        if not resting:
            return self
        attempts = sorted(self.attempts, key=lambda attempt: attempt.target.endpoint_id in resting)
        return replace(self, attempts=tuple(attempts))
