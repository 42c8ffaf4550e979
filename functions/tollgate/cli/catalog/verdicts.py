"""Verdicts on the endpoints in a routing file, from the published facts about each."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Final

from msgspec import Struct

from tollgate.cli.catalog.evidence import Evidence
from tollgate.cli.catalog.facts import PublishedFacts
from tollgate.cli.catalog.price_differences import PriceDifference
from tollgate.cli.tables import exact
from tollgate.routing.routing_file import Routing
from tollgate.routing.schema import EndpointSection, ModelSection

_SENTENCE_CHARACTERS_MAX: Final = 500
_SHOWN_DIFFERENCES: Final = 6
# A context is accepted as rounded down if it is at least this percentage of the published context.
_ROUNDED_PERCENT: Final = 95


class Verdict(Struct, frozen=True, kw_only=True):
    """The verdict on an endpoint: which publishers agree with its price, and what changes."""

    model: str
    index: int
    """Position of the endpoint in its model."""
    endpoint: EndpointSection
    agreeing: tuple[str, ...]
    """Labels of the publishers whose rates all equal the file's rates."""
    differing: Mapping[str, tuple[PriceDifference, ...]]
    price: PublishedFacts | None
    """The price to write; None if the file's price stays."""
    undecided: bool
    """True if the publishers disagree both with the file's price and with each other."""
    source: str
    """The required `source` of the price."""
    retires: date | None
    """The published retirement day; None if the file has the same day."""
    retires_source: str
    notes: tuple[str, ...]
    """Differences in limits and capabilities, for a person to decide."""

    @property
    def place(self) -> str:
        """The name of the endpoint in reports."""
        return f"{self.model} @ {self.endpoint.provider}"

    @property
    def is_edited(self) -> bool:
        """True if the verdict changes the file."""
        stale = self.source != self.endpoint.price.source
        return stale or self.price is not None or self.retires is not None


def judge_file(routing: Routing, evidence: Evidence) -> Iterator[Verdict]:
    """Yield the verdict on each endpoint of a file."""
    for slug, model in routing.models.items():
        for index in range(len(model.endpoints)):
            yield _judge(slug, model, index=index, evidence=evidence)


def _judge(slug: str, model: ModelSection, *, index: int, evidence: Evidence) -> Verdict:
    endpoint = model.endpoints[index]
    stated = {evidence.label(name): facts for name, facts in evidence.of(endpoint).items()}
    found = {
        label: facts.differences(endpoint.schedule, evidence.day) for label, facts in stated.items()
    }
    agreeing = tuple(label for label, differences in found.items() if not differences)
    differing = {label: differences for label, differences in found.items() if differences}
    page = _page(endpoint.price.source, evidence)
    price = None if agreeing or page else _successor_of([*stated.values()], evidence.day)
    if price is not None:
        agreeing, differing = tuple(stated), {}
    retires, retires_source = _end(model, endpoint, stated)
    return Verdict(
        model=slug,
        index=index,
        endpoint=endpoint,
        agreeing=agreeing,
        differing=differing,
        price=price,
        undecided=bool(differing) and not agreeing and not page,
        source=_source(endpoint.price.source, page, agreeing, differing),
        retires=retires,
        retires_source=retires_source,
        notes=tuple(_notes(model, endpoint, stated)),
    )


def _page(source: str, evidence: Evidence) -> str:
    """Return the web page in a price's source, or "" if the price is from a publisher."""
    page = source.partition(";")[0].partition(" and ")[0]
    return "" if page.startswith(tuple(evidence.publishers)) else page


def _successor_of(stated: Sequence[PublishedFacts], day: date) -> PublishedFacts | None:
    """Return the price that all publishers agree on, or None."""
    match stated:
        case [only]:
            return only
        case [first, second] if not [
            each for each in second.differences(first.schedule, day) if each.rate in first.stated
        ]:
            return first.with_rates_of(second)
        case _:
            return None


def _source(
    current: str,
    page: str,
    agreeing: Sequence[str],
    differing: Mapping[str, Sequence[PriceDifference]],
) -> str:
    """Return the `source` of a price: the names of its publishers, and the prices that other
    publishers state.
    """
    if not agreeing and not differing:
        return current
    first = " and ".join((page, *agreeing) if page else agreeing)
    if len(agreeing) == 1 and not (page or differing):
        first = f"{first} alone"
    if not first:
        return current
    disagreeing = [f"{label} has {_words(found)}" for label, found in differing.items()]
    return "; ".join((first, *disagreeing))[:_SENTENCE_CHARACTERS_MAX]


def _words(differences: Sequence[PriceDifference]) -> str:
    shown = [
        f"{each.rate} {exact(each.theirs)}" + ("" if each.when == "always" else " at times")
        for each in differences[:_SHOWN_DIFFERENCES]
    ]
    return ", ".join(shown)


def _end(
    model: ModelSection, endpoint: EndpointSection, stated: Mapping[str, PublishedFacts]
) -> tuple[date | None, str]:
    """Return the earliest published retirement day and its publisher; None if the file has it."""
    days = {facts.retires: label for label, facts in stated.items() if facts.retires is not None}
    day = min(days, default=None)
    if day is None or day in (endpoint.retires, model.retires):
        return None, ""
    return day, days[day]


def _notes(
    model: ModelSection, endpoint: EndpointSection, stated: Mapping[str, PublishedFacts]
) -> Iterator[str]:
    max_output = endpoint.max_output or model.max_output
    for label, facts in stated.items():
        if facts.max_output not in (None, max_output):
            yield f"max_output {max_output}, {label} has {facts.max_output}"
        if facts.context is not None and not _is_context(model.context, facts):
            yield f"context {model.context}, {label} has {facts.context}"
        for name, in_file, published in (
            ("input", model.input, facts.input),
            ("supports", model.supports, facts.supports),
        ):
            extra, missing = set(published) - set(in_file), set(in_file) - set(published)
            if published and extra:
                yield f"{name} without {', '.join(sorted(extra))}, which {label} has"
            if published and missing:
                yield f"{name} with {', '.join(sorted(missing))}, which {label} lacks"


def _is_context(context: int, facts: PublishedFacts) -> bool:
    """Return whether a model's context agrees with a published context.

    Some publishers count only the prompt, and some round 1,048,576 tokens to a million.
    """
    stated = facts.context or 0
    is_rounded = stated * _ROUNDED_PERCENT <= context * 100 and context <= stated
    return is_rounded or stated <= context <= stated + (facts.max_output or 0)
