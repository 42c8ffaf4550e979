"""What a key may do and spend, and what its caller is told of it."""

from dataclasses import dataclass
from typing import Literal

Period = Literal["day", "week", "month", "total"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TierLimits:
    """What every key of a tier is held to beside its own limits, each; None is no limit."""

    requests_per_minute: int | None = None
    budget_nano_usd: int | None = None
    budget_period: Period = "month"


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimit:
    """Requests or tokens per minute: what is left now, and when all of it is there again."""

    limit: int
    remaining: int
    reset_s: float
