"""Amounts of money: integer nano-dollars internally, exact decimals in input and output."""

from decimal import ROUND_HALF_UP, Decimal
from typing import Final

NANO_USD_PER_USD: Final = 1_000_000_000
_NANO_USD_PER_USD_PER_MILLION: Final = Decimal(1_000)


def cost_nano_usd(quantity: int, usd_per_million: Decimal) -> int:
    """Return the cost of `quantity` units, rounded half up to a nano-dollar."""
    exact = Decimal(quantity) * usd_per_million * _NANO_USD_PER_USD_PER_MILLION
    return int(exact.quantize(Decimal(1), rounding=ROUND_HALF_UP))


def nano_usd(usd: Decimal) -> int:
    """Convert dollars to nano-dollars, rounded half up."""
    return int((usd * NANO_USD_PER_USD).quantize(Decimal(1), rounding=ROUND_HALF_UP))


def usd(amount_nano_usd: int) -> Decimal:
    """Convert nano-dollars to exact dollars."""
    return Decimal(amount_nano_usd).scaleb(-9)


def usd_text(amount_nano_usd: int) -> str:
    """Format nano-dollars as exact dollars without trailing zeros: `0.00031`."""
    return plain_text(usd(amount_nano_usd))


def credits_text(amount_nano_usd: int, credits_per_usd: Decimal) -> str:
    """Format nano-dollars as credits, in the same notation as `usd_text`."""
    return plain_text(usd(amount_nano_usd) * credits_per_usd)


def plain_text(amount: Decimal) -> str:
    """Format a number without an exponent or trailing zeros: `0.00031`."""
    text = f"{amount:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
