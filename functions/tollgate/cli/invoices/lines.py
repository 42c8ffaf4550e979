"""The lines of an invoice, whatever its format: a name, a UTC day, an amount, tokens."""

from collections.abc import Iterable
from decimal import Decimal, InvalidOperation
from typing import Final

from msgspec import Struct

# Amounts are in US dollars alone: no rate of exchange is known here.
CURRENCY: Final = "USD"


class InvoiceRefused(Exception):
    """A file that is not read: its format, currency or a field is another one."""


class InvoiceLine(Struct, frozen=True, kw_only=True):
    """The bill of a provider under one name for one UTC day; None is not stated."""

    day: str
    """As `2026-11-21`."""
    # The provider's name of the model, or of what it bills.
    name: str
    usd: Decimal | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None


def read_amount(value: object, what: str) -> Decimal:
    """Return a stated amount; raise InvoiceRefused for what is no finite number."""
    try:
        amount = Decimal(str(value))
    except InvalidOperation:
        amount = Decimal("NaN")
    if not amount.is_finite():
        raise InvoiceRefused(f"{what} is no amount: {str(value)[:40]!r}.")
    return amount


def check_currency(stated: object) -> None:
    """Raise InvoiceRefused for amounts in another currency."""
    if str(stated).upper() != CURRENCY:
        raise InvoiceRefused(f"Amounts are in {str(stated)[:10]!r}, not in {CURRENCY}.")


def sum_lines(lines: Iterable[InvoiceLine]) -> list[InvoiceLine]:
    """Sum the lines of the same day and name, in their order."""
    sums: dict[tuple[str, str], InvoiceLine] = {}
    for line in lines:
        place = (line.day, line.name)
        known = sums.get(place, InvoiceLine(day=line.day, name=line.name))
        sums[place] = InvoiceLine(
            day=line.day,
            name=line.name,
            usd=_plus(known.usd, line.usd),
            input_tokens=_plus_count(known.input_tokens, line.input_tokens),
            output_tokens=_plus_count(known.output_tokens, line.output_tokens),
        )
    return [sums[place] for place in sorted(sums)]


def _plus(one: Decimal | None, other: Decimal | None) -> Decimal | None:
    return other if one is None else one if other is None else one + other


def _plus_count(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else one + other
