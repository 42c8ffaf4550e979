"""Invoice lines, independent of the file format."""

from collections.abc import Iterable
from decimal import Decimal, InvalidOperation
from typing import Final, TypeVar

from msgspec import Struct

# The only accepted currency, because exchange rates are unknown.
CURRENCY: Final = "USD"
_Amount = TypeVar("_Amount", Decimal, int)


class InvoiceRefused(Exception):
    """Raised for a file that cannot be compared; the message gives the reason."""


class InvoiceLine(Struct, frozen=True, kw_only=True):
    """The amount and the tokens that were billed under one name for a UTC day; each is None if the
    invoice lacks it.
    """

    day: str
    """ISO date, such as `2026-11-21`."""
    name: str
    """The provider's name for the billed model or item."""
    usd: Decimal | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    principal: str = ""
    """The ARN of the AWS identity that was billed; empty if the invoice lacks it."""


def read_amount(value: object, what: str) -> Decimal:
    """Return a value as an amount; raise InvoiceRefused unless the value is a finite number."""
    try:
        amount = Decimal(str(value))
    except InvalidOperation:
        amount = Decimal("NaN")
    if not amount.is_finite():
        raise InvoiceRefused(f"{what} is not an amount: {str(value)[:40]!r}.")
    return amount


def check_currency(currency: object) -> None:
    """Raise InvoiceRefused unless the currency is US dollars."""
    if str(currency).upper() != CURRENCY:
        raise InvoiceRefused(f"Amounts are in {str(currency)[:10]!r}, not in {CURRENCY}.")


def sum_lines(lines: Iterable[InvoiceLine]) -> list[InvoiceLine]:
    """Return one line with the sums for each day, name and principal, sorted."""
    sums: dict[tuple[str, str, str], InvoiceLine] = {}
    for line in lines:
        key = (line.day, line.name, line.principal)
        total = sums.get(key, InvoiceLine(day=line.day, name=line.name))
        sums[key] = InvoiceLine(
            day=line.day,
            name=line.name,
            usd=_plus(total.usd, line.usd),
            input_tokens=_plus(total.input_tokens, line.input_tokens),
            output_tokens=_plus(total.output_tokens, line.output_tokens),
            principal=line.principal,
        )
    return [sums[key] for key in sorted(sums)]


def _plus(first: _Amount | None, second: _Amount | None) -> _Amount | None:
    return second if first is None else first if second is None else first + second
