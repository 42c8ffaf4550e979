"""Converts between the two ways to request thinking, an effort and a token budget."""

from typing import Final

from tollgate.core.request import Effort, ReasoningOptions
from tollgate.providers.ports.dialect import EFFORTS

# The maximum token budget of each effort, for models that know only efforts. No provider publishes
# such numbers; these are the gateway's own shares of 32k tokens.
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


def wants_thoughts(options: ReasoningOptions) -> bool | None:
    """Return True if the caller requests reasoning, False if it declines, None otherwise."""
    if options.effort == "none" or options.enabled is False or options.tokens_max == 0:
        return False
    if options.effort is not None or options.enabled or options.tokens_max is not None:
        return True
    return None


def effort_wanted(options: ReasoningOptions) -> Effort | None:
    """Return the requested effort, or the effort for a token budget; None for the default."""
    if wants_thoughts(options) is False:
        return "none"
    if options.effort is not None or options.tokens_max is None:
        return options.effort
    return next((effort for top, effort in _BUDGETS if options.tokens_max <= top), "xhigh")


def nearest_effort(wanted: Effort, known: tuple[Effort, ...]) -> Effort | None:
    """Return the strongest known effort that does not exceed the requested effort, or else the
    weakest known effort.

    `none` is returned only if `none` is requested.
    """
    usable = [effort for effort in known if effort != "none" or wanted == "none"]
    below = [effort for effort in usable if EFFORTS.index(effort) <= EFFORTS.index(wanted)]
    return next(iter(below[-1:] or usable[:1]), None)


def tokens_wanted(options: ReasoningOptions, default: Effort = "medium") -> int:
    """Return the requested token budget, or the budget for the requested effort."""
    if options.tokens_max is not None:
        return options.tokens_max
    return _TOKENS[options.effort if options.effort in _TOKENS else default]
