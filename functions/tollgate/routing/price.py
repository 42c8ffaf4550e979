"""Usage times price: one line per class of tokens, each rounded once, the total their sum."""

from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from typing import Final

from tollgate.core.generation import BillLine
from tollgate.core.money import cost_nano_usd
from tollgate.core.usage import Usage

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
