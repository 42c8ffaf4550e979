"""Releases what a refused hold has left on its sides: at once, and again until it is gone.

The write of a hold may be applied after its release, and an overloaded store refuses releases too.
Until the sweeper finds such a hold after a quarter of an hour, it would take room of a limit.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from msgspec import Struct

from tollgate.aws.aws_json import ATTEMPTS_MAX
from tollgate.core.clock import Clock
from tollgate.stores.aws.holds import outcome_of

_LOGGER: Final = logging.getLogger(__name__)

# The first pause is longer than a call with all its attempts, after which no write can arrive.
_PAUSES_S: Final = (10.0, 20.0, 30.0)
RELEASED_WITHIN_S: Final = sum(_PAUSES_S)
# The most holds that are released later; the sweeper finds those beyond.
_WAITING_MAX: Final = 1_024

_Write = Callable[..., Awaitable[None]]


class Release(Struct, frozen=True, kw_only=True):
    """The release of one side of a hold; a repetition is safe."""

    write: _Write
    """Settles the side at cost 0; takes `attempts_max`."""
    is_unsure: bool
    """True if the side's hold had no reply, so that it may still be applied."""


class Releases:
    """The releases of one process that are repeated."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiting: set[asyncio.Task[None]] = set()

    async def release(self, hold_id: str, sides: Sequence[Release]) -> None:
        """Release all sides; repeat later what failed, and what may not have been there yet.

        After a lost reply there is one attempt, because the caller is waiting.
        """
        writing = (side.write(attempts_max=1 if side.is_unsure else ATTEMPTS_MAX) for side in sides)
        outcomes = await asyncio.gather(*map(outcome_of, writing))
        left = [
            side.write
            for side, outcome in zip(sides, outcomes, strict=True)
            if outcome is not None or side.is_unsure
        ]
        if left and len(self._waiting) < _WAITING_MAX:
            task = asyncio.create_task(self._repeat(hold_id, left))
            self._waiting.add(task)
            task.add_done_callback(self._waiting.discard)

    async def _repeat(self, hold_id: str, left: Sequence[_Write]) -> None:
        for pause_s in _PAUSES_S:
            await self._clock.sleep(pause_s)
            outcomes = await asyncio.gather(*(outcome_of(write()) for write in left))
            left = [
                write for write, outcome in zip(left, outcomes, strict=True) if outcome is not None
            ]
            if not left:
                return
        _LOGGER.warning("hold %s is left to the sweeper", hold_id)
