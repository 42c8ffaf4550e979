"""The amount of thinking that a caller requests, as an effort or as a number of tokens."""

from typing import Final

from tollgate.core.request import Effort, ReasoningOptions
from tollgate.providers.ports.dialect import EFFORTS

# Token budget → effort, for models that know only efforts. No provider publishes numbers; these are
# shares of 32k tokens, chosen here.
_BUDGETS: Final[tuple[tuple[int, Effort], ...]] = (
    (3_200, "minimal"),
    (6_400, "low"),
    (16_000, "medium"),
    (25_600, "high"),
)
_TOKENS: Final[dict[Effort, int]] = {
    "minimal": 1_024,
    "low": 4_096,
    "medium": 10_240,
    "high": 24_576,
    "xhigh": 32_768,
    "max": 65_536,
}


def wants_thoughts(wanted: ReasoningOptions) -> bool | None:
    """Return whether the caller requests reasoning or declines it; None if neither is stated."""
    if wanted.effort == "none" or wanted.enabled is False or wanted.tokens_max == 0:
        return False
    if wanted.effort is not None or wanted.enabled or wanted.tokens_max is not None:
        return True
    return None


def effort_wanted(wanted: ReasoningOptions) -> Effort | None:
    """Return the requested effort, if need be derived from a token budget; None for the default."""
    if wants_thoughts(wanted) is False:
        return "none"
    if wanted.effort is not None or wanted.tokens_max is None:
        return wanted.effort
    return next((effort for top, effort in _BUDGETS if wanted.tokens_max <= top), "xhigh")


def nearest_effort(wanted: Effort, known: tuple[Effort, ...]) -> Effort | None:
    """Return the strongest known effort up to the requested one, else the weakest.

    `none` is returned only if `none` is requested.
    """
    usable = [effort for effort in known if effort != "none" or wanted == "none"]
    below = [effort for effort in usable if EFFORTS.index(effort) <= EFFORTS.index(wanted)]
    return next(iter(below[-1:] or usable[:1]), None)


def tokens_wanted(wanted: ReasoningOptions, default: Effort = "medium") -> int:
    """Return the requested token budget, derived from an effort if necessary."""
    if wanted.tokens_max is not None:
        return wanted.tokens_max
    return _TOKENS[wanted.effort if wanted.effort in _TOKENS else default]
