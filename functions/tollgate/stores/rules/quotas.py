"""Pure rules for the quotas of a key, which the write that checks the key's other limits counts.

Unlike the buckets of other limits, a counter states what is used (spent and held), so a changed
limit changes no counter. The limits come with the caller's key and are not stored in the state.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tollgate.core.clock import approximate_duration
from tollgate.core.errors import AccessError, ErrorCode, GatewayError, LedgerError
from tollgate.core.ids import created_s
from tollgate.core.limits import LimitOwner
from tollgate.core.money.amounts import usd_text
from tollgate.core.principal import Principal
from tollgate.core.quotas import QUOTA_WINDOW_S, Quota, QuotaHold, QuotaUnit
from tollgate.core.records.generation import GenerationRecord
from tollgate.stores.rules.account import UNLIMITED

COUNTER_PREFIX: Final = "c_"
# Longest time that a counter outlives its window, because clocks differ and settlements are late.
_GRACE_S: Final = 3_600


class QuotaRequest(Struct, frozen=True, kw_only=True):
    """The part of a hold's request that quotas count."""

    quotas: tuple[Quota, ...] = ()
    models: tuple[str, ...] = ()
    """Models of the plan, any of which may answer."""
    amount_nano_usd: int = 0
    tokens: int = 0
    covered: bool = False
    """True if the whole amount must be left; otherwise, any amount must be."""

    @classmethod
    def of(
        cls,
        principal: Principal,
        models: tuple[str, ...],
        amount_nano_usd: int,
        *,
        tokens: int,
        covered: bool,
    ) -> "QuotaRequest":
        """Return the request for a hold on the quotas of a principal's key."""
        return cls(
            quotas=principal.key_quotas,
            models=models,
            amount_nano_usd=amount_nano_usd,
            tokens=tokens,
            covered=covered,
        )

    def taken(self, quota: Quota) -> int:
        """Return the amount that a hold adds to the counter of a quota."""
        return {"requests": 1, "tokens": self.tokens, "usd": self.amount_nano_usd}[quota.unit]

    def used_max(self, quota: Quota) -> int:
        """Return the highest count at which a hold is admitted."""
        taken = self.taken(quota)
        return quota.limit - (taken if self.covered and quota.unit == "usd" else min(1, taken))


class QuotaTake(Struct, frozen=True, kw_only=True):
    """The quotas that a hold's write counts, and those whose models the hold leaves out."""

    holds: tuple[QuotaHold, ...] = ()
    used_max: tuple[int, ...] = ()
    """For each hold, the highest count at which the write succeeds."""
    used_up: tuple[Quota, ...] = ()
    """Quotas whose models may not be tried."""


def quota_step(
    counters: Mapping[str, int], request: QuotaRequest, owner: LimitOwner, hold_id: str
) -> QuotaTake | GatewayError:
    """Return the quotas that the next write counts, or the refusal if every model is closed."""
    second = created_s(hold_id)
    full = find_used_up(counters, request, second)
    closed = frozenset(
        model for model in request.models if any(quota.covers(model) for quota in full)
    )
    is_refused = closed.issuperset(request.models) if request.models else True
    if full and (is_refused or any(quota.models is None for quota in full)):
        quota = max(full, key=lambda each: (each.models is None, each.ends_s(second)))
        used = counters.get(counter_name(quota, second), 0)
        return _used_up(quota, owner, second, used=used)
    open_models = [model for model in request.models if model not in closed]
    counted = [quota for quota in request.quotas if quota.covers_any(open_models)]
    return QuotaTake(
        holds=tuple(
            QuotaHold(quota=quota, name=counter_name(quota, second), taken=request.taken(quota))
            for quota in counted
        ),
        used_max=tuple(map(request.used_max, counted)),
        used_up=full,
    )


def find_used_up(
    counters: Mapping[str, int], request: QuotaRequest, second: int
) -> tuple[Quota, ...]:
    """Return the quotas of which too little is left for the request."""
    return tuple(
        quota
        for quota in request.quotas
        if quota.covers_any(request.models)
        and counters.get(counter_name(quota, second), 0) > request.used_max(quota)
    )


def top_up_amounts(holds: Sequence[QuotaHold], more_nano_usd: int) -> list[int]:
    """Return the amounts that a top-up adds to the counter of each quota."""
    return [more_nano_usd if each.quota.unit == "usd" else 0 for each in holds]


def topped_up(holds: Sequence[QuotaHold], more_nano_usd: int) -> tuple[QuotaHold, ...]:
    """Return the parts of a hold that its quotas count after a top-up."""
    amounts = top_up_amounts(holds, more_nano_usd)
    return tuple(
        replace(each, taken=each.taken + more) for each, more in zip(holds, amounts, strict=True)
    )


