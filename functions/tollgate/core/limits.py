"""What a key may do and spend, and what its caller is told of it."""

from typing import Literal

from msgspec import Struct

Period = Literal["day", "week", "month", "total"]


class TierLimits(Struct, frozen=True, kw_only=True):
    """What every key of a tier is held to beside its own limits, each; None is no limit."""

    requests_per_minute: int | None = None
    budget_nano_usd: int | None = None
    budget_period: Period = "month"


class RateLimit(Struct, frozen=True, kw_only=True):
    """Requests or tokens per minute: what is left now, and when all of it is there again."""

    limit: int
    remaining: int
    reset_s: float
