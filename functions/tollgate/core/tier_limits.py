"""What a key may do and spend beyond what it says itself."""

from typing import Literal

from msgspec import Struct

BudgetPeriod = Literal["day", "week", "month", "total"]


class TierLimits(Struct, frozen=True, kw_only=True):
    """What every key of a tier is held to beside its own limits, each; None is no limit."""

    requests_per_minute: int | None = None
    budget_nano_usd: int | None = None
    budget_period: BudgetPeriod = "month"
