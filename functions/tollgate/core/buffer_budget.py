"""Budgets for buffered bytes: one per request, within a budget for the whole process.

Fetched media and pages, documents, providers' replies and folded answers take their bytes from the
budget before they are buffered. Bytes are counted in the form in which they arrive. Content is then
joined, decoded and encoded, so each buffered byte of an answer needs three or four bytes of memory.
A byte of media needs up to ten, so media have an additional limit (decision 230).
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from tollgate.core.errors import BufferFull, ErrorCode

# Bytes of a function's memory per byte that a request may buffer.
MEMORY_PER_BUFFERED_BYTE: Final = 8
REQUEST_BYTES_MAX: Final = 64 * 1024 * 1024
PROCESS_BYTES_MAX: Final = 512 * 1024 * 1024
_RETRY_AFTER_S: Final = 1.0


class ProcessBuffers:
    """The budget of a process. A workspace may hold at most as many bytes as are still free.

    So a single busy workspace gets half of the budget, and two get a third each. The free part for
    a newly arriving workspace is always as large as the part of each busy workspace.
    """

    def __init__(
        self, bytes_max: int = PROCESS_BYTES_MAX, *, request_bytes_max: int = REQUEST_BYTES_MAX
    ) -> None:
        self.request_bytes_max = request_bytes_max
        # A single workspace gets half of the budget, which must be enough for the whole budget of
        # one request.
        self._free = max(bytes_max, 2 * request_bytes_max)
        self._taken: Counter[str] = Counter()

    @contextmanager
    def open(self, workspace_id: str) -> Iterator[None]:
        """Open a request's budget for the current task and the tasks that it creates."""
        budget = _RequestBuffers(self, workspace_id)
        token = _CURRENT.set(budget)
        try:
            yield
        finally:
            _CURRENT.reset(token)
            budget.close()

    @property
    def size(self) -> int:
        """Number of bytes that all requests currently buffer."""
        return self._taken.total()

    def take(self, workspace_id: str, size: int) -> None:
        """Take bytes for a workspace; raise BufferFull if its share is used up."""
        if self._taken[workspace_id] + size > self._free - size:
            raise BufferFull(
                ErrorCode.SERVICE_UNAVAILABLE,
                "The requests of this workspace use all of the memory that it may use at present.",
                retry_after_s=_RETRY_AFTER_S,
            )
        self._free -= size
        self._taken[workspace_id] += size

    def release(self, workspace_id: str, size: int) -> None:
        """Return taken bytes to the budget."""
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
                f"The request and its answer are larger than {self._bytes_max:,} bytes in total.",
            )
        self._process.take(self._workspace_id, size)
        self._taken += size

    def release(self, size: int) -> None:
        """Return bytes to the budget; do nothing after `close`."""
        size = min(size, self._taken)
        self._process.release(self._workspace_id, size)
        self._taken -= size

    def close(self) -> None:
        """Return all remaining bytes to the budget."""
        self.release(self._taken)


# The budget of the current request, which a new task inherits from the task that creates it.
_CURRENT: Final[ContextVar[_RequestBuffers | None]] = ContextVar("tollgate.buffers", default=None)


def take(size: int) -> None:
    """Take bytes until the request ends; raise BufferFull if the budget is exhausted.

    Nothing is counted outside a request, such as while a stored answer is replayed.
    """
    budget = _CURRENT.get()
    if budget is not None:
        budget.take(size)


class Buffered:
    """Bytes of the request's budget that may be released before the request ends.

    `bytes_max` is an additional limit on these bytes.
    """

    __slots__ = ("_budget", "_bytes_max", "_size")

    def __init__(self, bytes_max: int | None = None) -> None:
        self._budget = _CURRENT.get()
        self._bytes_max = bytes_max
        self._size = 0

    def take(self, size: int) -> None:
        """Take bytes; raise BufferFull if a limit is exceeded."""
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
