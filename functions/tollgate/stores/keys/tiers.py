"""The part of a hold's write that applies the tier's limits, without a read before the write.

A DynamoDB condition cannot compute the smaller of two limits. Therefore the writer guesses from the
last reply whether the key's or the tier's limit is narrower, and the condition checks the guess. If
the check fails, the writer corrects the guess from the returned item.
"""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct, field

from tollgate.aws.attributes import AttributeValue, number
from tollgate.core.limits import Period, TierLimits
from tollgate.stores.rules.account import (
    UNLIMITED,
    UNLIMITED_BURST,
    UNLIMITED_RATE,
    KeyHoldAttempt,
    KeyState,
    RateState,
    TierForm,
)
from tollgate.stores.rules.periods import PERIODS

_UNSEEN_RATE: Final = RateState.fresh(UNLIMITED_RATE, UNLIMITED_BURST)
_UNSEEN_LIMITS: Final[Mapping[Period, int]] = dict.fromkeys(PERIODS, UNLIMITED)


class OwnLimits(Struct, frozen=True):
    """The key's own limits; a key that this process has not seen is assumed to have none."""

    rate: RateState = _UNSEEN_RATE
    limits_nano_usd: Mapping[Period, int] = field(default_factory=lambda: _UNSEEN_LIMITS)

    @classmethod
    def of(cls, state: KeyState) -> "OwnLimits":
        """Return the limits of a stored state."""
        return cls(state.rate, state.limits_nano_usd)


class TierPart(Struct, frozen=True):
    """The narrower limits that a write applies, and the values for its expression."""

    rate: TierForm | None = None
    """Owner of the narrower rate limit, or None if the tier has no rate limit."""
    budget: tuple[int, TierForm] | None = None
    """Index of the budget's period in PERIODS, and the owner of that period's narrower limit."""
    values: Mapping[str, AttributeValue] = field(default_factory=dict)
    """ExpressionAttributeValues, only those in use, because DynamoDB rejects unused ones."""


def tier_part(tier: TierLimits | None, own: OwnLimits, take: KeyHoldAttempt) -> TierPart:
    """Return the part of a hold's write that applies the tier's rate and budget."""
    if tier is None:
        return TierPart()
    values: dict[str, AttributeValue] = {}
    rate: TierForm | None = None
    if tier.requests_per_minute is not None:
        narrower = own.rate.within(tier.requests_per_minute)
        rate = "own" if narrower is own.rate else "tier"
        per_minute = tier.requests_per_minute
        values[":ti"] = number(RateState.fresh(per_minute, 2 * per_minute).interval_us)
        if rate == "tier" and take.form == "idle":
            values[":ts"] = number(narrower.slack_us)
    spending = budget_part(tier, own, take.amount_nano_usd)
    return TierPart(rate=rate, budget=spending.budget, values={**values, **spending.values})


def budget_part(tier: TierLimits | None, own: OwnLimits, amount_nano_usd: int) -> TierPart:
    """Return the part of a write that applies only the tier's budget, as in a top-up."""
    if tier is None or tier.budget_nano_usd is None:
        return TierPart()
    period_index = PERIODS.index(tier.budget_period)
    own_limit = own.limits_nano_usd[tier.budget_period]
    if own_limit <= tier.budget_nano_usd:
        return TierPart(budget=(period_index, "own"), values={":tb": number(tier.budget_nano_usd)})
    left_min = own_limit - tier.budget_nano_usd + amount_nano_usd
    return TierPart(
        budget=(period_index, "tier"), values={":tl": number(own_limit), ":tn": number(left_min)}
    )
