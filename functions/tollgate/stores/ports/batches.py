"""Protocols of the stores of batches, which routes and workers use."""

from collections.abc import Callable, Sequence
from typing import Protocol

from msgspec import Struct

from tollgate.core.batches import Batch, BatchClient
from tollgate.core.limits import TierLimits
from tollgate.core.ownership import WHOLE_WORKSPACE, OwnerScope
from tollgate.core.pages import Page
from tollgate.core.principal import Principal
from tollgate.core.records.generation import GenerationRecord
from tollgate.stores.ports.base import Hold


class BatchPlace(Struct, frozen=True):
    """The workspace and the id by which a batch is found."""

    workspace_id: str
    batch_id: str


class BatchStore(Protocol):
    """The state of batches; every method raises LedgerError if the store cannot be reached."""

    async def create(self, batch: Batch) -> None:
        """Store a new batch, and add it to the open batches."""

    async def get(self, place: BatchPlace) -> Batch | None:
        """Return a batch, or None if there is none."""

    async def change(
        self, place: BatchPlace, change: Callable[[Batch], Batch | None]
    ) -> Batch | None:
        """Apply a change to the stored state, and return the new state.

        `change` may be called several times, each time with a newer state. If it returns None, or
        if there is no such batch, nothing is written and the result is None.
        """

    async def delete(self, place: BatchPlace) -> None:
        """Delete a batch that has ended; ignore a missing one."""

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

    async def open_batches(self) -> Sequence[BatchPlace]:
        """Return the batches of all workspaces that have not ended, oldest first."""


class BatchQueue(Protocol):
    """Wakes workers; a lost message only delays a batch, because open batches are also listed."""

    async def send(self, place: BatchPlace, *, delay_s: int = 0) -> None:
        """Let a worker work on a batch; raise LedgerError if the queue cannot be reached."""


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
