"""Published facts about an endpoint, and their differences from the routing file."""

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
    """Rates that replace the base rates under a condition, with the names of a routing file."""

    when: Mapping[str, str | int | list[str]]
    price: Mapping[str, Decimal]

    @property
    def section(self) -> OverrideSection:
        """The override as a section of a routing file."""
        when = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in self.when.items()
        }
        return OverrideSection.model_validate({"when": when, "price": dict(self.price)})


class PublishedFacts(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One publisher's facts about an endpoint; a field is empty if not published."""

    upstream: str
    """The publisher's own name for the model."""
    rates: Mapping[str, Decimal]
    overrides: tuple[PublishedOverride, ...] = ()
    context: int | None = None
    """Context size in tokens; some publishers count only the prompt, others also the answer."""
    max_output: int | None = None
    input: tuple[Modality, ...] = ()
    supports: tuple[Capability, ...] = ()
    retires: date | None = None

    @property
    def schedule(self) -> PriceSchedule:
        """The published price in the form that bills use."""
        return PriceSchedule(
            # Publishers have no output rate for work without text output.
            base=Price(**{"output": Decimal(0), **self.rates}),
            overrides=tuple(override.section.override for override in self.overrides),
        )

    @property
    def stated(self) -> frozenset[str]:
        """Names of the rates in the base price and in the overrides."""
        return frozenset(self.rates).union(*(override.price for override in self.overrides))

    def differences(self, file_price: PriceSchedule, day: date) -> tuple[PriceDifference, ...]:
        """Return how the stated rates differ from the file's price, from a day on."""
        if not any({"from", "until"} & override.when.keys() for override in self.overrides):
            file_price = _on(file_price, day)
        found = compare_prices(_rounded(file_price), _rounded(self.schedule), day)
        return tuple(each for each in found if each.rate in self.stated)

    def with_rates_of(self, other: "PublishedFacts") -> "PublishedFacts":
        """Return these facts, plus the base rates that only the other publisher has."""
        added = {name: rate for name, rate in other.rates.items() if name not in self.stated}
        return replace(self, rates={**self.rates, **added})


def _on(schedule: PriceSchedule, day: date) -> PriceSchedule:
    """Return the price on one day, for comparison with a publisher whose prices have no dates."""
    at_s = datetime.combine(day, time(), UTC).timestamp()
    holding = (
        replace(each, since_s=None, until_s=None)
        for each in schedule.overrides
        if (each.since_s is None or each.since_s <= at_s)
        and (each.until_s is None or at_s < each.until_s)
    )
    return PriceSchedule(base=schedule.base, overrides=tuple(holding))


def _rounded(schedule: PriceSchedule) -> PriceSchedule:
    """Return the price, with size limits such as 199,999 rounded up to 200,000."""
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
    """Return an override section of a routing file as a published override."""
    when = section.when.model_dump(mode="json", by_alias=True, exclude_none=True)
    rates = {name: rate for name, rate in section.price if rate is not None}
    return PublishedOverride(when=to_builtins(when), price=rates)
