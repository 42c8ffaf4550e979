"""Finds shadows of routes whose models cannot answer or judge conversations."""

from collections.abc import Iterator, Mapping

from tollgate.routing.chains import RouteSection
from tollgate.routing.file.document import YamlDocument
from tollgate.routing.file.problems import Problem
from tollgate.routing.file.promise_checks import PlacedModel, list_shadow_models, place_steps


def check_shadow(
    document: YamlDocument, name: str, route: RouteSection, *, models: Mapping[str, PlacedModel]
) -> Iterator[Problem]:
    """Yield a problem if a route with a shadow has a model that is not a chat model, and one for
    each such model of the shadow and its judge; undefined models are reported elsewhere.
    """
    if route.shadow is None:
        return
    where = ("routes", name)
    slugs = {slug for _, step in place_steps(route, where) for slug in step}
    if any(models[slug].section.kind != "chat" for slug in slugs & models.keys()):
        message = f"route {name}: only requests to chat models have a shadow"
        yield document.at_value((*where, "shadow", "model"), "R012", message)
    for key, slug in list_shadow_models(route):
        if slug in models and models[slug].section.kind != "chat":
            message = f"{slug} is of kind {models[slug].section.kind}, but a shadow needs chat"
            yield document.at_value((*where, "shadow", key), "R057", message)
