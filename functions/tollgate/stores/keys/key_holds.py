"""Requests for holds on a key or level, and the resulting holds."""

from collections.abc import Mapping

from msgspec import Struct

from tollgate.aws.attributes import AttributeValue
from tollgate.core.errors import GatewayError
from tollgate.core.ids import created_s
from tollgate.core.limits import LimitOwner, LimitWarning, RateLimit, SessionLimit, TierLimits
from tollgate.stores.aws.expressions import ConditionalUpdate
from tollgate.stores.aws.tables import state_key
from tollgate.stores.rules.account import KeyHoldAttempt, KeyState, key_step, limit_reached
from tollgate.stores.rules.quotas import QuotaRequest, QuotaTake, quota_step


class KeyHoldRequest(Struct, frozen=True, kw_only=True):
    """A generation's request for a hold on a key or level."""

    amount_nano_usd: int
    """Amount to set aside: the upper bound on the generation's cost."""
    tokens: int = 0
    """Upper bound on the generation's tokens."""
    covered: bool = False
    """True to hold the whole amount or nothing; False to accept a smaller amount if
    less is left.
    """
    old_secret: bool = False
    """True if the caller used a secret that a rotation has replaced."""
    tier: TierLimits | None = None
    """Limits of the key's tier, or None without a tier."""
    session: SessionLimit | None = None
    """Limit of the session, if the owner is a session."""
    quotas: QuotaRequest = QuotaRequest()
    """The quotas of the key, or none."""
    warns_from_percent: int | None = None
    """Percent of a spending limit from which the hold warns."""
    slices: int = 1
    """Number of slices of the state; one of them takes the hold."""

    def over_budget(self, owner: LimitOwner, hold_id: str) -> GatewayError | None:
        """Return a refusal if the amount exceeds the tier's whole budget; otherwise None."""
        if self.tier is None or self.tier.budget_nano_usd is None:
            return None
        budget = self.tier.budget_nano_usd
        if budget >= (self.amount_nano_usd if self.covered else min(1, self.amount_nano_usd)):
            return None
        return limit_reached(owner, self.tier.budget_period, budget, created_s(hold_id))

    @property
    def amount_max_nano_usd(self) -> int:
        """The amount, or the tier's whole budget if that is less."""
        if self.tier is None or self.tier.budget_nano_usd is None:
            return self.amount_nano_usd
        return min(self.amount_nano_usd, self.tier.budget_nano_usd)


class KeyHold(Struct, frozen=True, kw_only=True):
    """Money and tokens set aside on a key or level, and the remaining part of its rate limits."""

    owner: LimitOwner
    amount_nano_usd: int
    tokens: int
    rate_limit: RateLimit | None = None
    token_limit: RateLimit | None = None
    warning: LimitWarning | None = None
    """The limit that is nearly used up."""
    requests: int = 0
    """Requests that a session or the quotas of a key count for the hold."""
    quotas: QuotaTake = QuotaTake()
    """The part of the hold that quotas of the key count."""


def next_hold_step(
    state: KeyState | None, owner: LimitOwner, hold_id: str, request: KeyHoldRequest, *, now_us: int
) -> tuple[KeyHoldAttempt, QuotaTake] | GatewayError:
    """Return the next write for a hold on a key or level, and its quotas, or a refusal."""
    narrowed = None if state is None else state.within(request.tier, created_s(hold_id))
    step = key_step(
        narrowed,
        owner,
        hold_id,
        request.amount_nano_usd,
        now_us=now_us,
        tokens=request.tokens,
        covered=request.covered,
    )
    if isinstance(step, GatewayError):
        return step
    counted = quota_step({} if state is None else state.counters, request.quotas, owner, hold_id)
    return counted if isinstance(counted, GatewayError) else (step, counted)


def update_state(
    write: ConditionalUpdate,
    table: str,
    owner: LimitOwner,
    *,
    names: Mapping[str, str],
    values: Mapping[str, AttributeValue],
) -> dict[str, object]:
    """Return the parameters of a write to a state, whose failure returns the stored item."""
    parameters = write.build(table, state_key(owner), values, names)
    parameters["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
    return parameters
