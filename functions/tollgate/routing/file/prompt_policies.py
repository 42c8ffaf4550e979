"""Applies the prompt policy of the whole gateway to a file: its checks and its permissions."""

from collections.abc import Iterator, Mapping, Sequence

from tollgate.core.prompt_policy import UNSTATED, PromptPolicy
from tollgate.routing.file.document import YamlDocument
from tollgate.routing.file.known_names import LoadedFile
from tollgate.routing.file.problems import Problem
from tollgate.routing.places import place_of
from tollgate.routing.routing_file import Routing, RoutingFile
from tollgate.routing.schema import EndpointSection, ModelSection, ProviderSection

_Providers = Mapping[str, ProviderSection]


def check_policy_is_met(
    document: YamlDocument, main: RoutingFile, parts: Sequence[LoadedFile]
) -> Iterator[Problem]:
    """Yield a problem for each route of production none of whose endpoints meets the policy, or one
    if no endpoint does.
    """
    section = main.defaults.prompt_policy
    if section is None:
        return
    providers = {slug: row for part in parts for slug, row in part.content.providers.items()}
    models = {slug: model for part in parts for slug, model in part.content.models.items()}
    met = {slug for slug, each in models.items() if _endpoints(each, section.policy, providers)}
    if not met:
        where = ("defaults", "prompt_policy")
        yield document.at_key(where, "R066", "no endpoint is known to meet prompt_policy")
        return
    for part in parts:
        for name, route in part.content.routes.items():
            slugs = {slug for rule in route.all_rules for step in rule.steps for slug in step}
            if not slugs & met:
                message = f"no endpoint of route {name} is known to meet defaults.prompt_policy"
                yield part.document.at_key(("routes", name), "R066", message)


def without_refused(routing: Routing) -> Routing:
    """Return a file whose models have only the endpoints that meet the gateway's prompt policy."""
    section = routing.defaults.prompt_policy
    if section is None:
        return routing
    models = {
        slug: model.model_copy(
            update={"endpoints": _endpoints(model, section.policy, routing.providers)}
        )
        for slug, model in routing.models.items()
    }
    return routing.model_copy(update={"models": models})


def _endpoints(
    model: ModelSection, policy: PromptPolicy, providers: _Providers
) -> tuple[EndpointSection, ...]:
    return tuple(
        each
        for each in model.endpoints
        if each.provider in providers and _meets(each, policy, providers[each.provider])
    )


def _meets(endpoint: EndpointSection, policy: PromptPolicy, provider: ProviderSection) -> bool:
    place = place_of(provider, endpoint.upstream)
    stated = endpoint.prompt_use or provider.prompt_use
    use = stated.use if stated else UNSTATED
    return policy.refuse(use, place.region, place.countries) is None
