"""The use that providers and engines make of prompts, as routing.yaml states it."""

from collections.abc import Collection
from typing import Annotated

from pydantic import Field

from tollgate.core.prompt_policy import (
    UNSTATED,
    PromptPolicy,
    PromptUse,
    Training,
    UnmetPolicy,
    find_unmet,
)
from tollgate.routing.scalars import Country, Day, Sentence, Strict


class PromptUseSection(Strict):
    """Provider's use of prompts, from its own pages. Policies on anything unstated are not met."""

    training: Training | None = None
    """`none` if prompts are not used for training unless you agree."""
    retention_days: Annotated[int, Field(ge=0, le=36_500)] | None = None
    """Longest time for which prompts are stored, also to find abuse; 0 if they are not stored."""
    source: Sentence
    """Page of the provider."""
    checked: Day
    """Day on which the page was last read."""

    @property
    def use(self) -> PromptUse:
        """Return the use in the type that the planner reads."""
        return PromptUse(training=self.training, retention_days=self.retention_days)


class EngineUseSection(Strict):
    """Place of an engine of the gateway's tools, and the engine's use of prompts."""

    countries: Annotated[tuple[Country, ...], Field(max_length=64)] = ()
    """Countries in which the engine processes texts, as ISO 3166 codes."""
    prompt_use: PromptUseSection | None = None

    def find_unmet(self, policies: Collection[PromptPolicy]) -> UnmetPolicy | None:
        """Return the first demand that the engine is not known to meet; None if it meets all."""
        use = self.prompt_use.use if self.prompt_use else UNSTATED
        return find_unmet(policies, use, self.countries)
