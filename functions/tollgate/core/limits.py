"""The limits of keys and tiers, and the rate limits shown in reply headers."""

from math import ceil
from typing import Literal

from msgspec import Struct

Period = Literal["day", "week", "month", "total"]
# The levels above a key that may have their own limits.
AboveKey = Literal["member", "team"]
# The holders of limits, in the order in which their limits are checked.
Level = Literal["key", "member", "team", "workspace"]
# Limits count nano-dollars per period, requests or tokens per minute, or concurrent requests.
LimitKind = Period | Literal["requests", "tokens", "concurrency"]


class TierLimits(Struct, frozen=True, kw_only=True):
    """Limits that a tier imposes on each of its keys, in addition to the key's own; None means no
    limit.
    """

    requests_per_minute: int | None = None
    budget_nano_usd: int | None = None
    budget_period: Period = "month"


class RateLimit(Struct, frozen=True, kw_only=True):
    """A limit on requests or tokens per minute, as shown in reply headers."""

    limit: int
    remaining: int
    reset_s: float


class ReachedLimit(Struct, frozen=True, kw_only=True):
    """The limit because of which a request is refused, as shown in its error."""

    level: Level
    id: str
    """The id of the key, member or team."""
    kind: LimitKind
    limit: int
    """Nano-dollars for a period, otherwise a number of requests or tokens."""
    remaining: int
    """The rest of the limit; above zero if it was not enough for the refused request."""
    resets_s: int | None = None
    """The Unix second at which the limit resets; None if it never does."""


class LimitOwner(Struct, frozen=True, kw_only=True):
    """The key, member or team whose limits a state counts."""

    level: Level
    id: str
    workspace_id: str
    slice: int = 0
    """The slice of the owner's state; 0 if the state is not divided into slices."""

    @property
    def subject(self) -> str:
        """The owner as the subject of a sentence in a message."""
        return "This key" if self.level == "key" else f"{self.level.capitalize()} `{self.id}`"

    @property
    def above_key(self) -> AboveKey | None:
        """The level if it is above a key; otherwise None."""
        return self.level if self.level == "member" or self.level == "team" else None

    def reach(
        self, kind: LimitKind, limit: int, *, remaining: int = 0, resets_s: float | None = None
    ) -> ReachedLimit:
        """Return one of the owner's limits as the limit because of which a request is refused."""
        return ReachedLimit(
            level=self.level,
            id=self.id,
            kind=kind,
            limit=limit,
            remaining=max(0, remaining),
            resets_s=None if resets_s is None else ceil(resets_s),
        )
