"""The section of routing.yaml on the batches that a provider runs itself."""

from typing import Annotated

from pydantic import Field

from tollgate.providers.ports.formats import WIRE_FORMATS, FormatName
from tollgate.providers.ports.provider_batches import BatchForm, BatchTerms
from tollgate.routing.scalars import Day, Glob, Sentence, Strict


class BatchSection(Strict):
    """Batches that the provider runs itself, for lines whose first endpoint is at this provider."""

    form: BatchForm
    """`openai` for `/files` and `/batches` below `base_url`, `anthropic` for `/messages/batches`,
    `mistral` for `/batch/jobs`, `gemini` for `batchGenerateContent`, `xai` for xAI's `/batches`,
    `bedrock` for jobs over files in the gateway's bucket."""
    percent: Annotated[int, Field(ge=1, le=100)]
    """Price of a batched request, in percent of the endpoint's price."""
    cached_percent: Annotated[int | None, Field(ge=1, le=100)] = None
    """Price of cached tokens, if the provider does not sell them at `percent`."""
    models: Annotated[tuple[Glob, ...], Field(min_length=1, max_length=256)] = ("*",)
    """Globs of the models that the batches run, by their `upstream` names. The gateway runs lines
    for other models."""
    source: Sentence
    """Web page on which the provider publishes the price of its batches."""
    checked: Day
    """Day on which that page was last read."""

    def can_serve(self, codec: FormatName) -> bool:
        """Return whether batches of this form run requests of a format."""
        return self.form in WIRE_FORMATS[codec].batch_forms

    @property
    def terms(self) -> BatchTerms:
        """Return the terms in the type that the registry uses."""
        return BatchTerms(
            form=self.form,
            percent=self.percent,
            cached_percent=self.cached_percent,
            models=self.models,
        )
