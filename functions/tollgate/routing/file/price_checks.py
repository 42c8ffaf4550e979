"""Finds prices of the wrong order of magnitude, expensive cache reads, outdated prices, and service
tiers with fewer rates than the default.
"""

from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import Final

from tollgate.providers.ports.wire_format import WireFormat
from tollgate.routing.file.document import Where, YamlDocument
from tollgate.routing.file.problems import Problem
from tollgate.routing.price_sections import PriceSection, RatesSection
from tollgate.routing.schema import EndpointSection, ServiceTierSection

_CHECKED_DAYS_MAX: Final = 90
_PER_MILLION_TOKENS: Final = (
    *("input", "output", "cache_read", "cache_write", "cache_write_1h", "audio_input"),
    *("audio_output", "cache_read_audio", "image_input", "image_output", "characters"),
)
# A price below this is assumed to be per token: the lowest real price per million tokens is about
# 0.01 dollars, while the highest real price of a single token is 0.0005 dollars (500 per million).
_PER_TOKEN_BELOW: Final = Decimal("0.0005")
# A price of at least this much is assumed to be per thousand: the most expensive single search, run
# or page costs a few cents.
_PER_THOUSAND_FROM: Final = Decimal(1)
# A price below this is assumed to be per unit: the cheapest policy costs 0.10 dollars per thousand
# units.
_PER_UNIT_BELOW: Final = Decimal("0.005")


def check_prices(
    document: YamlDocument, where: Where, endpoint: EndpointSection, today: date | None
) -> Iterator[Problem]:
    """Yield the problems with an endpoint's price and with the overrides."""
    yield from _check_schedule(document, where, endpoint, today)
    for name, tier in endpoint.service_tiers.items():
        inside: Where = (*where, "service_tiers", name)
        yield from _check_schedule(document, inside, tier, today)
        rates = endpoint.price.price
        for rate in rates.__struct_fields__:
            if getattr(rates, rate) is not None and getattr(tier.price, rate) is None:
                message = f"service tier {name} has no {rate} price, which the default tier has"
                yield document.at_key((*inside, "price"), "R033", message)


def check_tier_format(
    document: YamlDocument, where: Where, endpoint: EndpointSection, formats: Sequence[WireFormat]
) -> Iterator[Problem]:
    """Yield a problem if the provider's format cannot ask for service tiers."""
    if endpoint.service_tiers and not all("service_tier" in each.parameters for each in formats):
        message = f"the codec of {endpoint.provider} cannot ask for a service tier"
        yield document.at_key((*where, "service_tiers"), "R033", message)


def _check_schedule(
    document: YamlDocument,
    where: Where,
    section: EndpointSection | ServiceTierSection,
    today: date | None,
) -> Iterator[Problem]:
    price = section.price
    yield from _rates(document, (*where, "price"), price, price.input)
    yield from check_age(document, where, price.checked, today)
    for index, override in enumerate(section.overrides):
        rates = override.price
        dearest_input = price.input if rates.input is None else rates.input
        inside: Where = (*where, "overrides", index, "price")
        yield from _rates(document, inside, rates, dearest_input)


def check_age(
    document: YamlDocument, where: Where, checked: date, today: date | None
) -> Iterator[Problem]:
    """Yield a warning if the price in section `where` has not been checked recently."""
    if today and not timedelta(0) <= today - checked <= timedelta(days=_CHECKED_DAYS_MAX):
        message = f"price checked on {checked}, not within the last {_CHECKED_DAYS_MAX} days"
        place: Where = (*where, "price", "checked")
        yield document.at_value(place, "R071", message, severity="warning")


def check_each(document: YamlDocument, where: Where, rate: Decimal) -> Iterator[Problem]:
    """Yield a problem if the price of a single search, run or page looks like a price
    per thousand.
    """
    if rate >= _PER_THOUSAND_FROM:
        message = (
            f"{where[-1]} price {rate:f} looks like dollars per thousand; each it is "
            f"{(rate / 1000).normalize():f}"
        )
        yield document.at_value(where, "R031", message)


def _rates(
    document: YamlDocument, where: Where, rates: PriceSection | RatesSection, plain_input: Decimal
) -> Iterator[Problem]:
    for name in _PER_MILLION_TOKENS:
        rate: Decimal | None = getattr(rates, name)
        if rate is not None and 0 < rate < _PER_TOKEN_BELOW:
            message = (
                f"{name} price {rate:f} looks like dollars per token; per million tokens "
                f"it is {(rate * 1_000_000).normalize():f}"
            )
            yield document.at_value((*where, name), "R031", message)
    for name, each in (("web_search", rates.web_search), ("search", rates.search)):
        if each is not None:
            yield from check_each(document, (*where, name), each)
    if rates.text_units is not None and 0 < rates.text_units < _PER_UNIT_BELOW:
        message = (
            f"text_units price {rates.text_units:f} looks like dollars each; per thousand it is "
            f"{(rates.text_units * 1_000).normalize():f}"
        )
        yield document.at_value((*where, "text_units"), "R031", message)
    if rates.cache_read is not None and rates.cache_read > plain_input:
        message = f"cache_read {rates.cache_read} is dearer than input {plain_input}"
        yield document.at_value((*where, "cache_read"), "R032", message)
