"""Flattens sections of routing.yaml into facts (name and value) for comparison."""

from collections.abc import Collection, Iterator, Mapping
from decimal import Decimal
from typing import Final

from pydantic import BaseModel

from tollgate.routing.chains import ConditionSection, RouteSection
from tollgate.routing.preset_sections import PresetSection
from tollgate.routing.price_sections import OverrideSection, PriceSection
from tollgate.routing.schema import EndpointSection, ModelSection
from tollgate.routing.tool_sections import ToolPriceSection

# The steps of a chain, in order.
OrderedNames = tuple[str, ...]
Facts = Mapping[str, str | OrderedNames]

# Values for people to read, which change the sha but affect no request.
NOTES: Final = frozenset(
    {"name", "description", "source", "checked", "ocr.price.source", "ocr.price.checked"}
)
# Lists whose order does not matter.
_SETS: Final = frozenset(
    {
        *("allowed_domains", "blocked_domains", "countries", "input", "models", "names"),
        *("next_on", "refuses", "replaces", "supports"),
    }
)


def list_facts(
    section: BaseModel, *, without: Collection[str] = (), stated_only: bool = False
) -> dict[str, str]:
    """Return all values in a section, keyed by path; with `stated_only`, without defaults."""
    content = section.model_dump(
        mode="json",
        by_alias=True,
        exclude_none=True,
        exclude_defaults=stated_only,
        exclude=set(without),
    )
    return dict(_leaves(content, ""))


def list_preset_facts(
    preset: PresetSection, *, stated_only: bool = False
) -> dict[str, str | OrderedNames]:
    """Return a preset's values, with its system prompt by line, so that changed lines are shown."""
    facts = list_facts(preset, without=("system",), stated_only=stated_only)
    return {**facts, "system line": tuple((preset.system or "").splitlines())}


def list_route_facts(
    route: RouteSection, *, stated_only: bool = False
) -> dict[str, str | OrderedNames]:
    """Return a route's values, with its rules in words and their chains."""
    facts: dict[str, str | OrderedNames] = {
        **list_facts(route, without=("steps", "rules"), stated_only=stated_only)
    }
    for number, rule in enumerate(route.all_rules, start=1):
        place = "" if route.rules is None else f"rule {number} "
        if rule.condition is not None:
            facts[f"{place}if"] = _condition(rule.condition)
        facts[f"{place}step"] = tuple(map(_step, rule.steps))
    return facts


def list_model_facts(model: ModelSection, *, stated_only: bool = False) -> dict[str, str]:
    """Return a model's values; with `stated_only` (for a new model), also its prices."""
    facts = list_facts(model, without=("endpoints",), stated_only=stated_only)
    if stated_only:
        offers = {f"{each.provider}/{each.upstream}": each for each in model.endpoints}
        facts |= {name: summarize_price(endpoint) for name, endpoint in offers.items()}
    return facts


def list_endpoint_facts(endpoint: EndpointSection, *, stated_only: bool = False) -> dict[str, str]:
    """Return an endpoint's values; with `stated_only` (for a new endpoint), also its price."""
    without = ("provider", "upstream", "price", "overrides", "service_tiers")
    facts = list_facts(endpoint, without=without, stated_only=stated_only)
    if stated_only:
        facts["price"] = summarize_price(endpoint)
    elif len(endpoint.overrides) > 1:
        # The order of overrides matters, because the last one that applies wins.
        facts["overrides"] = "; ".join(map(_when, endpoint.overrides))
    return facts


def list_tool_facts(tool: BaseModel, *, stated_only: bool = False) -> dict[str, str]:
    """Return a tool's values; with `stated_only` (for a new tool), also its price."""
    facts = list_facts(tool, without=("price",), stated_only=stated_only)
    return {**facts, **list_tool_rates(tool)} if stated_only else facts


def list_tool_rates(tool: BaseModel) -> dict[str, str]:
    """Return the price of a tool run in dollars, if there is one."""
    price = getattr(tool, "price", None)
    return {"call": format_rate(price.call)} if isinstance(price, ToolPriceSection) else {}


