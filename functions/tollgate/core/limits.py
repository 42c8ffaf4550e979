"""What a key may do and spend beyond what it says itself."""

from dataclasses import dataclass
from typing import Literal

BudgetPeriod = Literal["day", "week", "month", "total"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TierLimits:
    """What every key of a tier is held to beside its own limits, each; None is no limit."""

    requests_per_minute: int | None = None
    budget_nano_usd: int | None = None
    budget_period: BudgetPeriod = "month"
