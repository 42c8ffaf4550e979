"""Orders a model's endpoints by weights, service tiers and the preferences of a request."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from tollgate.routing.planning.offers import Offer, rank
from tollgate.routing.planning.planning_request import PlanningRequest

RankedOffer = tuple[Offer, float | None]
"""An offer with its draw."""
CostedOffer = tuple[int, Offer, float | None]
"""An offer with its maximum cost in nano-dollars and its draw."""


def rank_offers(offers: Sequence[Offer], scope: str, key_hash: str) -> list[RankedOffer]:
    """Return a model's offers in the order of the draw; offers without weights keep their order in
    the file.
    """
    if len(offers) == 1 or offers[0].weight is None:
        return [(offer, None) for offer in offers]
    by_id = {offer.attempt.target.endpoint_id: offer for offer in offers}
    weights: Mapping[str, int] = {name: offer.weight or 0 for name, offer in by_id.items()}
    return [(by_id[name], draw) for name, draw in rank(scope, key_hash, weights)]


def at_service_tiers(
    ranked: Sequence[RankedOffer], asked: str | None, of_route: str | None
) -> Sequence[RankedOffer]:
    """Return the offers at the tier that a caller asks for, or else at the route's.

    For a caller's tier, endpoints that have it come first, and the others serve at their default
    tier. At a route's tier each endpoint is tried twice, the second time at the default tier.
    """
    if asked is not None:
        able = [_at_tier(each, asked) for each in ranked if _has_tier(each, asked)]
        return [*able, *(each for each in ranked if not _has_tier(each, asked))]
    if of_route is None:
        return ranked
    return [
        each
        for offer in ranked
        for each in ((_at_tier(offer, of_route), offer) if _has_tier(offer, of_route) else (offer,))
    ]


def _has_tier(ranked: RankedOffer, tier: str) -> bool:
    return tier in ranked[0].attempt.service_tiers


def _at_tier(ranked: RankedOffer, tier: str) -> RankedOffer:
    offer, draw = ranked
    return replace(offer, attempt=replace(offer.attempt, service_tier=tier)), draw


def order_by_preference(
    costed: Sequence[CostedOffer], request: PlanningRequest, preferred: frozenset[str]
) -> list[CostedOffer]:
    """Sort a model's offers by price if the request or route says so, and by `provider.order`.

    Otherwise, the providers in `preferred` come first.
    """
    ordered, preferences = list(costed), request.preferences
    if request.sort == "price":
        ordered.sort(key=lambda offer: offer[0])
    if preferences.order:
        # Reversed, so that the first position counts if a provider is listed twice.
        places = list(enumerate(preferences.order))
        order = {provider: place for place, provider in reversed(places)}
        last = len(order)
        ordered.sort(key=lambda offer: order.get(offer[1].attempt.target.provider, last))
    elif preferred and not request.sort:
        ordered.sort(key=lambda offer: offer[1].attempt.target.provider not in preferred)
    return ordered
