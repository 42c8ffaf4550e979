"""Batches: files of requests that run later, line by line, while no caller waits."""

from collections.abc import Mapping
from typing import Final, Literal

from msgspec import Struct, field
from typing_extensions import override

from tollgate.core.clock import DAY_S
from tollgate.core.jobs import Job

BATCH_PREFIX: Final = "batch_"
BatchStatus = Literal[
    "validating",
    "failed",
    "in_progress",
    "finalizing",
    "completed",
    "expired",
    "cancelling",
    "cancelled",
]
# The format in which a batch is created and shown, and in which its results are written.
BatchClient = Literal["openai", "anthropic"]
ENDED: Final = frozenset[BatchStatus]({"failed", "completed", "expired", "cancelled"})
# The limits of a file are OpenAI's: https://platform.openai.com/docs/guides/batch (2026-11-27).
BATCH_LINES_MAX: Final = 50_000
FILE_BYTES_MAX: Final = 200_000_000
LINE_BYTES_MAX: Final = 8 * 1024 * 1024
BATCH_WINDOW_S: Final = DAY_S
# Days for which the results of a batch are stored, unless it states another time.
KEPT_DAYS: Final = 30


class LineFault(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A reason for which a file is refused."""

    code: str
    message: str
    line: int | None = None
    """The number of the line, counted from 1; None if the whole file is at fault."""
    param: str | None = None


class StepTry(Struct, frozen=True, omit_defaults=True):
    """One worker's try of a step; the ids of the try's generations derive from its id."""

    id: str
    until_s: float
    """The Unix second from which another worker may try the step."""
    number: int = 1
    """The number of the try among all tries of the step."""
    clean: bool = False
    """True if the worker has ended the try, and has stored the results that it has so far."""


class Submission(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Lines of a piece that are submitted together to a provider's own batches."""

    id: str
    """The id of the hold, and the name of the batch at the provider."""
    provider: str
    at_s: float
    """The Unix second before which the provider cannot have accepted the batch."""
    batch_id: str | None = None
    """The provider's id of the batch; None until the provider has confirmed it."""
    runs_from: int | None = None
    """The number of the first try that runs lines: with the provider's answers, or without a
    `batch_id` by the gateway. None while it is not known what the provider answers.
    """


class Tally(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The results of lines, added up."""

    completed: int = 0
    failed: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_nano_usd: int = 0

    def plus(self, other: "Tally") -> "Tally":
        """Return the sum of two tallies."""
        return Tally(
            completed=self.completed + other.completed,
            failed=self.failed + other.failed,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cost_nano_usd=self.cost_nano_usd + other.cost_nano_usd,
        )


class Batch(Job, frozen=True, kw_only=True, omit_defaults=True):
    """The stored state of a batch; `stores/rules/batches.py` has its transitions."""

    client: BatchClient = "openai"
    endpoint: str
    """The path of the route that every line names."""
    input_file_id: str
    status: BatchStatus = "validating"
    times: Mapping[BatchStatus, int] = field(default_factory=dict)
    """The Unix second at which the batch entered each status."""
    expires_s: int
    """The Unix second from which no further line begins."""
    metadata: Mapping[str, str] = field(default_factory=dict)
    output_expires_s: int = KEPT_DAYS * DAY_S
    """Seconds for which the files with the results are stored."""
    faults: tuple[LineFault, ...] = ()
    lines: int = 0
    """The number of lines; 0 until the file is validated."""
    bound_nano_usd: int = 0
    """The highest cost of all lines together."""
    tally: Tally = Tally()
    not_run: int = 0
    """The number of lines that did not run before the batch was cancelled or expired."""
    output_file_id: str | None = None
    error_file_id: str | None = None
    pieces: int = 0
    """The number of pieces into which the lines are divided."""
    begun: int = 0
    """The number of pieces of which a try has begun; pieces begin in order."""
    done: tuple[int, ...] = ()
    """For each piece that has begun, the number of the try that finished it, or else 0."""
    tries: Mapping[int, tuple[StepTry, ...]] = field(default_factory=dict)
    """The last clean try, and the tries since, of each step that has begun and is not finished."""
    submissions: Mapping[int, Submission] = field(default_factory=dict)
    """The submissions of pieces that have begun and are not finished."""

    @property
    def created_s(self) -> int:
        """The Unix second of the creation."""
        return self.times["validating"]

    @property
    @override
    def is_ended(self) -> bool:
        return self.status in ENDED

    @property
    @override
    def hold_ids(self) -> frozenset[str]:
        return frozenset(submission.id for submission in self.submissions.values())

    @property
    @override
    def event_type(self) -> str:
        return f"batch.{self.status}"

    @property
    @override
    def kept_s(self) -> int:
        return max(self.output_expires_s, KEPT_DAYS * DAY_S)
