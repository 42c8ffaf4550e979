"""Orders a model's endpoints by the preferences of a request."""

from collections.abc import Sequence

from tollgate.core.request import RoutingPreferences
from tollgate.routing.planning.offers import Offer

CostedOffer = tuple[int, Offer, float | None]
"""An offer with its maximum cost in nano-dollars and its draw."""


def order_by_preference(
    costed: Sequence[CostedOffer], preferences: RoutingPreferences, preferred: frozenset[str]
) -> list[CostedOffer]:
    """Sort a model's offers by the request's `provider.sort` and `provider.order`.

    Otherwise, the providers in `preferred` come first.
    """
    ordered = list(costed)
    if preferences.sort == "price":
        ordered.sort(key=lambda offer: offer[0])
    if preferences.order:
        # Reversed, so that the first position counts if a provider is listed twice.
        places = list(enumerate(preferences.order))
        order = {provider: place for place, provider in reversed(places)}
        last = len(order)
        ordered.sort(key=lambda offer: order.get(offer[1].attempt.target.provider, last))
    elif preferred and not preferences.sort:
        ordered.sort(key=lambda offer: offer[1].attempt.target.provider not in preferred)
    return ordered
