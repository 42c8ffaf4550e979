"""The protocol of a provider's own batches, which run many requests later at a lower price."""

from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Final, Literal, Protocol

from msgspec import Struct

from tollgate.core.json_value import JsonValue
from tollgate.core.request import Capability

BatchForm = Literal["openai", "anthropic", "mistral", "gemini", "xai", "bedrock"]
# `refused`: the provider has accepted the batch, and then ran none of its requests.
BatchState = Literal["running", "ended", "refused"]
_TOOLS: Final[frozenset[Capability]] = frozenset({"structured_output", "tools"})


class BatchLimits(Struct, frozen=True, kw_only=True):
    """The limits of a form of batches; the gateway itself runs lines that exceed them."""

    requests_min: int = 1
    """The smallest number of requests that a batch may have."""
    inputs_max: int | None = None
    """The maximum number of inputs in a request for work other than chat; None without a limit."""
    takes_tools: bool = True
    """True if requests may have tools, tool results, or an output format."""
    needs_bucket: bool = False
    """True if the provider reads and writes files in the gateway's bucket, in its own region."""


# Bedrock's limits: "Process multiple prompts with batch inference" in the Bedrock user guide, and
# the default quota "Minimum number of records per batch inference job" (2026-11-28).
BATCH_LIMITS: Final[Mapping[BatchForm, BatchLimits]] = {
    "openai": BatchLimits(),
    "anthropic": BatchLimits(),
    "mistral": BatchLimits(),
    "gemini": BatchLimits(inputs_max=1),
    "xai": BatchLimits(),
    "bedrock": BatchLimits(requests_min=100, takes_tools=False, needs_bucket=True),
}


class BatchTerms(Struct, frozen=True, kw_only=True):
    """The terms on which a provider runs batches."""

    form: BatchForm
    percent: int
    """The price of a batched request, in percent of the price of an interactive one."""
    cached_percent: int | None = None
    """The price of cached tokens; None if it is `percent`."""
    models: tuple[str, ...] = ("*",)
    """Globs of the models that the batches run, by the provider's names."""

    @property
    def limits(self) -> BatchLimits:
        """The limits of the form."""
        return BATCH_LIMITS[self.form]

    def covers(self, upstream_model: str) -> bool:
        """Return whether the batches run a model."""
        return any(fnmatchcase(upstream_model, glob) for glob in self.models)

    def takes(self, inputs: int, capabilities: Collection[Capability] = ()) -> bool:
        """Return whether a request may have this number of inputs (0 for chat) and need these
        capabilities.
        """
        limits = self.limits
        if not limits.takes_tools and _TOOLS & set(capabilities):
            return False
        return limits.inputs_max is None or inputs <= limits.inputs_max

    def find_lack(self, region: str | None, bucket_region: str | None) -> str | None:
        """Return what a deployment lacks for a provider's batches in a region; None if it lacks
        nothing.

        `bucket_region` is the region of the bucket that providers may read; None without a bucket.
        """
        if not self.limits.needs_bucket:
            return None
        if bucket_region is None:
            return "needs an S3 bucket and TOLLGATE_BEDROCK_BATCH_ROLE"
        if bucket_region != region:
            return f"needs a bucket in {region}, but the gateway's is in {bucket_region}"
        return None


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

    async def submit(self, name: str, requests: Sequence[BatchedRequest], *, folder: str) -> str:
        """Submit a batch under a unique name, and return the provider's id of the batch.

        The name is also the start of each request's `custom_id`. All requests have the same path
        and headers. `folder` ends in `/` and is the place for files of the batch in the gateway's
        bucket, which are deleted when the client's batch has ended. Raises NotAccepted if the
        provider certainly runs nothing; after any other failure, only `find` shows whether the
        batch was accepted.
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
