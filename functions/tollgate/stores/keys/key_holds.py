"""The hold that a generation requests of a key or level, and the hold that it gets."""

from msgspec import Struct

from tollgate.core.errors import GatewayError
from tollgate.core.ids import created_s
from tollgate.core.limits import LimitOwner, RateLimit, TierLimits
from tollgate.stores.rules.account import limit_reached


class KeyHoldRequest(Struct, frozen=True, kw_only=True):
    """The hold that a generation requests of its key."""

    amount_nano_usd: int
    # Upper bound of the generation's tokens.
    tokens: int = 0
    # Whether to take the whole amount or nothing.
    covered: bool = False
    # Whether the caller used the secret from before a rotation.
    old_secret: bool = False
    tier: TierLimits | None = None
    # Slices of the state, one of which takes the hold.
    slices: int = 1

    def over_budget(self, owner: LimitOwner, hold_id: str) -> GatewayError | None:
        """Return a refusal if the amount is above the tier's whole budget, None otherwise."""
        if self.tier is None or self.tier.budget_nano_usd is None:
            return None
        budget = self.tier.budget_nano_usd
        if budget >= (self.amount_nano_usd if self.covered else min(1, self.amount_nano_usd)):
            return None
        return limit_reached(owner, self.tier.budget_period, budget, created_s(hold_id))

    @property
    def amount_max_nano_usd(self) -> int:
        """The amount, or the tier's whole budget where that is less."""
        if self.tier is None or self.tier.budget_nano_usd is None:
            return self.amount_nano_usd
        return min(self.amount_nano_usd, self.tier.budget_nano_usd)


class KeyHold(Struct, frozen=True, kw_only=True):
    """Money and tokens that a key or level has set aside, and what is left of its rates."""

    owner: LimitOwner
    amount_nano_usd: int
    tokens: int
    rate_limit: RateLimit
    token_limit: RateLimit | None
