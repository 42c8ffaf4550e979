"""Runs long computations of requests next to the event loop, fairly by workspace."""

import asyncio
import concurrent.futures
from collections.abc import Callable
from typing import Final, TypeVar
from weakref import WeakValueDictionary

from msgspec import Struct

# Size of a body or of stored content from which its computations leave the event loop. A change of
# threads costs 0.1 ms, and 64 KB take at most 5 ms.
LARGE_BYTES: Final = 64 * 1024

_Result = TypeVar("_Result")


class SideThread:
    """One thread, because several would compete with the event loop for the interpreter.

    Each workspace has at most one computation in the queue, so that the wait of another workspace
    grows with the number of busy workspaces, and not with the number of one workspace's requests.
    """

    def __init__(self) -> None:
        self._thread: concurrent.futures.ThreadPoolExecutor | None = None
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def run(
        self, workspace_id: str, work: Callable[[], _Result], *, is_large: bool = True
    ) -> _Result:
        """Return the result of a computation, which must not use the event loop.

        A computation that is not large is done at once, in the thread of the event loop.
        A cancelled caller waits for the end of the computation, so that abandoned computations do
        not fill the queue.
        """
        if not is_large:
            return work()
        if self._thread is None:
            # Created at the first use, which imports the module of executors.
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
                # The traceback of a failure holds this frame, which would hold the failure, and a
                # large request with it, until a garbage collection.
                del computing, work


class Computations(Struct, frozen=True):
    """The computations of one request, which leave the event loop if the request is large."""

    side: SideThread
    workspace_id: str
    is_large: bool

    async def run(self, work: Callable[[], _Result]) -> _Result:
        """Return the result of a computation, as `SideThread.run` does."""
        return await self.side.run(self.workspace_id, work, is_large=self.is_large)
