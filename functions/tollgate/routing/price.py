"""Usage times price: one line per class of tokens, each rounded once, the total their sum."""

from dataclasses import dataclass
from decimal import Decimal


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
