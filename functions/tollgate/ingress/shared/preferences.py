"""Parses the routing preferences of a request, in OpenRouter's fields."""

from collections.abc import Iterator
from typing import Final

from tollgate.core.request import PriceCeiling, RoutingPreferences
from tollgate.ingress.shared.ignored_fields import extra_fields
from tollgate.ingress.shared.wire.preferences import ProviderPreferences
from tollgate.ingress.shared.wire.request_fields import RoutingFields

# Constructed without its schema, which few requests need.
_NONE: Final = ProviderPreferences.model_construct()


def parse_preferences(fields: RoutingFields) -> RoutingPreferences:
    """Return the preferences of `models`, `provider` and `session_id`."""
    provider = fields.provider or _NONE
    return RoutingPreferences(
        models=tuple(fields.models or ()),
        order=_slugs(provider.order),
        only=_slugs(provider.only),
        ignore=_slugs(provider.ignore),
        fallbacks=provider.allow_fallbacks is not False,
        require_parameters=bool(provider.require_parameters),
        sort=provider.sort,
        price_max=_ceiling(provider),
        session_id=fields.session_id,
    )


def unknown_fields(fields: RoutingFields) -> Iterator[str]:
    """Yield the names of undeclared fields of the request and of its preferences."""
    yield from extra_fields(fields)
    yield from unknown_preferences(fields)


def unknown_preferences(fields: RoutingFields) -> Iterator[str]:
    """Yield the names of undeclared preferences."""
    if fields.provider is None:
        return
    for name, value in (fields.provider.model_extra or {}).items():
        if value is not None:
            yield f"provider.{name}"
    if fields.provider.max_price is not None:
        for name in fields.provider.max_price.model_extra or {}:
            yield f"provider.max_price.{name}"


def _slugs(names: list[str] | None) -> tuple[str, ...]:
    return tuple(name.lower() for name in names or ())


def _ceiling(provider: ProviderPreferences) -> PriceCeiling | None:
    stated = provider.max_price
    if stated is None:
        return None
    return PriceCeiling(input=stated.prompt, output=stated.completion, request=stated.request)
