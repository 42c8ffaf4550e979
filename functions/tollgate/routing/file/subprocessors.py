"""Lists the companies that receive prompts, files or searches according to a routing file, and
where.
"""

from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct

from tollgate.routing.chains import RouteSection
from tollgate.routing.file.promise_checks import list_shadow_models
from tollgate.routing.lifecycle import list_heirs
from tollgate.routing.places import place_of
from tollgate.routing.routing_file import Routing
from tollgate.routing.schema import EndpointSection, ProviderSection

_AWS: Final = "AWS"
_SIMULATOR: Final = "simulator"


class Subprocessor(Struct, frozen=True, kw_only=True, order=True):
    """A company that receives callers' data in one region."""

    name: str
    service: str
    """The slug of a provider, or `web_search` or `pdf.ocr`."""
    host: str
    """A host name, or AWS for services that are called with the function's role."""
    region: str
    """An AWS region or geography, or a Google location; empty if the file has none."""
    data_policy: str = ""
    models: tuple[str, ...] = ()
    """Models that the company serves; empty for tools, which any model may use."""


def list_subprocessors(routing: Routing) -> tuple[Subprocessor, ...]:
    """Return the companies in a routing, sorted by name; the simulator does not count."""
    models: dict[Subprocessor, set[str]] = {}
    for slug, model in routing.models.items():
        for endpoint in model.endpoints:
            provider = routing.providers[endpoint.provider]
            if provider.transport != _SIMULATOR:
                models.setdefault(_provider(provider, endpoint), set()).add(slug)
    found = [
        Subprocessor(
            name=each.name,
            service=each.service,
            host=each.host,
            region=each.region,
            data_policy=each.data_policy,
            models=tuple(sorted(slugs)),
        )
        for each, slugs in models.items()
    ]
    return tuple(sorted([*found, *_tools(routing)]))


def list_models(routing: Routing, route: RouteSection) -> frozenset[str]:
    """Return the models that may get a route's requests: those of its rules with their successors,
    of its shadow, and of guardrails.
    """
    named = {slug for rule in route.all_rules for step in rule.steps for slug in step}
    named |= {slug for _, slug in list_shadow_models(route)}
    named |= {guard.model for guard in routing.guardrails.values() if guard.model is not None}
    heirs = (heir for slug in named for heir in list_heirs(slug, routing.models.get))
    return frozenset(named.union(heirs))


def _provider(provider: ProviderSection, endpoint: EndpointSection) -> Subprocessor:
    return Subprocessor(
        name=provider.name or endpoint.provider,
        service=endpoint.provider,
        host=_host(provider.address),
        region=place_of(provider, endpoint.upstream).region,
        data_policy=provider.data_policy or "",
    )


def _tools(routing: Routing) -> Iterator[Subprocessor]:
    search, ocr = routing.server_tools.web_search, routing.ocr
    if search is not None and search.engine is not None:
        yield Subprocessor(
            name=search.engine, service="web_search", host=_host(search.address), region=""
        )
    if ocr is not None:
        host, region = _host(ocr.address), ocr.region or ""
        yield Subprocessor(name=ocr.engine, service="pdf.ocr", host=host, region=region)


def _host(address: str | None) -> str:
    return _AWS if address is None else urlsplit(address).hostname or address
