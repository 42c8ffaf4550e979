"""Names that a key may use, decided as the planner decides for a request."""

from collections.abc import Sequence

from tollgate.core.errors import AccessError
from tollgate.core.principal import Principal
from tollgate.routing.planning.catalog import Catalog
from tollgate.routing.planning.exclusions import AllowedModels, find_forbidden
from tollgate.routing.planning.planner import find_tier


def list_usable_models(catalog: Catalog, name: str, principal: Principal | None) -> Sequence[str]:
    """Return the models that a caller may use under a name; without a key, all its models."""
    models = _list_models_behind(catalog, name)
    if principal is None:
        return models
    try:
        tier = find_tier(catalog, principal.tier)
    except AccessError:
        return ()
    allowed = AllowedModels(principal.models, principal.level_models)
    return tuple(
        slug for slug in models if find_forbidden(slug, name, allowed=allowed, tier=tier) is None
    )


def _list_models_behind(catalog: Catalog, name: str) -> tuple[str, ...]:
    """Return the models that a name may lead to, in order; empty for an unknown name."""
    target = catalog.target(name)
    if target in catalog.models:
        return (target,)
    route = catalog.routes.get(target)
    rules = route.all_rules if route is not None else ()
    return tuple(dict.fromkeys(slug for rule in rules for step in rule.steps for slug in step))
