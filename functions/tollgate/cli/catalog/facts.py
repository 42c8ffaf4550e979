"""The facts that a publisher states about an endpoint, and how they differ from the file's."""

from collections.abc import Mapping
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Final

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from tollgate.cli.catalog.price_differences import PriceDifference, compare_prices
from tollgate.core.request import Capability, Modality
from tollgate.routing.price import Price, PriceSchedule
from tollgate.routing.price_sections import OverrideSection

_THOUSAND: Final = 1_000


class PublishedOverride(Struct, frozen=True, kw_only=True):
    """Rates that replace the base rates under a condition, in the terms of a routing file."""

    when: Mapping[str, str | int | list[str]]
    price: Mapping[str, Decimal]

    @property
    def section(self) -> OverrideSection:
        """The override in the form of a routing file."""
        when = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in self.when.items()
        }
        return OverrideSection.model_validate({"when": when, "price": dict(self.price)})


class PublishedFacts(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The facts that one publisher states about one endpoint; an empty field is not stated."""

    upstream: str
    """The publisher's own name for the model."""
    rates: Mapping[str, Decimal]
    overrides: tuple[PublishedOverride, ...] = ()
    context: int | None = None
    """Tokens of a prompt; some publishers include the answer."""
    max_output: int | None = None
    input: tuple[Modality, ...] = ()
    supports: tuple[Capability, ...] = ()
    retires: date | None = None

    @property
    def schedule(self) -> PriceSchedule:
        """The price at any time; a class without a rate is billed as in a routing file."""
        return PriceSchedule(
            # Publishers state no output rate for kinds of work without text output.
            base=Price(**{"output": Decimal(0), **self.rates}),
            overrides=tuple(override.section.override for override in self.overrides),
        )

    @property
    def stated(self) -> frozenset[str]:
        """The names of all rates that are stated, in the base price or in an override."""
        return frozenset(self.rates).union(*(override.price for override in self.overrides))

    def differences(self, file_price: PriceSchedule, day: date) -> tuple[PriceDifference, ...]:
        """Return how this price differs from `ours` from a day on, in the classes stated here."""
        if not any({"from", "until"} & override.when.keys() for override in self.overrides):
            file_price = _on(file_price, day)
        found = compare_prices(_rounded(file_price), _rounded(self.schedule), day)
        return tuple(each for each in found if each.rate in self.stated)

    def with_rates_of(self, other: "PublishedFacts") -> "PublishedFacts":
        """Return these facts, with base rates added that only the other publisher states."""
        added = {name: rate for name, rate in other.rates.items() if name not in self.stated}
        return replace(self, rates={**self.rates, **added})


def _on(schedule: PriceSchedule, day: date) -> PriceSchedule:
    """Return the price that holds on a day, to compare it with a publisher that states no days."""
    at_s = datetime.combine(day, time(), UTC).timestamp()
    holding = (
        replace(each, since_s=None, until_s=None)
        for each in schedule.overrides
        if (each.since_s is None or each.since_s <= at_s)
        and (each.until_s is None or at_s < each.until_s)
    )
    return PriceSchedule(base=schedule.base, overrides=tuple(holding))


def _rounded(schedule: PriceSchedule) -> PriceSchedule:
    """Return the price with size limits such as 199,999 raised by one: over 200,000."""
    return PriceSchedule(
        base=schedule.base,
        overrides=tuple(
            replace(each, prompt_tokens_over=each.prompt_tokens_over + 1)
            if each.prompt_tokens_over is not None
            and each.prompt_tokens_over % _THOUSAND == _THOUSAND - 1
            else each
            for each in schedule.overrides
        ),
    )


def override_of(section: OverrideSection) -> PublishedOverride:
    """Return an override of a routing file in the form of a publisher's override."""
    when = section.when.model_dump(mode="json", by_alias=True, exclude_none=True)
    rates = {name: rate for name, rate in section.price if rate is not None}
    return PublishedOverride(when=to_builtins(when), price=rates)
