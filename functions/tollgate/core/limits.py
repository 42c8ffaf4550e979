"""The limits of keys and tiers, and the rate limits shown in reply headers."""

from math import ceil
from typing import Final, Literal, get_args
from urllib.parse import quote

from msgspec import Struct

from tollgate.core.quotas import QuotaWindow

Period = Literal["day", "week", "month", "total"]
# The levels above a key that may have their own limits.
AboveKey = Literal["member", "team"]
# The owners of limits, in the order in which limits are checked.
Level = Literal["key", "member", "team", "session", "workspace"]
# The source of a limit: an owner, or the request itself.
StatedBy = Level | Literal["request"]
# Limits count nano-dollars per period or per request, requests or tokens per minute, or concurrent
# requests. `requests`, `tokens` and `usd` are also units of quotas, which state their window.
LimitKind = Period | Literal["requests", "tokens", "concurrency", "max_cost", "usd"]
# The kinds of limits that are amounts of money.
MONEY_KINDS: Final[frozenset[LimitKind]] = frozenset({*get_args(Period), "max_cost", "usd"})
# The headers with a request's cost ceiling, and with narrower limits for its session.
MAX_COST_HEADER: Final = "x-tollgate-max-cost"
SESSION_BUDGET_HEADER: Final = "x-tollgate-session-budget"
SESSION_REQUESTS_HEADER: Final = "x-tollgate-session-requests"


class TierLimits(Struct, frozen=True, kw_only=True):
    """Limits that a tier imposes on each of its keys, in addition to the key's own; None means no
    limit.
    """

    requests_per_minute: int | None = None
    budget_nano_usd: int | None = None
    budget_period: Period = "month"


class SessionLimit(Struct, frozen=True, kw_only=True):
    """The highest cost of all requests of one session, and their number; None for no limit."""

    id: str
    """Hash of the session's id; records contain the same hash."""
    nano_usd: int | None = None
    requests: int | None = None


class CostCeiling(Struct, frozen=True, kw_only=True):
    """The highest possible cost of one request."""

    level: Literal["request", "key", "session"]
    id: str
    """The id of the key, the hash of the session's, or the header that states the ceiling."""
    nano_usd: int

    @property
    def reached(self) -> "ReachedLimit":
        """The ceiling as the limit in a refusal; none of it is used."""
        return ReachedLimit(
            level=self.level,
            id=self.id,
            kind="total" if self.level == "session" else "max_cost",
            limit=self.nano_usd,
            remaining=self.nano_usd,
        )


class RateLimit(Struct, frozen=True, kw_only=True):
    """A limit on requests or tokens per minute, as shown in reply headers."""

    limit: int
    remaining: int
    reset_s: float


_SAFE_IN_GLOBS: Final = "/*?[]!:+~"


class LimitWarning(Struct, frozen=True, kw_only=True):
    """A spending limit of a key whose used share has reached the percentage for warnings."""

    period: Period | QuotaWindow
    percent: int
    """The spent and held part of the limit, rounded down."""
    models: str | None = None
    """Glob of the models whose cost a quota counts; None for all."""

    @property
    def limit(self) -> str:
        """The limit's name in a header: `day`, or `day@anthropic/*` for a quota of some models."""
        if self.models is None:
            return self.period
        # Globs may contain characters that headers must not.
        return f"{self.period}@{quote(self.models, safe=_SAFE_IN_GLOBS)}"

    @property
    def text(self) -> str:
        """The limit and the used share: `day 85%`."""
        return f"{self.limit} {self.percent}%"


class ReachedLimit(Struct, frozen=True, kw_only=True):
    """The limit that caused a refusal, as shown in the error."""

    level: StatedBy
    id: str
    """The id of the key, member or team, or the header of a request."""
    kind: LimitKind
    limit: int
    """Nano-dollars for a limit of money, else a number of requests or tokens."""
    remaining: int
    """The remaining part of the limit, which may be above zero but too small for the refused
    request.
    """
    resets_s: int | None = None
    """The Unix second at which the limit resets; None if it never does."""
    per: str | None = None
    """The window of a quota; None for other limits."""
    models: str | None = None
    """Glob of the models whose requests a quota counts; None for all."""


class LimitOwner(Struct, frozen=True, kw_only=True):
    """The key, member, team or session whose limits a state counts."""

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

    @property
    def beside_key(self) -> AboveKey | Literal["session"] | None:
        """The level if its state is a side of a hold besides the key's, else None."""
        return "session" if self.level == "session" else self.above_key

    def reach(
        self, kind: LimitKind, limit: int, *, remaining: int = 0, resets_s: float | None = None
    ) -> ReachedLimit:
        """Return one of the owner's limits as the cause of a refusal."""
        return ReachedLimit(
            level=self.level,
            id=self.id,
            kind=kind,
            limit=limit,
            remaining=max(0, remaining),
            resets_s=None if resets_s is None else ceil(resets_s),
        )
