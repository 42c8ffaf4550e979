"""Finds guardrails that name unknown models, routes or tiers, or models that cannot judge."""

from collections.abc import Collection, Iterator, Mapping
from difflib import get_close_matches

from tollgate.routing.file.document import Where, YamlDocument
from tollgate.routing.file.problems import Problem
from tollgate.routing.guardrail_sections import GuardSection
from tollgate.routing.schema import ModelSection, ProviderSection

_KINDS = {"moderation": "moderation", "presidio": "moderation", "judge": "chat"}


def check_guardrails(
    document: YamlDocument,
    guardrails: Mapping[str, GuardSection],
    models: Mapping[str, ModelSection],
    providers: Mapping[str, ProviderSection],
    *,
    routes: Collection[str],
    key_tiers: Collection[str],
) -> Iterator[Problem]:
    """Yield the problems in `guardrails`; the other arguments come from the production files."""
    for name, row in guardrails.items():
        where: Where = ("guardrails", name)
        if row.model is not None:
            yield from _check_model(document, (*where, row.kind, "model"), row, models)
        if row.presidio is not None and row.presidio.model in models:
            model = models[row.presidio.model]
            place: Where = (*where, "presidio", "model")
            for slug in sorted({endpoint.provider for endpoint in model.endpoints}):
                if slug in providers and providers[slug].codec != "presidio":
                    message = f"{row.presidio.model} is at {slug}, whose codec is not presidio"
                    yield document.at_value(place, "R057", message)
        if row.applies_to is None:
            continue
        for key, kind, known in (("routes", "route", routes), ("key_tiers", "key tier", key_tiers)):
            for number, stated in enumerate(getattr(row.applies_to, key)):
                if stated not in known:
                    place = (*where, "applies_to", key, number)
                    message = f'"{stated}" is not a {kind}{_hint(stated, known)}'
                    yield document.at_value(place, "R021", message)


def _check_model(
    document: YamlDocument, where: Where, row: GuardSection, models: Mapping[str, ModelSection]
) -> Iterator[Problem]:
    slug, kind = row.model or "", _KINDS[row.kind]
    model = models.get(slug)
    if model is None:
        yield document.at_value(where, "R021", f'"{slug}" is not a model{_hint(slug, models)}')
    elif model.kind != kind:
        message = f"{slug} is of kind {model.kind}, but {row.kind} needs a model of kind {kind}"
        yield document.at_value(where, "R057", message)


def _hint(name: str, known: Collection[str]) -> str:
    nearest = get_close_matches(name, known, n=1)
    return f': did you mean "{nearest[0]}"?' if nearest else ""
