"""Order a model's endpoints by the preferences of a request."""

from collections.abc import Sequence

from tollgate.core.request import RoutingPreferences
from tollgate.routing.planning.offers import Offer

CostedOffer = tuple[int, Offer, float | None]
"""Maximum cost in nano dollars, offer, and the offer's draw."""


def order_by_preference(
    costed: Sequence[CostedOffer], preferences: RoutingPreferences, asked: frozenset[str]
) -> list[CostedOffer]:
    """Sort a model's offers by the request's `provider.sort` and `provider.order`.

    Without these, the providers that the requested name asks for come first.
    """
    ordered = list(costed)
    if preferences.sort == "price":
        ordered.sort(key=lambda each: each[0])
    if preferences.order:
        # The list is read in reverse, so that the first position counts for a provider that is
        # listed twice.
        places = list(enumerate(preferences.order))
        order = {provider: place for place, provider in reversed(places)}
        last = len(order)
        ordered.sort(key=lambda each: order.get(each[1].attempt.target.provider, last))
    elif asked and not preferences.sort:
        ordered.sort(key=lambda each: each[1].attempt.target.provider not in asked)
    return ordered
