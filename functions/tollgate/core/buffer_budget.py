"""The bytes that requests buffer: a budget for each request, within one for the process.

Bytes are taken from the budget before they are buffered: fetched media and pages, documents,
replies of providers, and answers that are folded. Bytes count as they arrive. Content is joined,
decoded and encoded again, so a buffered byte needs three or four bytes of memory in an answer, and
up to ten in media, which have a further limit (decision 230).
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from tollgate.core.errors import BufferFull, ErrorCode

# Memory of a function for each byte that its request may buffer.
MEMORY_PER_BUFFERED_BYTE: Final = 8
REQUEST_BYTES_MAX: Final = 64 * 1024 * 1024
PROCESS_BYTES_MAX: Final = 512 * 1024 * 1024
_RETRY_AFTER_S: Final = 1.0


class ProcessBuffers:
    """The budget of a process. A workspace may take no more than all workspaces leave free.

    A single busy workspace thus gets half, two get a third each, and the next workspace always
    finds as much as each of the busy ones has.
    """

    def __init__(
        self, bytes_max: int = PROCESS_BYTES_MAX, *, request_bytes_max: int = REQUEST_BYTES_MAX
    ) -> None:
        self.request_bytes_max = request_bytes_max
        # A single request must be able to use its whole budget.
        self._free = max(bytes_max, 2 * request_bytes_max)
        self._taken: Counter[str] = Counter()

    @contextmanager
    def open(self, workspace_id: str) -> Iterator[None]:
        """Give the current task a budget, which the tasks that it creates share."""
        budget = _RequestBuffers(self, workspace_id)
        token = _CURRENT.set(budget)
        try:
            yield
        finally:
            _CURRENT.reset(token)
            budget.close()

    @property
    def size(self) -> int:
        """Number of bytes that all requests buffer now."""
        return self._taken.total()

    def take(self, workspace_id: str, size: int) -> None:
        """Take bytes for a workspace; raise BufferFull if that is more than its share."""
        if self._taken[workspace_id] + size > self._free - size:
            raise BufferFull(
                ErrorCode.SERVICE_UNAVAILABLE,
                "The requests of this workspace buffer as many bytes as the gateway can spare now.",
                retry_after_s=_RETRY_AFTER_S,
            )
        self._free -= size
        self._taken[workspace_id] += size

    def release(self, workspace_id: str, size: int) -> None:
        """Return bytes that were taken."""
        self._free += size
        self._taken[workspace_id] -= size
        if not self._taken[workspace_id]:
            del self._taken[workspace_id]


class _RequestBuffers:
    """The budget of one request."""

    def __init__(self, process: ProcessBuffers, workspace_id: str) -> None:
        self._process = process
        self._workspace_id = workspace_id
        self._bytes_max = process.request_bytes_max
        self._taken = 0

    def take(self, size: int) -> None:
        if self._taken + size > self._bytes_max:
            raise BufferFull(
                ErrorCode.ANSWER_TOO_LARGE,
                f"The request and its answer need more than {self._bytes_max:,} bytes of buffers.",
            )
        self._process.take(self._workspace_id, size)
        self._taken += size

    def release(self, size: int) -> None:
        """Return bytes; a call after `close` does nothing."""
        size = min(size, self._taken)
        self._process.release(self._workspace_id, size)
        self._taken -= size

    def close(self) -> None:
        """Return all bytes that were not released before."""
        self.release(self._taken)


# The budget of the current request, which a task inherits from the task that created it.
_CURRENT: Final[ContextVar[_RequestBuffers | None]] = ContextVar("tollgate.buffers", default=None)


def take(size: int) -> None:
    """Take bytes that are buffered until the request ends; raise BufferFull.

    Outside of requests, for example where a stored answer is replayed, nothing is counted.
    """
    budget = _CURRENT.get()
    if budget is not None:
        budget.take(size)


class Buffered:
    """Bytes taken from the request's budget that may be released before the request ends.

    `bytes_max` limits these bytes in addition.
    """

    __slots__ = ("_budget", "_bytes_max", "_size")

    def __init__(self, bytes_max: int | None = None) -> None:
        self._budget = _CURRENT.get()
        self._bytes_max = bytes_max
        self._size = 0

    def take(self, size: int) -> None:
        """Take bytes; raise BufferFull."""
        if self._bytes_max is not None and self._size + size > self._bytes_max:
            raise BufferFull(
                ErrorCode.ANSWER_TOO_LARGE, f"More than {self._bytes_max:,} bytes are needed."
            )
        if self._budget is not None:
            self._budget.take(size)
        self._size += size

    def release(self) -> None:
        """Release all bytes."""
        size, self._size = self._size, 0
        if self._budget is not None and size:
            self._budget.release(size)
