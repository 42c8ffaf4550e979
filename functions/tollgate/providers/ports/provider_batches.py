"""The protocol of a provider's own batches, which run many requests later at a lower price."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Final, Literal, Protocol

from msgspec import Struct

from tollgate.core.json_value import JsonValue

BatchForm = Literal["openai", "anthropic", "mistral", "gemini", "xai"]
# `refused`: the provider has accepted the batch, and then ran none of its requests.
BatchState = Literal["running", "ended", "refused"]
# The maximum number of inputs in a request for work other than chat, for forms with a limit.
_INPUTS_MAX: Final[Mapping[BatchForm, int]] = {"gemini": 1}


class BatchTerms(Struct, frozen=True, kw_only=True):
    """The terms on which a provider runs batches."""

    form: BatchForm
    percent: int
    """The price of a batched request, in percent of the price of an interactive one."""
    cached_percent: int | None = None
    """The price of cached tokens; None if it is `percent`."""
    models: tuple[str, ...] = ("*",)
    """Globs of the models that the batches run, by the provider's names."""

    def covers(self, upstream_model: str) -> bool:
        """Return whether the batches run a model."""
        return any(fnmatchcase(upstream_model, glob) for glob in self.models)

    def takes(self, inputs: int) -> bool:
        """Return whether a request may have this number of inputs; a chat request has 0."""
        return inputs <= _INPUTS_MAX.get(self.form, inputs)


class NotAccepted(Exception):
    """Raised if it is certain that the provider has not accepted a batch."""


class NotYetKnown(Exception):
    """Raised if a provider does not yet show whether it has accepted a batch."""


class BatchedRequest(Struct, frozen=True, kw_only=True):
    """One request of a batch."""

    custom_id: str
    path: str
    """The path, relative to the provider's base URL."""
    body: Mapping[str, JsonValue]
    headers: Mapping[str, str]


class BatchedAnswer(Struct, frozen=True, kw_only=True):
    """The answer to one request of a batch."""

    custom_id: str
    status: int | None
    """The HTTP status; None if the request did not run."""
    body: bytes = b""


class ProviderBatches(Protocol):
    """The batches of one provider row; each method raises UpstreamError on failure."""

    async def submit(self, name: str, requests: Sequence[BatchedRequest]) -> str:
        """Submit a batch under a unique name, and return the provider's id of the batch.

        The name is also the start of each request's `custom_id`. All requests have the same path
        and headers. Raises NotAccepted if the provider certainly runs nothing; after any other
        failure, only `find` shows whether the batch was accepted.
        """

    async def find(self, name: str, *, since_s: float, count: int) -> str | None:
        """Return the id of the batch with this name and number of requests, or None.

        `since_s` is a Unix second before the submission. Raises NotYetKnown if the provider does
        not show yet whether it has the batch.
        """

    async def get_state(self, batch_id: str) -> BatchState:
        """Return the state of a batch."""

    def read_answers(self, batch_id: str) -> AsyncGenerator[BatchedAnswer, None]:
        """Yield the answers of a batch that has ended, in any order, possibly some twice."""

    async def cancel(self, batch_id: str) -> None:
        """Ask the provider to run no further requests of a batch; ignore an ended one."""
