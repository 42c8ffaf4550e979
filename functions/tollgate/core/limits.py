"""Limits of keys and tiers, and the rates that replies state."""

from math import ceil
from typing import Literal

from msgspec import Struct

Period = Literal["day", "week", "month", "total"]
# The levels above a key that may have limits of their own.
AboveKey = Literal["member", "team"]
# What a limit belongs to, in the order in which a request is refused.
Level = Literal["key", "member", "team", "workspace"]
# The unit of a limit: nano-dollars of a period, requests or tokens a minute, requests at once.
LimitKind = Period | Literal["requests", "tokens", "concurrency"]


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


class ReachedLimit(Struct, frozen=True, kw_only=True):
    """The limit that refused a request, as its error states it."""

    level: Level
    # Id of the key, the member or the team.
    id: str
    kind: LimitKind
    # Nano-dollars of a period, else a number of requests or tokens.
    limit: int
    # What is left of the limit, in its unit; a refusal may leave a part that is too small.
    remaining: int
    # Unix second at which the limit starts anew, None if it never does.
    resets_s: int | None = None


class LimitOwner(Struct, frozen=True, kw_only=True):
    """The key, member or team whose limits a state has."""

    level: Level
    id: str
    workspace_id: str
    # The part of its state that is meant; the only one, unless the state is divided into slices.
    slice: int = 0

    @property
    def subject(self) -> str:
        """The beginning of a sentence about it."""
        return "This key" if self.level == "key" else f"{self.level.capitalize()} `{self.id}`"

    @property
    def above_key(self) -> AboveKey | None:
        """The level, None for a key and a workspace."""
        return self.level if self.level == "member" or self.level == "team" else None

    def reach(
        self, kind: LimitKind, limit: int, *, remaining: int = 0, resets_s: float | None = None
    ) -> ReachedLimit:
        """Return a limit of it as the one that refuses."""
        return ReachedLimit(
            level=self.level,
            id=self.id,
            kind=kind,
            limit=limit,
            remaining=max(0, remaining),
            resets_s=None if resets_s is None else ceil(resets_s),
        )
