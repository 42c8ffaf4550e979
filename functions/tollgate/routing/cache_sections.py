"""The size from which providers cache prompts, in routing.yaml."""

from typing import Annotated, Final

from pydantic import Field

from tollgate.routing.scalars import Day, Sentence, Strict

# The smallest minimum that any page of a provider or of others stated on 2026-11-28.
CACHEABLE_TOKENS_MIN: Final = 512


class CacheableSection(Strict):
    """Smallest prompt that a model's providers cache, as a provider's own pages state it."""

    tokens_min: Annotated[int, Field(ge=CACHEABLE_TOKENS_MIN, le=1_000_000)]
    """Number of tokens. Weighted draws keep a conversation at its endpoint from this size on."""
    source: Sentence
    """Page of the provider."""
    checked: Day
    """Day on which the page was last read."""