def list_tool_notes(tool: BaseModel) -> dict[str, str]:
    """Return the source of a tool's price, and the day on which it was checked."""
    price = getattr(tool, "price", None)
    return list_price_notes(price) if isinstance(price, ToolPriceSection) else {}


def list_rates(endpoint: EndpointSection) -> dict[str, str]:
    """Return all rates of an endpoint; rates in overrides are named after the conditions."""
    rates = _rates(endpoint.price, "")
    for override in endpoint.overrides:
        rates |= _rates(override.price, f"{_when(override)} ")
    for name, tier in endpoint.service_tiers.items():
        rates |= _rates(tier.price, f"{name} ")
        for override in tier.overrides:
            rates |= _rates(override.price, f"{name} {_when(override)} ")
    return rates


def list_price_notes(price: PriceSection | ToolPriceSection) -> dict[str, str]:
    """Return the source of a price, and the day on which it was checked."""
    return {"source": price.source, "checked": price.checked.isoformat()}


def list_endpoint_notes(endpoint: EndpointSection) -> dict[str, str]:
    """Return the source of each price of an endpoint, and the day on which it was checked."""
    notes = list_price_notes(endpoint.price)
    for tier, section in endpoint.service_tiers.items():
        of_tier = list_price_notes(section.price)
        notes |= {f"{tier} {name}": value for name, value in of_tier.items()}
    return notes


def summarize_price(endpoint: EndpointSection) -> str:
    """Return the rates as `2.00 / 10.00, from 2026-12-01 4.00 / 20.00`, or with the names of their
    units.

    With rates for other units: `image 0.02, quality high image 0.04`.
    """
    base = endpoint.price
    if base.price.usd_per_million_pieces or {base.image_input, base.image_output} != {None}:
        free = format_rate(Decimal(0))
        rates_by_name = list_rates(endpoint).items()
        return ", ".join(f"{name} {rate}" for name, rate in rates_by_name if rate != free)
    parts = [f"{format_rate(base.input)} / {format_rate(base.output)}"]
    for override in endpoint.overrides:
        rates = (override.price.input or base.input, override.price.output or base.output)
        parts.append(f"{_when(override)} {format_rate(rates[0])} / {format_rate(rates[1])}")
    return ", ".join(parts)


def format_rate(rate: Decimal) -> str:
    """Return dollars with at least two digits after the decimal point."""
    return f"{rate:.2f}" if rate == round(rate, 2) else f"{rate.normalize():f}"


def _leaves(value: object, path: str) -> Iterator[tuple[str, str]]:
    match value:
        case dict():
            for name, inside in value.items():
                yield from _leaves(inside, f"{path}.{name}" if path else str(name))
        case list() if any(isinstance(item, dict | list) for item in value):
            for index, item in enumerate(value, start=1):
                yield from _leaves(item, f"{path}[{index}]")
        case list():
            items = sorted(value) if path.rpartition(".")[2] in _SETS else value
            yield path, ", ".join(map(str, items)) or "none"
        case bool():
            yield path, str(value).lower()
        case _:
            yield path, str(value)


def _rates(section: BaseModel, prefix: str) -> dict[str, str]:
    return {
        f"{prefix}{name}": format_rate(rate) for name, rate in section if isinstance(rate, Decimal)
    }


def _when(override: OverrideSection) -> str:
    when = override.when
    parts = (
        f"from {when.since}" if when.since else "",
        f"until {when.until}" if when.until else "",
        f"over {when.prompt_tokens_over} tokens" if when.prompt_tokens_over else "",
        f"{when.utc_window} UTC" if when.utc_window else "",
        f"on {'/'.join(when.utc_days)}" if when.utc_days else "",
        f"size {when.image_size}" if when.image_size else "",
        f"larger than {when.image_over}" if when.image_over else "",
        f"quality {when.image_quality}" if when.image_quality else "",
    )
    return " ".join(filter(None, parts))


def _condition(condition: ConditionSection) -> str:
    return ", ".join(f"{name} {value}" for name, value in list_facts(condition).items())


def _step(weights: Mapping[str, int]) -> str:
    if len(weights) == 1:
        return next(iter(weights))
    return ", ".join(f"{model} {weight}" for model, weight in weights.items())
