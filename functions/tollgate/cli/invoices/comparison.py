"""Comparison of an invoice with the gateway's records, by UTC day and model."""

import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from fnmatch import fnmatchcase
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tollgate.cli.invoices.lines import InvoiceLine

# Text that may follow the name of a model in an invoice: a date, then a class of tokens.
_BEHIND: Final = r"(?:-\d{4}-?\d{2}-?\d{2})?(?:[, ].*)?"


class BilledModel(Struct, frozen=True, kw_only=True):
    """A model with the names or patterns under which a provider bills the model."""

    slug: str
    upstream: str
    billed_as: tuple[str, ...] = ()

    def is_named(self, name: str) -> bool:
        """Return whether a line of an invoice is about this model."""
        if self.billed_as:
            return any(fnmatchcase(name, pattern) for pattern in self.billed_as)
        return re.fullmatch(re.escape(self.upstream) + _BEHIND, name) is not None


class Compared(Struct, frozen=True, kw_only=True):
    """The invoiced and recorded amounts for a model on a UTC day."""

    day: str
    model: str
    """The model's slug, or the name on the invoice if no model in routing.yaml matches."""
    is_known: bool = True
    invoiced_usd: Decimal | None = None
    """None if the invoice has no amount."""
    invoiced_tokens: int | None = None
    """None if the invoice has no tokens."""
    recorded_usd: Decimal = Decimal(0)
    recorded_tokens: int = 0
    failed: int = 0
    """Number of failed requests, which are free for callers but may be billed by the provider."""

    def differs(self, percent: Decimal, usd: Decimal) -> bool:
        """Return whether the amounts differ by more than the bounds; if there is no amount, compare
        the tokens.
        """
        if self.invoiced_usd is not None:
            return exceeds(self.invoiced_usd, self.recorded_usd, percent, usd)
        invoiced = self.invoiced_tokens or 0
        difference = Decimal(abs(invoiced - self.recorded_tokens))
        return difference * 100 > percent * max(invoiced, self.recorded_tokens)


def exceeds(invoiced: Decimal, recorded: Decimal, percent: Decimal, usd: Decimal) -> bool:
    """Return whether two amounts differ by more than `percent` and by more than `usd`."""
    difference = abs(invoiced - recorded)
    return difference > usd and difference * 100 > percent * max(abs(invoiced), abs(recorded))


def compare(
    invoice: Sequence[InvoiceLine],
    recorded: Iterable[Mapping[str, object]],
    models: Sequence[BilledModel],
) -> list[Compared]:
    """Return a comparison for each model and day, sorted; `recorded` are activity rows."""
    found: dict[tuple[str, str], Compared] = {}
    has_amounts = any(line.usd is not None for line in invoice)
    has_tokens = any(line.input_tokens is not None for line in invoice)
    for line in invoice:
        slug = next((model.slug for model in models if model.is_named(line.name)), None)
        key = (line.day, slug or line.name)
        known = found.get(key) or Compared(
            day=line.day, model=slug or line.name, is_known=slug is not None
        )
        usd, tokens = known.invoiced_usd, known.invoiced_tokens
        if line.usd is not None:
            usd = (usd or Decimal(0)) + line.usd
        if line.input_tokens is not None or line.output_tokens is not None:
            tokens = (tokens or 0) + (line.input_tokens or 0) + (line.output_tokens or 0)
        found[key] = replace(known, invoiced_usd=usd, invoiced_tokens=tokens)
    for row in recorded:
        key = (str(row["date"]), str(row["model"]))
        known = found.get(key) or Compared(day=key[0], model=key[1])
        counts = [int(str(row[name])) for name in ("prompt_tokens", "completion_tokens", "failed")]
        found[key] = replace(
            known,
            recorded_usd=known.recorded_usd + Decimal(str(row["usage"])),
            recorded_tokens=known.recorded_tokens + counts[0] + counts[1],
            failed=known.failed + counts[2],
        )
    return [
        replace(
            compared,
            invoiced_usd=compared.invoiced_usd
            if compared.invoiced_usd is not None or not has_amounts
            else Decimal(0),
            invoiced_tokens=compared.invoiced_tokens
            if compared.invoiced_tokens is not None or not has_tokens
            else 0,
        )
        for _, compared in sorted(found.items())
    ]
