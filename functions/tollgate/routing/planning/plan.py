"""The plan for a request: the endpoints to try, in order."""

from collections.abc import Collection, Iterator, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from tollgate.core.errors import ErrorCode
from tollgate.core.limits import TierLimits
from tollgate.core.prompt_policy import UNSTATED, PromptUse
from tollgate.core.quotas import Quota
from tollgate.core.records.generation import RoutingTrace
from tollgate.core.request import ProviderSort
from tollgate.core.routing.endpoint_status import ENDLESS, Lifecycle, SpeedPolicy
from tollgate.core.service_tiers import DEFAULT_TIER, plain_tier
from tollgate.core.usage import Units
from tollgate.core.work.pictures import Picture
from tollgate.providers.ports.base import Target, Timeouts
from tollgate.providers.ports.provider_batches import BatchTerms
from tollgate.routing.chains import RetrySection
from tollgate.routing.places import NOWHERE, Place
from tollgate.routing.price import PriceSchedule


class Attempt(Struct, frozen=True, kw_only=True):
    """An endpoint to try, with its prices and limits."""

    target: Target
    context_tokens: int
    """Maximum number of tokens in the prompt and the answer together."""
    prices: PriceSchedule
    timeouts: Timeouts
    retry: RetrySection
    lifecycle: Lifecycle = ENDLESS
    place: Place = NOWHERE
    """Location of the endpoint."""
    prompt_use: PromptUse = UNSTATED
    service_tiers: Mapping[str, PriceSchedule] = field(default_factory=dict)
    """Prices of the tiers besides the default."""
    service_tier: str | None = None
    """Tier of `service_tiers` that the attempt requests; None for the default."""
    batch: BatchTerms | None = None
    """The terms of the provider's own batches; None if they do not run the model."""

    @property
    def batch_prices(self) -> PriceSchedule | None:
        """Prices in the provider's own batches; None if they do not run the model."""
        if self.batch is None:
            return None
        return self.prices.scaled(self.batch.percent, self.batch.cached_percent)

    @property
    def longest_output(self) -> int:
        """Maximum number of tokens in an answer without an output limit."""
        return self.target.output_tokens_max or self.context_tokens

    def billed_tier(self, reported: str | None) -> str | None:
        """Return the tier whose price applies to an answer; None for the default.

        A provider may serve the default instead of the tier that was requested. Any other
        tier that it reports was not requested, so it changes no price.
        """
        if self.service_tier is None or plain_tier(reported) == DEFAULT_TIER:
            return None
        return self.service_tier

    def is_other_tier(self, reported: str | None) -> bool:
        """Return True if a provider reports another tier than was requested."""
        served = plain_tier(reported)
        asked = self.service_tier or DEFAULT_TIER
        return bool(self.service_tiers) and served is not None and served != asked

    def schedule(self, tier: str | None) -> PriceSchedule:
        """Return the prices of a tier from `billed_tier`."""
        return self.prices if tier is None else self.service_tiers[tier]

    @property
    def asked_prices(self) -> PriceSchedule:
        """Prices of the tier that the attempt asks for."""
        return self.schedule(self.service_tier)

    def cost_max_nano_usd(
        self,
        when_s: float,
        input_tokens_max: int,
        output_tokens_max: int,
        *,
        units_max: Units | None = None,
        picture: Picture | None = None,
    ) -> int:
        """Return the maximum cost of a choice, at any tier that may be billed."""
        return max(
            self.schedule(tier).cost_max_nano_usd(
                when_s, input_tokens_max, output_tokens_max, units_max=units_max, picture=picture
            )
            for tier in {None, self.service_tier}
        )


class Plan(Struct, frozen=True, kw_only=True):
    """The attempts for one request, in order; there is at least one."""

    attempts: Sequence[Attempt]
    next_on: frozenset[ErrorCode]
    """Errors after which the next attempt is made."""
    cost_max_nano_usd: int
    """Maximum cost of the most expensive attempt."""
    tokens_max: int
    """Number of tokens counted toward the limit on tokens per minute."""
    catalog_sha: str
    trace: RoutingTrace
    tier: TierLimits | None = None
    """Limits of the key's tier."""
    ceiling_nano_usd: int | None = None
    """The lowest ceiling of the request's cost; None if there is no ceiling."""
    unmet: tuple[str, ...] = ()
    """Names of preferences and tools that have no effect."""
    sort: ProviderSort | None = None
    """Order of the endpoints, if the request or its route states one."""
    speed_policy: SpeedPolicy = SpeedPolicy()

    @property
    def endpoint_ids(self) -> frozenset[str]:
        """The ids of the plan's endpoints."""
        return frozenset(attempt.target.endpoint_id for attempt in self.attempts)

    @property
    def models(self) -> tuple[str, ...]:
        """The models of the plan, in the order of its attempts."""
        return tuple(dict.fromkeys(attempt.target.model for attempt in self.attempts))

    def under_quotas(self, used_up: Sequence[Quota]) -> "Plan":
        """Return the plan without the models of quotas that are used up; the trace names these."""
        if not used_up:
            return self
        left = tuple(
            each
            for each in self.attempts
            if not any(quota.covers(each.target.model) for quota in used_up)
        )
        trace = replace(self.trace, quotas_used_up=tuple(quota.text for quota in used_up))
        return replace(self, attempts=left, trace=trace)

    def probe_candidates(self, resting: Mapping[str, float], now_s: float) -> Iterator[str]:
        """Yield the endpoints whose probe is due and that only endpoints in cooldown precede.

        `resting` maps each endpoint in cooldown to the Unix second from which it may be probed.
        """
        for name in dict.fromkeys(attempt.target.endpoint_id for attempt in self.attempts):
            if name not in resting:
                return
            if resting[name] <= now_s:
                yield name

    def resting_last(self, resting: Collection[str], *, probe: str | None = None) -> "Plan":
        """Return the plan with endpoints in cooldown last, because trying one is better than
        refusing the request. The endpoint that the request probes comes first.
        """
        if not resting:
            return self
        attempts = sorted(self.attempts, key=lambda attempt: _rank_of_rest(attempt, resting, probe))
        trace = self.trace if probe is None else replace(self.trace, probe=probe)
        return replace(self, attempts=tuple(attempts), trace=trace)

    @property
    def is_compacted_by_provider(self) -> bool:
        """True if all attempts are at one provider that compacts conversations itself."""
        targets = [attempt.target for attempt in self.attempts]
        return len({target.provider for target in targets}) == 1 and all(
            target.dialect.compacts for target in targets
        )

    @property
    def measured_sort(self) -> ProviderSort | None:
        """The sort order, if it needs measurements; None if stated prices suffice."""
        return self.sort if self.sort != "price" or self.trace.kind == "chat" else None


def _rank_of_rest(attempt: Attempt, resting: Collection[str], probe: str | None) -> int:
    name = attempt.target.endpoint_id
    return 0 if name == probe else 1 + (name in resting)
