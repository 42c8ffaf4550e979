"""Usage times price: one line per class of tokens, each rounded once, the total their sum."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Decimal
from typing import Final

from tollgate.core.generation import BillLine
from tollgate.core.money import cost_nano_usd
from tollgate.core.usage import Usage

_DAY_S: Final = 86_400
_REQUESTS_PER_RATE: Final = Decimal(1_000_000)
_NANO_USD_PER_USD_PER_MILLION: Final = Decimal(1_000)
# Four classes of input are rounded apart, each by half a nano-dollar at most.
_ROUNDING_MAX_NANO_USD: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """Dollars per million tokens, and per request; a class without a rate of its own costs `input`.

    A class that has no rate is billed as plain input, never for nothing.
    """

    input: Decimal
    output: Decimal
    cache_read: Decimal | None = None
    cache_write: Decimal | None = None
    cache_write_1h: Decimal | None = None
    request: Decimal | None = None

    @property
    def input_dearest(self) -> Decimal:
        """The highest rate at which a token of the prompt can be billed."""
        rates = (self.input, self.cache_read, self.cache_write, self.cache_write_1h)
        return max(rate for rate in rates if rate is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceOverride:
    """Rates that replace others while all its conditions hold; None is no condition.

    Days are half open in Unix seconds, `utc_minutes` half open in minutes of the day, over midnight
    where the end comes first. `rates` are by the names of `Price`.
    """

    rates: Mapping[str, Decimal]
    since_s: int | None = None
    until_s: int | None = None
    prompt_tokens_over: int | None = None
    utc_minutes: tuple[int, int] | None = None

    def holds_at(self, when_s: float) -> bool:
        """Whether its time is now, whatever the prompt."""
        if self.since_s is not None and when_s < self.since_s:
            return False
        if self.until_s is not None and when_s >= self.until_s:
            return False
        return self.utc_minutes is None or _within(self.utc_minutes, when_s)

    def holds_over(self, prompt_tokens: int) -> bool:
        """Whether it is for a prompt of this size, at whatever time."""
        return self.prompt_tokens_over is None or prompt_tokens > self.prompt_tokens_over


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceSchedule:
    """A price that may depend on the time and on the size of the prompt."""

    base: Price
    overrides: tuple[PriceOverride, ...] = ()

    def at(self, when_s: float, prompt_tokens: int) -> Price:
        """The rates of a request: where several overrides hold, the later wins, rate by rate."""
        rates: dict[str, Decimal] = {}
        for override in self.overrides:
            if override.holds_at(when_s) and override.holds_over(prompt_tokens):
                rates |= override.rates
        return replace(self.base, **rates) if rates else self.base

    def possible(self, when_s: float, prompt_tokens_max: int) -> tuple[Price, ...]:
        """Every price that a prompt of up to so many tokens may turn out to have."""
        if not self.overrides:
            return (self.base,)
        sizes = {0} | {
            override.prompt_tokens_over + 1
            for override in self.overrides
            if override.prompt_tokens_over is not None
            and override.prompt_tokens_over < prompt_tokens_max
        }
        return tuple(self.at(when_s, size) for size in sorted(sizes))


def _within(minutes: tuple[int, int], when_s: float) -> bool:
    start, end = minutes
    minute = int(when_s % _DAY_S) // 60
    return start <= minute < end if start < end else minute >= start or minute < end


def bill(usage: Usage, price: Price) -> tuple[BillLine, ...]:
    """The lines of one answer; a class that was not reported, or is zero, has none."""
    classes = (
        ("input", usage.uncached_input_tokens, price.input),
        ("cache_read", usage.cache_read_input_tokens, price.cache_read),
        ("cache_write_5m", usage.cache_write_5m_input_tokens, price.cache_write),
        ("cache_write_1h", usage.cache_write_1h_input_tokens, price.cache_write_1h),
        ("output", usage.output_tokens, price.output),
    )
    lines = [
        _line(item, quantity, price.input if rate is None else rate)
        for item, quantity, rate in classes
        if quantity
    ]
    if price.request:
        lines.append(_line("request", 1, price.request * _REQUESTS_PER_RATE))
    return tuple(lines)


def total_nano_usd(lines: tuple[BillLine, ...]) -> int:
    """What a bill comes to."""
    return sum(line.cost_nano_usd for line in lines)


def cost_max_nano_usd(input_tokens_max: int, output_tokens_max: int, price: Price) -> int:
    """What an answer within these limits costs at most, whatever its prompt is billed as."""
    exact = (
        input_tokens_max * price.input_dearest
        + output_tokens_max * price.output
        + (price.request or Decimal(0)) * _REQUESTS_PER_RATE
    ) * _NANO_USD_PER_USD_PER_MILLION
    return int(exact.to_integral_value(rounding=ROUND_CEILING)) + _ROUNDING_MAX_NANO_USD


def _line(item: str, quantity: int, usd_per_million: Decimal) -> BillLine:
    return BillLine(
        item=item,
        quantity=quantity,
        usd_per_million=usd_per_million,
        cost_nano_usd=cost_nano_usd(quantity, usd_per_million),
    )
