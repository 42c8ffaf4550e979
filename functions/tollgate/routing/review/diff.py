"""Lists the differences in meaning between two revisions of a routing."""

from collections.abc import Callable, Iterator, Mapping
from datetime import date
from decimal import Decimal
from itertools import takewhile
from operator import eq
from typing import Final, Literal, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from tollgate.routing.planning.document_fees import PAGE_ITEM, RECOGNIZED_PAGE_ITEM
from tollgate.routing.price_sections import OverrideSection
from tollgate.routing.review.facts import (
    NOTES,
    Facts,
    OrderedNames,
    list_endpoint_facts,
    list_endpoint_notes,
    list_facts,
    list_model_facts,
    list_preset_facts,
    list_rates,
    list_route_facts,
    list_tool_facts,
    list_tool_notes,
    list_tool_rates,
)
from tollgate.routing.routing_file import Routing
from tollgate.routing.scalars import Strict
from tollgate.routing.schema import EndpointSection, ModelSection
from tollgate.routing.tool_sections import ServerToolsSection

DifferenceKind = Literal["removed", "changed", "added"]
SubjectKind = Literal[
    "model",
    "endpoint",
    "price",
    "route",
    "alias",
    "tier",
    "provider",
    "defaults",
    "billing",
    "attribution",
    "tool",
    "plugin",
    "guardrail",
    "preset",
    "note",
]

_ORDER: Final[tuple[DifferenceKind, ...]] = ("removed", "changed", "added")
_DAYS_MAX: Final = 3
_TENTH: Final = Decimal("0.1")
_Name = TypeVar("_Name", bound=str)
_Section = TypeVar("_Section")


class Fact(Struct, frozen=True, kw_only=True):
    """A value that differs between two revisions."""

    name: str
    before: str | None
    """The earlier value; None if only the later revision has one."""
    after: str | None
    percent: Decimal | None = None
    """Increase of a price in percent."""


class Change(Struct, frozen=True, kw_only=True):
    """A difference in one subject. A `note` concerns values that only people read, and affects no
    request.
    """

    kind: DifferenceKind
    what: SubjectKind
    subject: str
    facts: tuple[Fact, ...] = ()


def list_changes(before: Routing, after: Routing) -> tuple[Change, ...]:
    """Return all differences in meaning, removals first."""
    found = [
        *_compare_sections("model", before.models, after.models, list_model_facts),
        *_compare_endpoints(before, after),
        *_compare_sections("route", before.routes, after.routes, list_route_facts),
        *_compare_sections("alias", before.aliases, after.aliases, list_facts),
        *_compare_sections("tier", before.key_tiers, after.key_tiers, list_facts),
        *_compare_sections("provider", before.providers, after.providers, list_facts),
        *_compare_facts("defaults", "", list_facts(before.defaults), list_facts(after.defaults)),
        *_compare_facts("billing", "", list_facts(before.billing), list_facts(after.billing)),
        *_compare_sections("attribution", before.attribution, after.attribution, _source_fact),
        *_compare_tools(before.server_tools, after.server_tools),
        *_compare_plugins(before, after),
        *_compare_sections("guardrail", before.guardrails, after.guardrails, list_facts),
        *_compare_sections("preset", before.presets, after.presets, list_preset_facts),
    ]
    return tuple(sorted(found, key=lambda change: _ORDER.index(change.kind)))


def _compare_tools(before: ServerToolsSection, after: ServerToolsSection) -> Iterator[Change]:
    """Yield the changes to server tools; price changes are yielded separately."""
    old, new = _tools_by_name(before), _tools_by_name(after)
    yield from _compare_sections("tool", old, new, list_tool_facts)
    for name in sorted(old.keys() & new.keys()):
        rates = (list_tool_rates(old[name]), list_tool_rates(new[name]))
        for change in _compare_facts("price", name, *rates):
            yield replace(change, facts=tuple(map(_with_percent, change.facts)))
        notes = (list_tool_notes(old[name]), list_tool_notes(new[name]))
        yield from _compare_facts("note", name, *notes)


def _tools_by_name(tools: ServerToolsSection) -> dict[str, Strict]:
    return {name: section for name, section in tools if section is not None}


def _source_fact(source: str, *, stated_only: bool = False) -> Facts:
    """Return the source of an attribution label as a fact."""
    del stated_only
    return {"from": source}


def find_differing_days(before: Routing, after: Routing, today: date) -> tuple[date, ...]:
    """Return up to three days on which a dated price begins or a model or endpoint ends in only one
    of the revisions.
    """
    prices = {day for day, *_ in _dated(before, today) ^ _dated(after, today)}
    ends = {day for day, *_ in _ends(before, today) ^ _ends(after, today)}
    return tuple(sorted(prices | ends))[:_DAYS_MAX]


def _ends(routing: Routing, today: date) -> set[tuple[date, str, str | None]]:
    sections = (
        (slug, name, section)
        for slug, model in routing.models.items()
        for name, section in (
            (None, model),
            *((f"{each.provider}/{each.upstream}", each) for each in model.endpoints),
        )
    )
    return {
        (section.retires, slug, name)
        for slug, name, section in sections
        if section.retires is not None and section.retires > today
    }


