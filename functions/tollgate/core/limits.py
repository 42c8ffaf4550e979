"""Limits of keys and tiers, and the rates that replies state."""

from typing import Literal

from msgspec import Struct

Period = Literal["day", "week", "month", "total"]


class TierLimits(Struct, frozen=True, kw_only=True):
    """Limits of a tier, which each of its keys keeps beside its own; None is no limit."""

    requests_per_minute: int | None = None
    budget_nano_usd: int | None = None
    budget_period: Period = "month"


class RateLimit(Struct, frozen=True, kw_only=True):
    """A limit of requests or tokens per minute, as the headers of a reply state it."""

    limit: int
    remaining: int
    reset_s: float
