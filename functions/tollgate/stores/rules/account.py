"""Pure rules that decide about holds, from the state of a wallet shard, key or level.

A store writes without reading first. If the write's condition fails, DynamoDB returns the item, and
these rules decide whether to try another form of the write, to try another shard, or to refuse.
"""

import zlib
from collections.abc import Mapping, Sequence
from typing import Final, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from tollgate.core.clock import approximate_duration
from tollgate.core.errors import AccessError, ErrorCode, GatewayError, LedgerError
from tollgate.core.ids import created_s
from tollgate.core.limits import LimitOwner, Period, RateLimit, ReachedLimit, TierLimits
from tollgate.core.money.amounts import usd_text
from tollgate.stores.rules.periods import (
    PERIODS,
    bucket_names,
    minute_bucket,
    minute_ends_s,
    period_ends_s,
)

# Maximum number of holds on one item. It is limited because a hold takes about 22 bytes, and each
# further KB of an item costs one more write unit.
HOLDS_MAX: Final = 1000
# Number of holds above which a wallet gets more shards. One item can take many more holds, but the
# load may double several times before the next round of maintenance.
HOLDS_CROWDED: Final = 24
# Amount that stands for "no limit": more than anybody spends, within DynamoDB's 38 digits.
UNLIMITED: Final = 10**18
# The stored locks of a workspace: open, locked by an administrator, or paused by its budget.
OPEN: Final = 0
LOCKED: Final = 1
PAUSED: Final = 2
# Expiry of a key that never expires: the year 9999.
NEVER_S: Final = 253_402_300_799
# Rate and burst values that mean "no rate limit"; with these values, requests are not counted.
UNLIMITED_RATE: Final = 60_000_000
UNLIMITED_BURST: Final = 1_000_000_000
_US_PER_S: Final = 1_000_000
_US_PER_MINUTE: Final = 60 * _US_PER_S
_SLOT_FREE_S: Final = 1.0

RateForm = Literal["idle", "busy", "unlimited"]
# The owner of the limit that a key's hold must satisfy: the key itself, or its tier if the tier's
# limit is stricter.
TierForm = Literal["own", "tier"]
WalletStep = Literal["hold", "hold_rest", "empty", "full", "locked"]


class WalletState(Struct, frozen=True, kw_only=True):
    """The state of one wallet shard."""

    available_nano_usd: int
    locked: bool
    paused: bool = False
    """True if the budget is spent."""
    holds: int
    """Number of holds."""