def _dated(routing: Routing, today: date) -> set[tuple[date, str, str, OverrideSection]]:
    return {
        (day, slug, f"{endpoint.provider}/{endpoint.upstream}", override)
        for slug, model in routing.models.items()
        for endpoint in model.endpoints
        for override in endpoint.overrides
        for day in (override.when.since, override.when.until)
        if day is not None and day > today
    }


def _compare_sections(
    what: SubjectKind,
    before: Mapping[_Name, _Section],
    after: Mapping[_Name, _Section],
    facts: Callable[..., Facts],
) -> Iterator[Change]:
    """Yield the changes to sections of one kind, by name."""
    for name in sorted({*before, *after}):
        if name not in after:
            yield Change(kind="removed", what=what, subject=name)
        elif name not in before:
            stated_facts = tuple(_differing({}, facts(after[name], stated_only=True)))
            yield Change(kind="added", what=what, subject=name, facts=stated_facts)
        else:
            yield from _compare_facts(what, name, facts(before[name]), facts(after[name]))


def _compare_plugins(before: Routing, after: Routing) -> Iterator[Change]:
    """Yield the changes to plugins; changes to page prices are yielded separately."""
    old, new = (
        {"pdf": each.plugins.pdf} if each.plugins and each.plugins.pdf else {}
        for each in (before, after)
    )
    for change in _compare_sections("plugin", old, new, list_facts):
        rates = tuple(
            fact
            for fact in change.facts
            if fact.name.startswith("price.") or fact.name == "ocr.price.page"
        )
        if change.kind != "changed" or not rates:
            yield change
            continue
        if other_facts := tuple(fact for fact in change.facts if fact not in rates):
            yield replace(change, facts=other_facts)
        # Page prices are named after their items in bills.
        for item, prefix in ((PAGE_ITEM, "price."), (RECOGNIZED_PAGE_ITEM, "ocr.price.")):
            facts = tuple(
                _with_percent(replace(fact, name=fact.name.removeprefix(prefix)))
                for fact in rates
                if fact.name.startswith(prefix)
            )
            if facts:
                yield Change(kind="changed", what="price", subject=item, facts=facts)


def _compare_facts(what: SubjectKind, name: str, before: Facts, after: Facts) -> Iterator[Change]:
    """Yield up to two changes: one with the facts that affect requests, and one with purely
    informational facts (notes).
    """
    facts = tuple(_differing(before, after))
    notes = tuple(fact for fact in facts if fact.name in NOTES)
    noticed = tuple(fact for fact in facts if fact.name not in NOTES)
    if noticed:
        yield Change(kind="changed", what=what, subject=name, facts=noticed)
    if notes:
        yield Change(kind="changed", what="note", subject=name, facts=notes)


def _differing(before: Facts, after: Facts) -> Iterator[Fact]:
    for name in dict.fromkeys((*before, *after)):
        old, new = before.get(name), after.get(name)
        if isinstance(old, tuple) or isinstance(new, tuple):
            yield from _compare_steps(name, tuple(old or ()), tuple(new or ()))
        elif old != new:
            yield Fact(name=name, before=old, after=new)


def _compare_steps(name: str, before: OrderedNames, after: OrderedNames) -> Iterator[Fact]:
    """Yield the steps that differ, leaving out equal steps at the beginning and the end."""
    if before == after:
        return
    start = _common_steps(before, after)
    before, after = before[start:], after[start:]
    end = _common_steps(before[::-1], after[::-1])
    removed, added = (", then ".join(chain[: len(chain) - end]) for chain in (before, after))
    yield Fact(name=f"{name} {start + 1}", before=removed or None, after=added or None)


def _common_steps(first: OrderedNames, second: OrderedNames) -> int:
    """Return how many steps at the beginning of two chains are equal."""
    return sum(takewhile(bool, map(eq, first, second)))


def _compare_endpoints(before: Routing, after: Routing) -> Iterator[Change]:
    """Yield the changes to endpoints of models that exist in both revisions."""
    for slug in sorted(before.models.keys() & after.models.keys()):
        old, new = _by_name(slug, before.models[slug]), _by_name(slug, after.models[slug])
        yield from _compare_sections("endpoint", old, new, list_endpoint_facts)
        common_names = [name for name in old if name in new]
        if common_names != [name for name in new if name in old]:
            order = (", ".join(old), ", ".join(new))
            facts = (Fact(name="order", before=order[0], after=order[1]),)
            yield Change(kind="changed", what="model", subject=slug, facts=facts)
        for name in common_names:
            yield from _compare_prices(name, old[name], new[name])


def _by_name(slug: str, model: ModelSection) -> dict[str, EndpointSection]:
    return {f"{slug} @ {each.provider}/{each.upstream}": each for each in model.endpoints}


def _compare_prices(name: str, before: EndpointSection, after: EndpointSection) -> Iterator[Change]:
    for change in _compare_facts("price", name, list_rates(before), list_rates(after)):
        yield replace(change, facts=tuple(map(_with_percent, change.facts)))
    yield from _compare_facts("note", name, list_endpoint_notes(before), list_endpoint_notes(after))


def _with_percent(fact: Fact) -> Fact:
    if fact.before is None or fact.after is None or not Decimal(fact.before):
        return fact
    rise = (Decimal(fact.after) / Decimal(fact.before) - 1) * 100
    return replace(fact, percent=rise.quantize(_TENTH))
