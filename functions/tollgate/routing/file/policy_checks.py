"""Finds fallbacks that would send a prompt to a provider with a different data policy."""

from collections.abc import Iterator, Mapping

from tollgate.routing.chains import RouteSection
from tollgate.routing.file.document import Where, YamlDocument
from tollgate.routing.file.problems import Problem
from tollgate.routing.file.promise_checks import PlacedModel, list_shadow_models, place_chains
from tollgate.routing.schema import ModelSection

# Data policies, keyed by provider. Undefined providers are left out, because another check reports
# them.
Policies = Mapping[str, str | None]


def check_model_policy(
    document: YamlDocument, slug: str, model: ModelSection, policies: Policies
) -> Iterator[Problem]:
    """Yield a problem for each endpoint whose data policy differs from the first endpoint's."""
    first = model.endpoints[0].provider
    for index, endpoint in enumerate(model.endpoints):
        if _crosses(first, endpoint.provider, policies):
            where: Where = ("models", slug, "endpoints", index, "provider")
            message = f"{slug} {_crossing(first, endpoint.provider, policies)}"
            yield document.at_value(where, "R063", message)


def check_route_policy(
    document: YamlDocument,
    name: str,
    route: RouteSection,
    *,
    models: Mapping[str, PlacedModel],
    policies: Policies,
) -> Iterator[Problem]:
    """Yield a problem for each model in a chain, or of a shadow, whose data policy differs from the
    first model's.
    """
    for where, steps in place_chains(route, ("routes", name)):
        tried = [
            ((*where, index, slug) if len(step) > 1 else (*where, index), slug)
            for index, step in enumerate(steps)
            for slug in step
            if slug in models
        ]
        if not tried:
            continue
        tried += [
            (("routes", name, "shadow", key), slug)
            for key, slug in list_shadow_models(route)
            if slug in models
        ]
        first = models[tried[0][1]].section.endpoints[0].provider
        for place, slug in tried:
            provider = models[slug].section.endpoints[0].provider
            if _crosses(first, provider, policies):
                message = f"route {name} {_crossing(first, provider, policies)}"
                yield document.at_value(place, "R063", message)


def check_heir_policy(
    document: YamlDocument,
    slug: str,
    model: ModelSection,
    *,
    models: Mapping[str, ModelSection],
    policies: Policies,
) -> Iterator[Problem]:
    """Yield a problem if a successor replaces a model under a different data policy."""
    heir = model.successor
    if model.after_retirement != "successor" or heir is None or heir not in models:
        return
    first, provider = (each.endpoints[0].provider for each in (model, models[heir]))
    if _crosses(first, provider, policies):
        message = f"the succession of {heir} {_crossing(first, provider, policies)}"
        yield document.at_value(("models", slug, "successor"), "R063", message)


def _crosses(first: str, provider: str, policies: Policies) -> bool:
    return {first, provider} <= policies.keys() and policies[first] != policies[provider]


def _crossing(first: str, provider: str, policies: Policies) -> str:
    here, there = (policies[each] or "none" for each in (first, provider))
    return f"crosses data policies: {first} has {here}, {provider} has {there}"