def top_up_take(holds: Sequence[QuotaHold], more_nano_usd: int) -> QuotaTake:
    """Return the quotas that the write of a top-up counts."""
    return QuotaTake(
        holds=topped_up(holds, more_nano_usd),
        used_max=tuple(
            each.quota.limit - more_nano_usd if each.quota.unit == "usd" else UNLIMITED
            for each in holds
        ),
    )


def refuse_top_up(
    counters: Mapping[str, int], take: QuotaTake, owner: LimitOwner, hold_id: str
) -> GatewayError | None:
    """Return the refusal of a top-up by a quota of its hold, or None."""
    for each, used_max in zip(take.holds, take.used_max, strict=True):
        used = counters.get(each.name, 0)
        if used > used_max:
            return _used_up(each.quota, owner, created_s(hold_id), used=used)
    return None


class QuotaUse(Struct, frozen=True, kw_only=True):
    """The use of a generation, by which its hold is settled."""

    cost_nano_usd: int = 0
    tokens: int = 0
    requests: int = 1
    model: str | None = None
    """The model that answered; None if it is unknown, so that every quota of the hold counts."""

    def unused(self, name: str, taken: int) -> int:
        """Return the unused amount, which is negative if more was used than held."""
        counter = parse_counter(name)
        if self.model is not None and not counter.quota.covers(self.model):
            return taken
        used: dict[QuotaUnit, int] = {
            "requests": self.requests,
            "tokens": self.tokens,
            "usd": self.cost_nano_usd,
        }
        return taken - used[counter.quota.unit]


def use_of(record: GenerationRecord) -> QuotaUse:
    """Return what the generation of a record used."""
    return QuotaUse(
        cost_nano_usd=record.cost_nano_usd, tokens=record.usage.total_tokens, model=record.model
    )


class Counter(Struct, frozen=True):
    """The quota of a counter (without its limit), and the start of the counter's window."""

    quota: Quota
    begins_s: int


def counter_name(quota: Quota, second: int) -> str:
    """Return the name of the counter for a Unix second: `c_usd/day/1764288000@anthropic/*`."""
    models = "" if quota.models is None else f"@{quota.models}"
    return f"{COUNTER_PREFIX}{quota.unit}/{quota.per}/{quota.begins_s(second)}{models}"


def parse_counter(name: str) -> Counter:
    """Return the counter with a name; raise ValueError if the name is malformed."""
    window, _, models = name.removeprefix(COUNTER_PREFIX).partition("@")
    unit, per, begins_s = window.split("/")
    return Counter(Quota.named(unit, per, models or None), int(begins_s))


def used_percents(
    counters: Mapping[str, int], quotas: Iterable[Quota], second: int
) -> Iterator[tuple[Quota, int]]:
    """Yield each quota in USD with the used part of its limit in percent, rounded down."""
    for quota in quotas:
        if quota.unit == "usd" and quota.limit > 0:
            used = counters.get(counter_name(quota, second), 0)
            yield quota, 100 * used // quota.limit


def stale_counters(names: Iterable[str], second: int) -> tuple[str, ...]:
    """Return the counters in an item whose windows have ended."""
    return tuple(
        sorted(name for name in names if name.startswith(COUNTER_PREFIX) and _is_over(name, second))
    )


def _is_over(name: str, second: int) -> bool:
    counter = parse_counter(name)
    length_s = QUOTA_WINDOW_S[counter.quota.per]
    return counter.begins_s + length_s + min(length_s, _GRACE_S) < second


def _used_up(quota: Quota, owner: LimitOwner, second: int, *, used: int) -> GatewayError:
    """Return the refusal by a quota: 402 for money, otherwise 429."""
    ends_s = quota.ends_s(second)
    unit = quota.unit.removesuffix("s") if quota.limit == 1 else quota.unit
    amount = f"${usd_text(quota.limit)}" if quota.unit == "usd" else f"{quota.limit} {unit}"
    models = "" if quota.models is None else f" of {quota.models}"
    reset = f" It resets in {approximate_duration(ends_s - second)}."
    message = f"{owner.subject} may use {amount} per {quota.per}{models}.{reset}"
    refusal: GatewayError
    if quota.unit == "usd":
        refusal = LedgerError(ErrorCode.KEY_LIMIT_EXCEEDED, message)
        refusal.resets_s = ends_s
    else:
        wait_s = max(1, ends_s - second)
        refusal = AccessError(ErrorCode.RATE_LIMIT_EXCEEDED, message, retry_after_s=wait_s)
    reached = owner.reach(quota.unit, quota.limit, remaining=quota.limit - used, resets_s=ends_s)
    refusal.limit = replace(reached, per=quota.per, models=quota.models)
    return refusal
