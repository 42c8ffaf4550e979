"""Draws the requests of a route that its shadow model gets too."""

from typing import Final

from tollgate.core.request import RoutingPreferences
from tollgate.routing.chains import ShadowSection
from tollgate.routing.planning.offers import rank

_CERTAIN: Final = 100


def is_drawn(shadow: ShadowSection, route: str, draw_key_hash: str) -> bool:
    """Return True if the shadow of a route gets a request.

    Like other draws, this one depends only on the route and the id of the session or request. A
    larger share adds requests, and keeps those that were drawn before.
    """
    weights = {"drawn": shadow.share, "left out": _CERTAIN - shadow.share}
    return rank(f"{route} shadow", draw_key_hash, weights)[0][0] == "drawn"


def without_order(preferences: RoutingPreferences) -> RoutingPreferences:
    """Return a caller's preferences on where prompts go, which also apply to a shadow."""
    return RoutingPreferences(
        only=preferences.only,
        ignore=preferences.ignore,
        prompt_policy=preferences.prompt_policy,
    )
