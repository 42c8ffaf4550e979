"""Checks that models have the keys of their kind, and that all models of a chain are of
one kind.
"""

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Final

from tollgate.core.work.kinds import WORK_KINDS, WorkKind
from tollgate.providers.ports.dialect import Dialect
from tollgate.providers.ports.wire_format import WireFormat
from tollgate.routing.chains import RouteSection
from tollgate.routing.file.document import Where, YamlDocument
from tollgate.routing.file.problems import Problem
from tollgate.routing.file.promise_checks import PlacedModel, place_chains
from tollgate.routing.file.validate import write_path
from tollgate.routing.price_sections import PriceSection
from tollgate.routing.scalars import merge_section
from tollgate.routing.schema import EndpointSection, ModelSection, ProviderSection

_RATES_OF_TOKENS: Final = ("input", "output", "audio_output", "image_input", "image_output")
_KEYS_OF_ANSWERS: Final = frozenset({"guardrail", "max_output"})


def check_kind(document: YamlDocument, where: Where, model: ModelSection) -> Iterator[Problem]:
    """Yield a problem for each key that models of this kind do not use."""
    chats = model.kind == "chat"
    useless = ("vectors",) if chats else ("max_output", "supports")
    if not chats and model.makes != ("text",):
        message = f"a model of kind {model.kind} cannot have makes"
        yield document.at_value((*where, "makes"), "R012", message)
    for key in useless if model.kind in ("chat", "embedding") else (*useless, "vectors"):
        if getattr(model, key):
            message = f"a model of kind {model.kind} cannot have {key}"
            yield document.at_value((*where, key), "R012", message)
    for index, endpoint in enumerate(() if chats else model.endpoints):
        place: Where = (*where, "endpoints", index)
        needs_guardrail = WORK_KINDS[model.kind].is_judged_by_guardrail
        useless_here = _KEYS_OF_ANSWERS - ({"guardrail"} if needs_guardrail else set())
        for key in sorted(endpoint.model_fields_set & useless_here):
            message = f"an endpoint of kind {model.kind} cannot have {key}"
            yield document.at_value((*place, key), "R012", message)
        stated_base = endpoint.price.model_fields_set
        if not endpoint.price.output:
            # The compiled form writes a missing output rate as 0.
            stated_base = stated_base - {"output"}
        results = WORK_KINDS[model.kind].rates_of_results
        if results and endpoint.price.model_fields_set.isdisjoint(results):
            listed = f"{', '.join(results[:-1])} or {results[-1]}"
            message = f"the price of a model of kind {model.kind} must have {listed}"
            yield document.at_key((*place, "price"), "R005", message)
        prices = [((*place, "price"), stated_base)]
        prices += [
            ((*place, "overrides", number, "price"), override.price.model_fields_set)
            for number, override in enumerate(endpoint.overrides)
        ]
        for where_of_price, rate_names in prices:
            for rate in sorted(rate_names - WORK_KINDS[model.kind].rates):
                message = f"a model of kind {model.kind} cannot have a {rate} price"
                yield document.at_value((*where_of_price, rate), "R012", message)


def check_guardrail(
    document: YamlDocument,
    where: Where,
    endpoint: EndpointSection,
    *,
    kind: WorkKind,
    formats: Sequence[WireFormat],
) -> Iterator[Problem]:
    """Yield a problem for a guardrail that cannot be applied, or if a moderation model has none."""
    applies = all(each.applies_guardrails for each in formats)
    if endpoint.guardrail is not None and not applies:
        message = f"{endpoint.provider} cannot apply a guardrail"
        yield document.at_value((*where, "guardrail"), "R053", message)
    judges = WORK_KINDS[kind].is_judged_by_guardrail
    if endpoint.guardrail is None and judges and formats and applies:
        message = f'"guardrail" is missing in {write_path(where)}; moderation needs one'
        yield document.at_key(where, "R005", message)


