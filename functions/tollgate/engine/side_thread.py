"""Runs long computations of requests outside the event loop, and fairly among workspaces."""

import asyncio
import concurrent.futures
from collections.abc import Callable
from typing import Final, TypeVar
from weakref import WeakValueDictionary

from msgspec import Struct

# Size of a body or of stored content from which its computations leave the event loop. Switching
# threads costs 0.1 ms, and processing 64 KB takes at most 5 ms.
LARGE_BYTES: Final = 64 * 1024

_Result = TypeVar("_Result")


class SideThread:
    """A single thread, because several would compete with the event loop for the interpreter.

    Each workspace has at most one computation in the queue, so a workspace's wait grows with the
    number of busy workspaces and not with the number of another workspace's requests.
    """

    def __init__(self) -> None:
        self._thread: concurrent.futures.ThreadPoolExecutor | None = None
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def run(
        self, workspace_id: str, work: Callable[[], _Result], *, is_large: bool = True
    ) -> _Result:
        """Return the result of a computation, which must not use the event loop.

        A computation that is not large runs immediately, in the event loop's thread. A cancelled
        caller waits for the computation to end, so that abandoned computations do not fill the
        queue.
        """
        if not is_large:
            return work()
        if self._thread is None:
            # Created at first use, because this imports the executor module.
            self._thread = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="side")
        turn = self._turns.get(workspace_id)
        if turn is None:
            turn = self._turns[workspace_id] = asyncio.Lock()
        async with turn:
            computing = asyncio.get_running_loop().run_in_executor(self._thread, work)
            try:
                return await asyncio.shield(computing)
            except asyncio.CancelledError:
                await asyncio.wait([computing])
                raise
            finally:
                # The traceback of a failure refers to this frame, and this frame refers to the
                # failure. Without `del`, this cycle would keep a large request in memory until the
                # next garbage collection.
                del computing, work


class Computations(Struct, frozen=True):
    """Runs the computations of one request, in the side thread if the request is large."""

    side: SideThread
    workspace_id: str
    is_large: bool

    async def run(self, work: Callable[[], _Result]) -> _Result:
        """Run a computation in the same way as `SideThread.run`, and return its result."""
        return await self.side.run(self.workspace_id, work, is_large=self.is_large)