class RateState(Struct, frozen=True, kw_only=True):
    """The rate limit of a key or level as a bucket of GCRA (generic cell rate algorithm)."""

    full_us: int
    """Unix microsecond at which the bucket is full again."""
    ready_us: int
    """Unix microsecond from which the next request is admitted."""
    interval_us: int
    """Microseconds until the bucket admits one more request."""
    slack_us: int
    """Microseconds that a burst may use in advance, beyond one interval."""

    @classmethod
    def fresh(cls, requests_per_minute: int, burst: int) -> "RateState":
        """Return a full bucket with this rate and burst."""
        interval_us = -(-_US_PER_MINUTE // requests_per_minute)
        return cls(
            full_us=0, ready_us=0, interval_us=interval_us, slack_us=interval_us * (burst - 2)
        )

    @property
    def requests_per_minute(self) -> int:
        """The rate in requests per minute, which is the lowest rate with this interval."""
        return -(-_US_PER_MINUTE // self.interval_us)

    @property
    def burst(self) -> int:
        """The number of requests that a full bucket admits without a pause."""
        return self.slack_us // self.interval_us + 2

    def form(self, now_us: int) -> RateForm:
        """Return the form of the next hold's write, according to this bucket."""
        return "unlimited" if self.is_unlimited else rate_form(self.full_us, now_us)

    @property
    def is_unlimited(self) -> bool:
        """True for a level without a rate limit; the interval of 1 µs marks the level."""
        return self.interval_us == 1

    def within(self, requests_per_minute: int) -> "RateState":
        """Return this bucket or, if the given rate is lower, a bucket with that rate and a burst of
        at most twice the rate.
        """
        tier = RateState.fresh(requests_per_minute, 2 * requests_per_minute)
        if tier.interval_us <= self.interval_us:
            return self
        slack_us = tier.interval_us * (min(self.burst, tier.burst) - 2)
        return replace(self, interval_us=tier.interval_us, slack_us=slack_us)

    def take(self, form: RateForm, now_us: int) -> "RateState":
        """Return the bucket after a request; `form` is the form of the hold's write."""
        if form == "unlimited":
            return self
        full_us, ready_us = (
            (now_us + self.interval_us, now_us - self.slack_us)
            if form == "idle"
            else (self.full_us + self.interval_us, self.ready_us + self.interval_us)
        )
        return replace(self, full_us=full_us, ready_us=ready_us)

    def to_limit(self, now_us: int) -> RateLimit:
        """Return the rate limit for the headers of a reply."""
        return RateLimit(
            limit=self.burst,
            remaining=min(self.burst, max(0, (now_us - self.ready_us) // self.interval_us + 1)),
            reset_s=max(0, self.full_us - now_us) / _US_PER_S,
        )


class KeyState(Struct, frozen=True, kw_only=True):
    """The state of a key or level; the rules use it to admit or refuse holds."""

    enabled: bool
    expires_s: int
    concurrency: int
    holds: int
    """Number of holds that take a place."""
    limits_nano_usd: Mapping[Period, int]
    buckets: Mapping[str, int]
    """Remaining part of each limit, by bucket name; an absent bucket is unused."""
    rate: RateState
    tokens_per_minute: int = UNLIMITED
    waiting: tuple[str, ...] = ()
    """Ids of holds that take no place; empty unless the state is full without this rule."""
    counters: Mapping[str, int] = field(default_factory=dict)
    """Used part of each quota, by counter name; an absent counter is unused."""

    def within(self, tier: TierLimits | None, second: int) -> "KeyState":
        """Return this state, with stricter limits where the tier has them."""
        if tier is None:
            return self
        state = self
        if tier.requests_per_minute is not None:
            state = replace(state, rate=self.rate.within(tier.requests_per_minute))
        period, budget = tier.budget_period, tier.budget_nano_usd
        if budget is None or budget >= self.limits_nano_usd[period]:
            return state
        bucket = bucket_names(second)[PERIODS.index(period)]
        used = self.limits_nano_usd[period] - self.remaining_nano_usd(second)[period]
        return replace(
            state,
            limits_nano_usd={**self.limits_nano_usd, period: budget},
            buckets={**self.buckets, bucket: budget - used},
        )

    def remaining_tokens(self, second: int) -> int:
        """Return the number of tokens left in the minute of a Unix second."""
        return self.buckets.get(minute_bucket(second), self.tokens_per_minute)

    def token_limit(self, second: int, now_s: float) -> RateLimit | None:
        """Return the token limit for the headers of a reply; None if there is no limit."""
        if self.tokens_per_minute == UNLIMITED:
            return None
        return RateLimit(
            limit=self.tokens_per_minute,
            remaining=max(0, self.remaining_tokens(second)),
            reset_s=max(0.0, minute_ends_s(second) - now_s),
        )

    def remaining_nano_usd(self, second: int) -> dict[Period, int]:
        """Return the nano-dollars left in each period of a Unix second."""
        return {
            period: self.buckets.get(name, self.limits_nano_usd[period])
            for period, name in zip(PERIODS, bucket_names(second), strict=True)
        }


class KeyHoldAttempt(Struct, frozen=True, kw_only=True):
    """The next write for a hold on a key or level."""

    amount_nano_usd: int
    form: RateForm
    """`idle` for a full rate bucket, `busy` for a filling one, `unlimited` without a rate limit."""
    tokens: int = 0
    waiting: tuple[str, ...] = ()
    concurrency: int = 0


def shard_order(hold_id: str, shards: int) -> Sequence[int]:
    """Return all shards. The first one depends on the id, so that the load is distributed."""
    first = zlib.crc32(hold_id.encode("ascii")) % shards
    return [(first + step) % shards for step in range(shards)]


def microseconds(now_s: float) -> int:
    """Convert seconds to microseconds, the unit of rate buckets."""
    return int(now_s * _US_PER_S)


def rate_form(full_us: int, now_us: int) -> RateForm:
    """Return the form of the write for a hold if the rate bucket is full at `full_us`."""
    return "idle" if full_us <= now_us else "busy"


def wallet_step(
    state: WalletState | None, amount_nano_usd: int, *, covered: bool = False
) -> WalletStep:
    """Return the next write on a shard, or why there is none; a missing shard counts as empty.

    A `covered` hold takes the whole amount or nothing.
    """
    if state is None:
        return "empty"
    if state.locked:
        return "locked"
    if state.holds >= HOLDS_MAX:
        return "full"
    if state.available_nano_usd >= amount_nano_usd:
        return "hold"
    return "hold_rest" if state.available_nano_usd >= 1 and not covered else "empty"


def key_step(
    state: KeyState | None,
    owner: LimitOwner,
    hold_id: str,
    amount_nano_usd: int,
    *,
    now_us: int,
    tokens: int = 0,
    covered: bool = False,
) -> KeyHoldAttempt | GatewayError:
    """Return the next write on a key's or level's state, or a refusal; None means no state.

    If too few tokens are left, the hold takes them all, because the answer's length is not known.
    """
    if state is None or not state.enabled or state.expires_s <= now_us // _US_PER_S:
        return key_refused()
    step = _usable_key_step(
        state, owner, hold_id, amount_nano_usd, now_us=now_us, tokens=tokens, covered=covered
    )
    # The headers of a refusal state the rates of the key, but not the rates of levels.
    if isinstance(step, GatewayError) and owner.level == "key":
        step.rate_limit = state.rate.to_limit(now_us)
        step.token_limit = state.token_limit(created_s(hold_id), now_us / _US_PER_S)
    return step


def _usable_key_step(
    state: KeyState,
    owner: LimitOwner,
    hold_id: str,
    amount_nano_usd: int,
    *,
    now_us: int,
    tokens: int,
    covered: bool,
) -> KeyHoldAttempt | GatewayError:
    if state.rate.full_us > now_us and state.rate.ready_us > now_us:
        rate, ready_s = state.rate.requests_per_minute, state.rate.ready_us / _US_PER_S
        refusal = _too_fast(
            f"{owner.subject} allows {rate} requests per minute.",
            owner.reach("requests", rate, resets_s=ready_s),
            retry_after_s=ready_s - now_us / _US_PER_S,
        )
        # A level may have another slice that admits requests, but a key has only one. So only a
        # key's own rate refuses all of the key's requests.
        refusal.is_general = owner.level == "key"
        return refusal
    if state.holds >= state.concurrency:
        return _too_fast(
            f"{owner.subject} allows {state.concurrency} requests at a time.",
            owner.reach("concurrency", state.concurrency),
            retry_after_s=_SLOT_FREE_S,
        )
    second = created_s(hold_id)
    remaining_tokens = state.remaining_tokens(second)
    if remaining_tokens < min(1, tokens):
        ends_s = minute_ends_s(second)
        return _too_fast(
            f"{owner.subject} allows {state.tokens_per_minute} tokens per minute.",
            owner.reach("tokens", state.tokens_per_minute, resets_s=ends_s),
            retry_after_s=max(_SLOT_FREE_S, ends_s - now_us / _US_PER_S),
        )
    remaining = state.remaining_nano_usd(second)
    tightest = min(PERIODS, key=lambda period: remaining[period])
    if remaining[tightest] < (amount_nano_usd if covered else min(1, amount_nano_usd)):
        limit, left = state.limits_nano_usd[tightest], remaining[tightest]
        exhausted = limit_reached(owner, tightest, limit, second, remaining=left)
        exhausted.is_general = owner.level == "key" and left < 1
        return exhausted
    return KeyHoldAttempt(
        amount_nano_usd=min(amount_nano_usd, remaining[tightest]),
        form=state.rate.form(now_us),
        tokens=min(tokens, remaining_tokens),
        waiting=state.waiting,
        concurrency=state.concurrency if state.waiting else 0,
    )


def top_up_refusal(
    state: KeyState | None, owner: LimitOwner, hold_id: str, more_nano_usd: int, *, now_us: int
) -> GatewayError | None:
    """Return the refusal to add this amount to a hold on a key or level, or None."""
    if state is None or not state.enabled or state.expires_s <= now_us // _US_PER_S:
        return key_refused()
    second = created_s(hold_id)
    remaining = state.remaining_nano_usd(second)
    tightest = min(PERIODS, key=lambda period: remaining[period])
    if remaining[tightest] < more_nano_usd:
        limit = state.limits_nano_usd[tightest]
        return limit_reached(owner, tightest, limit, second, remaining=remaining[tightest])
    return None


def key_refused() -> AccessError:
    """Return the refusal for all unusable keys, which does not reveal why a key is unusable."""
    return AccessError(
        ErrorCode.INVALID_API_KEY,
        "The API key is missing, unknown, disabled or expired.",
    )


def workspace_locked(hold_id: str, *, paused: bool = False) -> AccessError:
    """Return the refusal for a workspace that is locked, or `paused` because its budget is
    spent.
    """
    message = "This workspace is locked."
    if paused:
        message = (
            "This workspace is paused: it has spent its budget for this month. It resumes in the "
            "next UTC month, or when the operator raises the budget."
        )
    refusal = AccessError(ErrorCode.WORKSPACE_LOCKED, message)
    refusal.is_general = True
    if paused:
        _, _, month, _ = PERIODS
        refusal.resets_s = period_ends_s(month, created_s(hold_id))
    return refusal


def too_many_holds() -> AccessError:
    """Return the refusal for a workspace with the maximum number of holds on every shard."""
    return AccessError(
        ErrorCode.RATE_LIMIT_EXCEEDED,
        "This workspace has too many requests in flight.",
        retry_after_s=_SLOT_FREE_S,
    )


def _too_fast(message: str, limit: ReachedLimit, *, retry_after_s: float) -> AccessError:
    refusal = AccessError(ErrorCode.RATE_LIMIT_EXCEEDED, message, retry_after_s=retry_after_s)
    refusal.limit = limit
    return refusal


def limit_reached(
    owner: LimitOwner, period: Period, limit_nano_usd: int, second: int, *, remaining: int = 0
) -> LedgerError:
    """Return the refusal for a key or level whose limit for a period is used up."""
    ends_s = period_ends_s(period, second)
    window = "in total" if period == "total" else f"per {period}"
    reset = "" if ends_s is None else f" It resets in {approximate_duration(ends_s - second)}."
    amount = f"${usd_text(limit_nano_usd)}"
    refusal = LedgerError(
        ErrorCode.KEY_LIMIT_EXCEEDED,
        f"This key's limit of {amount} {window} is used up.{reset}"
        if owner.level == "key"
        else f"{owner.subject} has used up its limit of {amount} {window}.{reset}",
    )
    refusal.resets_s = ends_s
    refusal.limit = owner.reach(period, limit_nano_usd, remaining=remaining, resets_s=ends_s)
    return refusal