def check_dialect(
    document: YamlDocument,
    where: Where,
    endpoint: EndpointSection,
    *,
    kind: WorkKind,
    row: ProviderSection,
) -> Iterator[Problem]:
    """Yield a problem for each dialect key that the endpoint's kind or price requires."""
    dialect = merge_section(row.dialect, endpoint.dialect)
    has_family = row.codec != "bedrock" or "family" in dialect.embeddings.model_fields_set
    if kind == "embedding" and not has_family:
        message = "embeddings with codec bedrock need embeddings.family in a dialect"
        yield document.at_key(where, "R055", message)
    if kind == "speech" and dialect.speech.usage == "characters" and _bills_tokens(endpoint):
        message = "a price per token needs speech.usage in a dialect: events or none"
        yield document.at_key(where, "R055", message)
    if kind == "image" and not _counts_pictures(row, dialect) and _bills_tokens(endpoint):
        message = "a price per token needs images.tokens in an openai_chat dialect, or Gemini"
        yield document.at_key(where, "R055", message)

    if kind == "image" and not _takes_quality(row, dialect):
        for index, override in enumerate(endpoint.overrides):
            if override.when.image_quality is not None:
                message = (
                    f"requests to {endpoint.provider} state no quality, so this price never applies"
                )
                place = (*where, "overrides", index, "when", "image_quality")
                yield document.at_value(place, "R055", message)


def _takes_quality(row: ProviderSection, dialect: Dialect) -> bool:
    """Return True if requests to a provider may include an image quality."""
    if row.codec == "openai_chat":
        return "quality" in dialect.images.takes
    return row.codec == "bedrock"


def _counts_pictures(row: ProviderSection, dialect: Dialect) -> bool:
    """Return True if the provider reports image tokens; without them, images would be free."""
    if row.codec == "openai_chat":
        return dialect.images.tokens
    return row.codec == "gemini" and dialect.images.family == "gemini"


def _bills_tokens(endpoint: EndpointSection) -> bool:
    schedule = endpoint.schedule
    rates = [getattr(schedule.base, name) for name in _RATES_OF_TOKENS]
    rates += [each.rates.get(name) for each in schedule.overrides for name in _RATES_OF_TOKENS]
    return any(rates)


def check_required_keys(document: YamlDocument) -> Iterator[Problem]:
    """Yield a problem for each missing key, even if the model has other errors."""
    models = document.value(("models",))
    for slug, model in models.items() if isinstance(models, dict) else ():
        if not isinstance(model, dict):
            continue
        kind = model.get("kind", "chat")
        chats = kind == "chat"
        if chats or kind == "embedding":
            yield from _missing(document, ("models", slug), "max_output" if chats else "vectors")
        endpoints = model.get("endpoints")
        for index in range(len(endpoints) if chats and isinstance(endpoints, list | tuple) else 0):
            yield from _missing(document, ("models", slug, "endpoints", index, "price"), "output")


def _missing(document: YamlDocument, where: Where, key: str) -> Iterator[Problem]:
    section = document.value(where)
    if not isinstance(section, dict) or key in section:
        return
    misspelt = section.keys() - ModelSection.model_fields.keys() - PriceSection.model_fields.keys()
    if not get_close_matches(key, misspelt, n=1):
        yield document.at_key(where, "R005", f'"{key}" is missing in {write_path(where)}')


def check_route_kind(
    document: YamlDocument, name: str, route: RouteSection, *, models: Mapping[str, PlacedModel]
) -> Iterator[Problem]:
    """Yield a problem for each model that could not stand in for the route's first model, and for
    a cache of answers other than those of chat models.
    """
    first: tuple[str, ModelSection] | None = None
    for where, steps in place_chains(route, ("routes", name)):
        for index, step in enumerate(steps):
            for slug in step:
                if slug not in models:
                    continue
                model = models[slug].section
                place = (*where, index, slug) if len(step) > 1 else (*where, index)
                first = first or (slug, model)
                if reason := _differs(slug, model, *first):
                    yield document.at_value(place, "R064", f"route {name}: {slug} {reason}")
    if route.cache is not None and first is not None and first[1].kind != "chat":
        message = f"route {name}: only answers of chat models are cached"
        yield document.at_value(("routes", name, "cache"), "R012", message)


def check_successor(
    document: YamlDocument, slug: str, model: ModelSection, *, models: Mapping[str, ModelSection]
) -> Iterator[Problem]:
    """Yield a problem if the successor is of another kind, or returns vectors of another space."""
    successor = models.get(model.successor or "")
    if successor is None or model.successor is None:
        return
    hands_on = model.after_retirement == "successor"
    if (reason := _differs(model.successor, successor, slug, model)) and (
        hands_on or model.kind != successor.kind
    ):
        where: Where = ("models", slug, "successor")
        yield document.at_value(where, "R064", f"{model.successor} {reason}")


def _differs(slug: str, model: ModelSection, other: str, first: ModelSection) -> str | None:
    if model.kind != first.kind:
        return f"is of kind {model.kind}, {other} of kind {first.kind}"
    if model.vectors and model.vector_space(slug) != first.vector_space(other):
        return f"produces vectors with another space or size than {other}"
    return None
