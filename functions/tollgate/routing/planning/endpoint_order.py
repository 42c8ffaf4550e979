"""The order of a model's endpoints by the preferences of a request."""

from collections.abc import Sequence

from tollgate.core.request import RoutingPreferences
from tollgate.routing.planning.offers import Offer

CostedOffer = tuple[int, Offer, float | None]
"""Maximum cost in nano-dollars, offer, and the offer's draw."""


def order_by_preference(
    costed: Sequence[CostedOffer], preferences: RoutingPreferences, preferred: frozenset[str]
) -> list[CostedOffer]:
    """Sort a model's offers by the request's `provider.sort` and `provider.order`.

    Without these preferences, the providers in `preferred` come first.
    """
    ordered = list(costed)
    if preferences.sort == "price":
        ordered.sort(key=lambda offer: offer[0])
    if preferences.order:
        # Reversed, so that the first position of a provider that is listed twice counts.
        places = list(enumerate(preferences.order))
        order = {provider: place for place, provider in reversed(places)}
        last = len(order)
        ordered.sort(key=lambda offer: order.get(offer[1].attempt.target.provider, last))
    elif preferred and not preferences.sort:
        ordered.sort(key=lambda offer: offer[1].attempt.target.provider not in preferred)
    return ordered
