"""Bodies of the routes of message batches, in the format of Anthropic's clients.

https://docs.anthropic.com/en/api/creating-message-batches (2026-11-27)
"""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from tollgate.core.batches import BATCH_LINES_MAX, BATCH_PREFIX, Batch
from tollgate.web.shapes import Body, moment, moment_or_none

MESSAGE_BATCH_PREFIX = "msgbatch_"


class BatchedMessage(Body):
    """A request of a message batch."""

    custom_id: Annotated[str, Field(pattern=r"^[a-zA-Z0-9_-]{1,64}$")]
    params: dict[str, Any] = Field(description="the body of a request to `/v1/messages`")


class MessageBatchBody(Body):
    """A message batch to create."""

    requests: Annotated[list[BatchedMessage], Field(min_length=1, max_length=BATCH_LINES_MAX)]


class MessageCounts(BaseModel):
    """The numbers of requests by their state."""

    processing: int
    succeeded: int
    errored: int
    canceled: int
    expired: int


class MessageBatchObject(BaseModel):
    """A message batch in Anthropic's format."""

    id: str
    type: Literal["message_batch"] = "message_batch"
    processing_status: Literal["in_progress", "canceling", "ended"]
    request_counts: MessageCounts
    created_at: datetime
    ended_at: datetime | None
    expires_at: datetime
    cancel_initiated_at: datetime | None
    archived_at: None = None
    results_url: str | None

    @classmethod
    def of(cls, batch: Batch, base_url: str) -> "MessageBatchObject":
        """Build the object from a stored batch; `base_url` is the URL of the route."""
        tally, cancelled = batch.tally, "cancelling" in batch.times
        ended = batch.times.get(batch.status) if batch.is_ended else None
        shown_id = shown_id_of(batch)
        left = batch.lines - tally.completed - tally.failed - batch.not_run
        status: Literal["in_progress", "canceling", "ended"] = "in_progress"
        if cancelled:
            status = "canceling"
        if batch.is_ended:
            status = "ended"
        return cls(
            id=shown_id,
            processing_status=status,
            request_counts=MessageCounts(
                processing=left,
                succeeded=tally.completed,
                errored=tally.failed,
                canceled=batch.not_run if cancelled else 0,
                expired=0 if cancelled else batch.not_run,
            ),
            created_at=moment(batch.created_s),
            ended_at=moment_or_none(ended),
            expires_at=moment(batch.expires_s),
            cancel_initiated_at=moment_or_none(batch.times.get("cancelling")),
            results_url=f"{base_url}/{shown_id}/results" if batch.output_file_id else None,
        )


class MessageBatchList(BaseModel):
    """A page of message batches."""

    data: list[MessageBatchObject]
    first_id: str | None
    last_id: str | None
    has_more: bool


class DeletedMessageBatch(BaseModel):
    """A message batch that was deleted."""

    id: str
    type: Literal["message_batch_deleted"] = "message_batch_deleted"


def shown_id_of(batch: Batch) -> str:
    """Return the id under which Anthropic's clients know a batch."""
    return MESSAGE_BATCH_PREFIX + batch.id.removeprefix(BATCH_PREFIX)


def batch_id_of(shown_id: str) -> str:
    """Return the id of a batch by the id that Anthropic's clients use."""
    return BATCH_PREFIX + shown_id.removeprefix(MESSAGE_BATCH_PREFIX)
