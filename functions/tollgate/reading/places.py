"""Shares the places of a reader among workspaces."""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

PLACES: Final = 4
# Maximum number of places that one workspace has, even if others are free: a reading holds its
# place for up to half a minute, and another workspace's document must not wait for that.
PLACES_OF_A_WORKSPACE: Final = 2


class Places:
    """Places of a reader; a free place goes to the waiting workspace that holds the fewest."""

    def __init__(self) -> None:
        self._taken: Counter[str] = Counter()
        # Ordered by the time at which each workspace began to wait or last got a place.
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    @asynccontextmanager
    async def take(self, workspace_id: str, *, wait_seconds_max: float) -> AsyncIterator[None]:
        """Hold a place; raise TimeoutError if none becomes free in time."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(workspace_id, deque()).append(turn)
        self._give()
        try:
            async with asyncio.timeout(wait_seconds_max):
                await turn
            yield
        finally:
            if turn.done() and not turn.cancelled():
                self._taken[workspace_id] -= 1
                if not self._taken[workspace_id]:
                    del self._taken[workspace_id]
            else:
                self._forget(workspace_id, turn)
            self._give()

    def _give(self) -> None:
        """Give each free place to the next workspace."""
        while self._taken.total() < PLACES:
            entitled = [id_ for id_ in self._waiting if self._taken[id_] < PLACES_OF_A_WORKSPACE]
            if not entitled:
                return
            workspace_id = min(entitled, key=self._taken.__getitem__)
            turns = self._waiting.pop(workspace_id)
            turn = turns.popleft()
            if turns:
                self._waiting[workspace_id] = turns
            if not turn.done():
                self._taken[workspace_id] += 1
                turn.set_result(None)

    def _forget(self, workspace_id: str, turn: asyncio.Future[None]) -> None:
        """Remove a turn that is no longer awaited."""
        turns = self._waiting.get(workspace_id)
        if turns is None or turn not in turns:
            return
        turns.remove(turn)
        if not turns:
            del self._waiting[workspace_id]
