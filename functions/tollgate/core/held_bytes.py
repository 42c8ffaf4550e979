"""The bytes that requests hold in memory: a budget for each request, within one for the process.

A holder takes bytes before it keeps them: fetched media and pages, documents, replies of providers,
and answers that are folded. The budget counts bytes as they arrive, and a held byte needs up to
eight bytes of memory, because content is joined, decoded and encoded again.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from tollgate.core.errors import BytesExceeded, ErrorCode

# What a held byte needs at most: content is joined, decoded and encoded again.
MEMORY_PER_HELD_BYTE: Final = 8
REQUEST_BYTES_MAX: Final = 64 * 1024 * 1024
PROCESS_BYTES_MAX: Final = 512 * 1024 * 1024
# What an event or a short text needs in addition to its bytes; a string of one token has 64 bytes.
PIECE_BYTES: Final = 16
_RETRY_AFTER_S: Final = 1.0


class ProcessBytes:
    """The budget of a process. A workspace may hold no more than the others leave free.

    A single busy workspace thus gets half, two get a third each, and a further workspace always
    finds as much as each of the busy ones.
    """

    def __init__(
        self, bytes_max: int = PROCESS_BYTES_MAX, *, request_bytes_max: int = REQUEST_BYTES_MAX
    ) -> None:
        self.request_bytes_max = request_bytes_max
        # A single request must be able to use its whole budget.
        self._free = max(bytes_max, 2 * request_bytes_max)
        self._held: Counter[str] = Counter()

    @contextmanager
    def open(self, workspace_id: str) -> Iterator[None]:
        """Give the current task a budget, which the tasks that it creates share."""
        budget = _RequestBytes(self, workspace_id)
        token = _CURRENT.set(budget)
        try:
            yield
        finally:
            _CURRENT.reset(token)
            budget.close()

    @property
    def held(self) -> int:
        """Bytes that all requests hold now."""
        return self._held.total()

    def take(self, workspace_id: str, size: int) -> None:
        """Take bytes for a workspace; raise BytesExceeded if that is more than its share."""
        if self._held[workspace_id] + size > self._free - size:
            raise BytesExceeded(
                ErrorCode.SERVICE_UNAVAILABLE,
                "The requests of this workspace hold as many bytes as the gateway can spare now.",
                retry_after_s=_RETRY_AFTER_S,
            )
        self._free -= size
        self._held[workspace_id] += size

    def release(self, workspace_id: str, size: int) -> None:
        """Return bytes that were taken."""
        self._free += size
        self._held[workspace_id] -= size
        if not self._held[workspace_id]:
            del self._held[workspace_id]


class _RequestBytes:
    """The budget of one request."""

    def __init__(self, process: ProcessBytes, workspace_id: str) -> None:
        self._process = process
        self._workspace_id = workspace_id
        self._taken = 0
        self.bytes_max = process.request_bytes_max

    def take(self, size: int) -> None:
        if self._taken + size > self.bytes_max:
            raise BytesExceeded(
                ErrorCode.ANSWER_TOO_LARGE,
                f"The request and its answer hold more than {self.bytes_max:,} bytes.",
            )
        self._process.take(self._workspace_id, size)
        self._taken += size

    def release(self, size: int) -> None:
        size = min(size, self._taken)
        self._process.release(self._workspace_id, size)
        self._taken -= size

    def close(self) -> None:
        """Return everything that holders have not released."""
        self.release(self._taken)


# The budget of the current request, which a task inherits from the task that created it.
_CURRENT: Final[ContextVar[_RequestBytes | None]] = ContextVar("tollgate.held_bytes", default=None)


def take(size: int) -> None:
    """Take bytes that are held until the request ends; raise BytesExceeded.

    Outside of requests, for example where a stored answer is replayed, nothing is counted.
    """
    budget = _CURRENT.get()
    if budget is not None:
        budget.take(size)


class HeldBytes:
    """Bytes that one holder has taken from the request's budget, and may release earlier.

    `bytes_max` limits this holder in addition.
    """

    __slots__ = ("_budget", "_bytes_max", "_size")

    def __init__(self, bytes_max: int | None = None) -> None:
        self._budget = _CURRENT.get()
        self._bytes_max = bytes_max
        self._size = 0

    def take(self, size: int) -> None:
        """Take bytes; raise BytesExceeded."""
        if self._bytes_max is not None and self._size + size > self._bytes_max:
            raise BytesExceeded(
                ErrorCode.ANSWER_TOO_LARGE, f"More than {self._bytes_max:,} bytes are held."
            )
        if self._budget is not None:
            self._budget.take(size)
        self._size += size

    def release(self) -> None:
        """Release all bytes of this holder."""
        size, self._size = self._size, 0
        if self._budget is not None and size:
            self._budget.release(size)
