"""The section of routing.yaml on the batches that a provider runs itself."""

from typing import Annotated

from pydantic import Field

from tollgate.providers.ports.provider_batches import BatchForm, BatchTerms
from tollgate.routing.scalars import Day, Sentence, Strict


class BatchSection(Strict):
    """Batches that the provider runs itself, for lines whose first endpoint is at this provider."""

    form: BatchForm
    """`openai` for `/files` and `/batches` below `base_url`, `anthropic` for `/messages/batches`.
    """
    percent: Annotated[int, Field(ge=1, le=100)]
    """Price of a batched request, in percent of the endpoint's price."""
    source: Sentence
    """Web page on which the provider publishes the price of its batches."""
    checked: Day
    """Day on which that page was last read."""

    @property
    def terms(self) -> BatchTerms:
        """Return the terms in the type that the registry uses."""
        return BatchTerms(form=self.form, percent=self.percent)
