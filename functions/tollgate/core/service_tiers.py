"""Service tiers: one model at another speed and price, under the names that formats use."""

from collections.abc import Mapping
from typing import Final, Literal

PricedTier = Literal["flex", "priority"]
"""A tier with a price of its own; the default tier has the endpoint's."""

DEFAULT_TIER: Final = "default"
BATCH_TIER: Final = "batch"
"""The tier in records of lines that ran in a provider's own batches."""
# Names for the same tier: of Anthropic, Gemini and Groq, and OpenAI's `fast`
# (developers.openai.com/api/docs/guides/fast-mode, 2026-11-27). `auto` leaves the choice to others.
_SAME: Final[Mapping[str, str | None]] = {
    "auto": None,
    "fast": "priority",
    "on_demand": DEFAULT_TIER,
    "standard": DEFAULT_TIER,
    "standard_only": DEFAULT_TIER,
}


def plain_tier(name: str | None) -> str | None:
    """Return the common name of a tier; None if none is stated."""
    return None if name is None else _SAME.get(name.lower(), name)
