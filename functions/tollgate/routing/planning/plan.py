"""Planner's decision: the endpoints to try, in order."""

from collections.abc import Collection, Mapping, Sequence
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import replace

from tollgate.core.errors import ErrorCode
from tollgate.core.limits import TierLimits
from tollgate.core.records.generation import RoutingTrace
from tollgate.core.routing.endpoint_status import ENDLESS, Lifecycle, Speed
from tollgate.providers.ports.base import Target, Timeouts
from tollgate.routing.price import PriceSchedule


class Retry(Struct, frozen=True, kw_only=True):
    """Retries of one endpoint and the pauses between them."""

    retries_max: int = 2
    backoff_min_s: float = 0.25
    backoff_max_s: float = 4.0
    retries_max_by_error: Mapping[ErrorCode, int] = field(default_factory=dict)

    def retries_max_on(self, code: ErrorCode) -> int:
        """Return how often one endpoint is retried after this error."""
        return self.retries_max_by_error.get(code, self.retries_max)


class Attempt(Struct, frozen=True, kw_only=True):
    """Endpoint to try, with its prices and limits."""

    target: Target
    context_tokens: int
    """Most tokens that the prompt and the answer may have together."""
    prices: PriceSchedule
    timeouts: Timeouts
    retry: Retry
    lifecycle: Lifecycle = ENDLESS


class Plan(Struct, frozen=True, kw_only=True):
    """Attempts for one request in order, at least one."""

    attempts: Sequence[Attempt]
    next_on: frozenset[ErrorCode]
    """Errors after which the next attempt is made."""
    cost_max_nano_usd: int
    """Highest cost of the dearest attempt."""
    tokens_max: int
    """Tokens that the request counts against the limit of tokens per minute."""
    catalog_sha: str
    trace: RoutingTrace
    tier: TierLimits | None = None
    """Limits of the key's tier."""
    unmet: tuple[str, ...] = ()
    """Names of preferences and tools that have no effect."""

    @property
    def endpoint_ids(self) -> frozenset[str]:
        """Ids of the plan's endpoints."""
        return frozenset(attempt.target.endpoint_id for attempt in self.attempts)

    def resting_last(self, resting: Collection[str]) -> "Plan":
        """Return the plan with resting endpoints last, since trying one is better than refusing."""
        if not resting:
            return self
        attempts = sorted(self.attempts, key=lambda attempt: attempt.target.endpoint_id in resting)
        return replace(self, attempts=tuple(attempts))

    @property
    def speed_sort(self) -> Literal["throughput", "latency"] | None:
        """Measure of speed in the request's `provider.sort`; None for any other order."""
        preferences = self.trace.preferences
        if preferences is None or preferences.sort == "price":
            return None
        return preferences.sort

    def fastest_first(self, speeds: Mapping[str, Speed]) -> "Plan":
        """Return the plan with the endpoints of each model sorted by measured speed.

        `provider.order` takes precedence, and endpoints without measurements come last in their old
        order. If no endpoint has measurements, the preference is reported as unmet.
        """
        preferences, wanted = self.trace.preferences, self.speed_sort
        if preferences is None or wanted is None:
            return self
        models = list(dict.fromkeys(attempt.target.model for attempt in self.attempts))
        listed = list(preferences.order)

        def place(attempt: Attempt) -> tuple[int, int, float]:
            target = attempt.target
            slug, order = target.provider, len(listed)
            if slug in listed:
                order = listed.index(slug)
            return (
                models.index(target.model),
                order,
                _slowness(speeds.get(target.endpoint_id), wanted),
            )

        attempts = sorted(self.attempts, key=place)
        decides = any(_slowness(speed, wanted) < _UNMEASURED for speed in speeds.values())
        if not (preferences.fallbacks or preferences.order):
            attempts = attempts[:1]
        unmet = () if decides or len(models) == len(self.attempts) else ("provider.sort",)
        return replace(self, attempts=tuple(attempts), unmet=unmet)


_UNMEASURED = float("inf")


def _slowness(speed: Speed | None, wanted: Literal["throughput", "latency"]) -> float:
    """Return a sort key that is smaller for faster endpoints."""
    if speed is None:
        return _UNMEASURED
    if wanted == "latency":
        return speed.latency_ms
    return _UNMEASURED if speed.tokens_per_s is None else -speed.tokens_per_s
