"""Usage times price: one line per class of tokens, each rounded once, the total their sum."""

from collections.abc import Iterable, Mapping
from decimal import ROUND_CEILING, Decimal
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tollgate.core.generation import BillLine, Fee
from tollgate.core.money import cost_nano_usd
from tollgate.core.usage import Usage

# Lines of these classes are the model's; every other line is a tool's or a page's.
MODEL_ITEMS: Final = frozenset(
    {
        "input",
        "input_audio",
        "cache_read",
        "cache_read_audio",
        "cache_write_5m",
        "cache_write_1h",
        "output",
        "output_audio",
        "image",
        "request",
        "provider_web_search",
        "unpriced_web_search",
    }
)
# What a provider charges for and the catalog has no price for: a line that costs nothing.
UNPRICED_ITEMS: Final = frozenset({"unpriced_web_search"})
_DAY_MINUTES: Final = 1_440
# 1970-01-01 was a Thursday.
_EPOCH_WEEKDAY: Final = 3
_PIECES_PER_RATE: Final = Decimal(1_000_000)
_NANO_USD_PER_USD_PER_MILLION: Final = Decimal(1_000)
# A bill without fees and searches has ten lines at most, each rounded up by half a nano-dollar.
_ROUNDING_MAX_NANO_USD: Final = Decimal(5)
_FREE: Final = Decimal(0)


class Price(Struct, frozen=True, kw_only=True):
    """Dollars per million tokens, per request, per picture made, and per search of the provider's.

    A class that has no rate is billed as plain input or plain output, cached audio as what else was
    read from the cache, never for nothing; a picture without a rate is billed by its tokens alone,
    and searches without a rate are told on a line that costs nothing.
    """

    input: Decimal
    output: Decimal
    cache_read: Decimal | None = None
    cache_write: Decimal | None = None
    cache_write_1h: Decimal | None = None
    request: Decimal | None = None
    audio_input: Decimal | None = None
    audio_output: Decimal | None = None
    cache_read_audio: Decimal | None = None
    image: Decimal | None = None
    web_search: Decimal | None = None

    @property
    def input_dearest(self) -> Decimal:
        """The highest rate at which a token of the prompt can be billed."""
        rates = (
            self.input,
            self.cache_read,
            self.cache_write,
            self.cache_write_1h,
            self.audio_input,
            self.cache_read_audio,
        )
        return max(rate for rate in rates if rate is not None)


class PriceOverride(Struct, frozen=True, kw_only=True):
    """Rates that replace others while all its conditions hold; None is no condition.

    Days are half open in Unix seconds, `utc_minutes` half open in minutes of the day, over midnight
    where the end comes first. `utc_weekdays` are counted from Monday, 0; hours over midnight are of
    the day on which they begin. `rates` are by the names of `Price`.
    """

    rates: Mapping[str, Decimal]
    since_s: int | None = None
    until_s: int | None = None
    prompt_tokens_over: int | None = None
    utc_minutes: tuple[int, int] | None = None
    utc_weekdays: frozenset[int] | None = None

    def holds_at(self, when_s: float) -> bool:
        """Whether its time is now, whatever the prompt."""
        if self.since_s is not None and when_s < self.since_s:
            return False
        if self.until_s is not None and when_s >= self.until_s:
            return False
        day, minute = divmod(int(when_s) // 60, _DAY_MINUTES)
        if self.utc_minutes is not None:
            start, end = self.utc_minutes
            if start > end and minute < end:
                day -= 1
            elif not (start <= minute < end if start < end else start <= minute):
                return False
        return self.utc_weekdays is None or (day + _EPOCH_WEEKDAY) % 7 in self.utc_weekdays

    def holds_over(self, prompt_tokens: int) -> bool:
        """Whether it is for a prompt of this size, at whatever time."""
        return self.prompt_tokens_over is None or prompt_tokens > self.prompt_tokens_over


class PriceSchedule(Struct, frozen=True, kw_only=True):
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


def bill(usage: Usage, price: Price, fees: Iterable[Fee] = ()) -> tuple[BillLine, ...]:
    """The lines of one answer; a class that was not reported, or is zero, has none."""
    audio_input = audio_output = audio_read = 0
    if price.audio_input is not None:
        audio_input = _part(usage.audio_input_tokens, usage.uncached_input_tokens)
    if price.audio_output is not None:
        audio_output = _part(usage.audio_output_tokens, usage.output_tokens)
    if price.cache_read_audio is not None:
        audio_read = _part(usage.cache_read_audio_input_tokens, usage.cache_read_input_tokens)
    classes = (
        ("input", (usage.uncached_input_tokens or 0) - audio_input, price.input),
        ("input_audio", audio_input, price.audio_input),
        ("cache_read", (usage.cache_read_input_tokens or 0) - audio_read, price.cache_read),
        ("cache_read_audio", audio_read, price.cache_read_audio),
        ("cache_write_5m", usage.cache_write_5m_input_tokens, price.cache_write),
        ("cache_write_1h", usage.cache_write_1h_input_tokens, price.cache_write_1h),
        ("output", (usage.output_tokens or 0) - audio_output, price.output),
        ("output_audio", audio_output, price.audio_output),
    )
    lines = [
        _line(item, quantity, price.input if rate is None else rate)
        for item, quantity, rate in classes
        if quantity
    ]
    pieces = (
        Fee(item="image", quantity=usage.images or 0, usd_each=price.image or _FREE),
        Fee(item="request", quantity=1, usd_each=price.request or _FREE),
    )
    lines += [_fee_line(piece) for piece in pieces if piece.quantity and piece.usd_each]
    # A fee is said even where it is nothing: that a tool ran is part of the bill.
    lines += [_fee_line(fee) for fee in (_searches(usage, price), *fees) if fee.quantity]
    return tuple(lines)


def _searches(usage: Usage, price: Price) -> Fee:
    """What the provider's own searches cost; those that nobody has priced go by another name."""
    searches = usage.web_searches or 0
    if price.web_search is None:
        return Fee(item="unpriced_web_search", quantity=searches, usd_each=_FREE)
    return Fee(item="provider_web_search", quantity=searches, usd_each=price.web_search)


def total_nano_usd(lines: tuple[BillLine, ...]) -> int:
    """What a bill comes to."""
    return sum(line.cost_nano_usd for line in lines)


def cost_max_nano_usd(input_tokens_max: int, output_tokens_max: int, price: Price) -> int:
    """What a choice within these limits costs at most, whatever its prompt is billed as.

    A choice is one picture at most: whoever wants more asks for more choices. What a provider may
    search for by itself has no bound, and is not in this one.
    """
    exact = (
        input_tokens_max * price.input_dearest
        + output_tokens_max * max(price.output, price.audio_output or _FREE)
        + ((price.request or _FREE) + (price.image or _FREE)) * _PIECES_PER_RATE
    ) * _NANO_USD_PER_USD_PER_MILLION
    return int((exact + _ROUNDING_MAX_NANO_USD).to_integral_value(rounding=ROUND_CEILING))


def _part(tokens: int | None, whole: int | None) -> int:
    """Tokens that are part of others: never more than these, whatever a provider says."""
    return min(tokens or 0, whole or 0)


def _fee_line(fee: Fee) -> BillLine:
    return _line(fee.item, fee.quantity, fee.usd_each * _PIECES_PER_RATE)


def _line(item: str, quantity: int, usd_per_million: Decimal) -> BillLine:
    return BillLine(
        item=item,
        quantity=quantity,
        usd_per_million=usd_per_million,
        cost_nano_usd=cost_nano_usd(quantity, usd_per_million),
    )
