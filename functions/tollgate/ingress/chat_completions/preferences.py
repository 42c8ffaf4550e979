"""Parses the routing preferences of a chat completion request."""

from collections.abc import Iterator

from tollgate.core.request import PriceCeiling, RoutingPreferences
from tollgate.ingress.chat_completions.wire.preferences import ProviderPreferences
from tollgate.ingress.chat_completions.wire.request import ChatRequest


def parse_preferences(chat: ChatRequest) -> RoutingPreferences:
    """Return the preferences of `models`, `provider` and `session_id`."""
    provider = chat.provider or ProviderPreferences()
    return RoutingPreferences(
        models=tuple(chat.models or ()),
        order=_slugs(provider.order),
        only=_slugs(provider.only),
        ignore=_slugs(provider.ignore),
        fallbacks=provider.allow_fallbacks is not False,
        require_parameters=bool(provider.require_parameters),
        sort="price" if provider.sort == "price" else None,
        price_max=_ceiling(provider),
        session_id=chat.session_id,
    )


def unknown_preferences(chat: ChatRequest) -> Iterator[str]:
    """Yield the names of preferences that have no effect."""
    if chat.provider is None:
        return
    for name, value in (chat.provider.model_extra or {}).items():
        if value is not None:
            yield f"provider.{name}"
    if chat.provider.sort not in (None, "price"):
        yield "provider.sort"
    if chat.provider.max_price is not None:
        for name in chat.provider.max_price.model_extra or {}:
            yield f"provider.max_price.{name}"


def _slugs(names: list[str] | None) -> tuple[str, ...]:
    return tuple(name.lower() for name in names or ())


def _ceiling(provider: ProviderPreferences) -> PriceCeiling | None:
    stated = provider.max_price
    if stated is None:
        return None
    return PriceCeiling(input=stated.prompt, output=stated.completion, request=stated.request)
