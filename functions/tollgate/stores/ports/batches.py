"""Protocols of the stores of jobs, which routes and workers use."""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from msgspec import Struct

from tollgate.core.background import BackgroundResponse
from tollgate.core.batches import Batch, BatchClient
from tollgate.core.jobs import Job
from tollgate.core.limits import TierLimits
from tollgate.core.ownership import WHOLE_WORKSPACE, OwnerScope
from tollgate.core.pages import Page
from tollgate.core.principal import Principal
from tollgate.core.records.generation import GenerationRecord
from tollgate.core.shadows import ShadowRun
from tollgate.core.videos import Video
from tollgate.stores.ports.base import Hold

AnyJob = TypeVar("AnyJob", bound=Job)


class BatchPlace(Struct, frozen=True):
    """The workspace and the id by which a job is found: a batch or a background response."""

    workspace_id: str
    batch_id: str


class JobStore(Protocol[AnyJob]):
    """The state of one kind of jobs; each method raises LedgerError if the store is away."""

    async def create(self, job: AnyJob) -> None:
        """Store a new job, and add it to the open jobs."""

    async def get(self, place: BatchPlace) -> AnyJob | None:
        """Return a job, or None if there is none."""

    async def change(
        self, place: BatchPlace, change: Callable[[AnyJob], AnyJob | None]
    ) -> AnyJob | None:
        """Apply a change to the stored state, and return the new state.

        `change` may be called several times, each time with a newer state. If it returns None, or
        if there is no such job, nothing is written and the result is None.
        """

    async def delete(self, place: BatchPlace) -> bool:
        """Delete a job that has ended; return False if there is none.

        If several callers delete a job at the same time, one gets True.
        """

    async def open_jobs(self) -> Sequence[BatchPlace]:
        """Return the jobs of all workspaces that have not ended, oldest first."""


class BatchStore(JobStore[Batch], Protocol):
    """The state of batches."""

    async def page(
        self,
        workspace_id: str,
        *,
        limit: int,
        after: str | None = None,
        reach: OwnerScope = WHOLE_WORKSPACE,
        client: BatchClient = "openai",
    ) -> Page[Batch]:
        """Return a page of a workspace's batches of a format after `after`, newest first."""


class VideoStore(JobStore[Video], Protocol):
    """The state of videos."""

    async def page(
        self,
        workspace_id: str,
        *,
        limit: int,
        after: str | None = None,
        reach: OwnerScope = WHOLE_WORKSPACE,
        oldest_first: bool = False,
    ) -> Page[Video]:
        """Return a page of a workspace's videos after `after`, without expired ones."""


class VideoRequests(Protocol):
    """Stored requests for videos that wait for a worker; methods raise LedgerError on failure."""

    async def put(self, video: Video, content: bytes) -> None:
        """Store the request for a video."""

    async def get(self, video: Video) -> bytes | None:
        """Return the request for a video; None if it was deleted or has expired."""

    async def delete(self, video: Video) -> None:
        """Delete the request for a video; ignore a missing one."""


class BatchQueue(Protocol):
    """Wakes workers; a lost message only delays a job, because open jobs are also listed."""

    async def send(self, place: BatchPlace, *, delay_s: int = 0) -> None:
        """Let a worker work on a job; raise LedgerError if the queue cannot be reached."""


class BackgroundServices(Struct, frozen=True, kw_only=True):
    """The stores of background responses, and the queue that wakes their workers."""

    store: JobStore[BackgroundResponse]
    parts: "BackgroundParts"
    queue: BatchQueue | None
    """None if workers look for open jobs themselves."""


class VideoServices(Struct, frozen=True, kw_only=True):
    """The stores of videos, and the queue that wakes their workers."""

    store: VideoStore
    requests: VideoRequests
    queue: BatchQueue | None
    """None if workers look for open jobs themselves."""


class ShadowServices(Struct, frozen=True, kw_only=True):
    """The store of shadow runs, and the queue that wakes their workers."""

    store: JobStore[ShadowRun]
    queue: BatchQueue | None
    """None if workers look for open runs themselves."""


class SubmissionLedger(Protocol):
    """The money of lines that a provider runs together, under one hold."""

    async def hold(
        self,
        principal: Principal,
        amount_nano_usd: int,
        first_id: str | None = None,
        *,
        covered: bool = False,
        tier: TierLimits | None = None,
        models: tuple[str, ...] = (),
    ) -> Hold:
        """Hold money as `Ledger.hold` does."""

    async def settle_sum(self, hold: Hold, cost_nano_usd: int) -> None:
        """Replace a hold by the cost of several generations whose records exist.

        Repeating the call does no harm. Raises LedgerError unless every side has confirmed.
        """


class LineRecords(Protocol):
    """The records of the generations of lines; each method raises LedgerError on failure."""

    async def get(self, workspace_id: str, generation_id: str) -> GenerationRecord | None:
        """Return the record of a generation, or None if it has none."""

    async def decide(self, record: GenerationRecord) -> GenerationRecord:
        """Store the record unless the generation has one, and return the stored record."""


class BatchObjects(Protocol):
    """The contents of batches; every method raises LedgerError if they cannot be reached."""

    async def input_bytes(self, batch: Batch) -> int | None:
        """Return the size of a batch's file; None if it was deleted or has expired."""

    async def read_input(self, batch: Batch, start: int, length: int) -> bytes:
        """Return a range of a batch's file; raise RequestError if it was deleted or has expired."""

    async def put(self, batch: Batch, name: str, content: bytes) -> None:
        """Store an intermediate result of a batch."""

    async def get(self, batch: Batch, name: str) -> bytes | None:
        """Return an intermediate result of a batch, or None if there is none."""

    async def clear(self, batch: Batch) -> None:
        """Delete all intermediate results of a batch that has ended."""

    async def create_file(
        self, batch: Batch, filename: str, parts: Sequence[tuple[str, int]]
    ) -> str:
        """Join intermediate results, given as names and sizes, into a file; return the file's id.

        Raise AccessError if the cap of the batch's key or workspace is reached.
        """


class BackgroundParts(Protocol):
    """The contents of background responses; every method raises LedgerError on failure."""

    async def put(self, job: BackgroundResponse, name: str, content: bytes) -> None:
        """Store a part of a response, such as its request or some of its events."""

    async def get(self, job: BackgroundResponse, name: str) -> bytes | None:
        """Return a part of a response; None if there is none."""

    async def answer(self, job: BackgroundResponse) -> bytes | None:
        """Return the answer; None if it was deleted or has expired."""

    async def keep(self, job: BackgroundResponse, content: bytes) -> None:
        """Store the answer, as the answers of other requests are stored."""

    async def clear(self, job: BackgroundResponse) -> None:
        """Delete the answer and all parts of a response."""
