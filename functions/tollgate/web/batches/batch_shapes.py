"""Bodies of the batch routes, in the format of OpenAI's clients.

https://platform.openai.com/docs/api-reference/batch (2026-11-27)
"""

from typing import Annotated, Literal

from pydantic import BaseModel, Field, StringConstraints

from tollgate.core.batches import BATCH_WINDOW_S, KEPT_DAYS, Batch, BatchStatus
from tollgate.core.clock import DAY_S
from tollgate.core.money.amounts import usd
from tollgate.web.files.file_shapes import EXPIRES_MAX_S, EXPIRES_MIN_S
from tollgate.web.shapes import Body, Unreadable, Usd

Metadata = Annotated[
    dict[
        Annotated[str, StringConstraints(max_length=64)],
        Annotated[str, StringConstraints(max_length=512)],
    ],
    Field(max_length=16),
]


class OutputExpiry(Body):
    """The age at which the files with the results are deleted."""

    anchor: Literal["created_at"]
    seconds: Annotated[int, Field(ge=EXPIRES_MIN_S, le=EXPIRES_MAX_S)]


class BatchBody(Body):
    """A batch to create."""

    input_file_id: Annotated[str, Field(max_length=64, description="a file of purpose `batch`")]
    endpoint: Annotated[str, Field(max_length=64, description="the path that every line names")]
    completion_window: Literal["24h"]
    metadata: Metadata | None = None
    output_expires_after: OutputExpiry | None = Field(
        None, description=f"default: {KEPT_DAYS} days"
    )

    @property
    def output_expires_s(self) -> int:
        """Seconds for which the files with the results are stored."""
        expiry = self.output_expires_after
        return KEPT_DAYS * DAY_S if expiry is None else expiry.seconds


class FaultObject(BaseModel):
    """A reason for which a file was refused."""

    code: str
    message: str
    line: int | None
    param: str | None


class FaultList(BaseModel):
    """The first 100 reasons for which a file was refused."""

    object: Literal["list"] = "list"
    data: list[FaultObject]


class RequestCounts(BaseModel):
    """The numbers of lines."""

    total: int
    completed: int
    failed: int


class BatchObject(BaseModel):
    """A batch in OpenAI's format."""

    id: str
    object: Literal["batch"] = "batch"
    endpoint: str
    errors: FaultList | None
    input_file_id: str
    completion_window: Literal["24h"] = "24h"
    status: BatchStatus
    output_file_id: str | None
    error_file_id: str | None
    created_at: int
    in_progress_at: int | None
    expires_at: int
    finalizing_at: int | None
    completed_at: int | None
    failed_at: int | None
    expired_at: int | None
    cancelling_at: int | None
    cancelled_at: int | None
    request_counts: RequestCounts
    metadata: dict[str, str] | None
    total_cost: Usd = Field(description="USD for the lines that have ended")
    total_cost_max: Usd = Field(description="USD that all lines together may cost at most")

    @classmethod
    def of(cls, batch: Batch) -> "BatchObject":
        """Build the object from a stored batch."""
        faults = [
            FaultObject(code=it.code, message=it.message, line=it.line, param=it.param)
            for it in batch.faults
        ]
        return cls(
            id=batch.id,
            endpoint=batch.endpoint,
            errors=FaultList(data=faults) if faults else None,
            input_file_id=batch.input_file_id,
            status=batch.status,
            output_file_id=batch.output_file_id,
            error_file_id=batch.error_file_id,
            created_at=batch.created_s,
            in_progress_at=batch.times.get("in_progress"),
            expires_at=batch.created_s + BATCH_WINDOW_S,
            finalizing_at=batch.times.get("finalizing"),
            completed_at=batch.times.get("completed"),
            failed_at=batch.times.get("failed"),
            expired_at=batch.times.get("expired"),
            cancelling_at=batch.times.get("cancelling"),
            cancelled_at=batch.times.get("cancelled"),
            request_counts=RequestCounts(
                total=batch.lines, completed=batch.tally.completed, failed=batch.tally.failed
            ),
            metadata=dict(batch.metadata) or None,
            total_cost=usd(batch.tally.cost_nano_usd),
            total_cost_max=usd(batch.bound_nano_usd),
        )


class BatchList(BaseModel):
    """A page of batches."""

    object: Literal["list"] = "list"
    data: list[BatchObject]
    first_id: str | None
    last_id: str | None
    has_more: bool
    unreadable: Unreadable
