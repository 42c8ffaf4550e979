"""Settles the sides of holds immediately, and again later if the store refused.

An overloaded store may refuse settlements and releases, or apply the write of a hold after its
release. Such a hold would take up part of a limit until the sweeper finds it a quarter of an hour
later.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from msgspec import Struct

from tollgate.aws.aws_json import ATTEMPTS_MAX
from tollgate.aws.failures import StoreUnavailable, repeat_while_refused
from tollgate.core.clock import Clock
from tollgate.core.ids import IdSource
from tollgate.stores.aws.holds import HoldUnknown, outcome_of

_LOGGER: Final = logging.getLogger(__name__)

# The first pause is longer than a call with all its attempts, after which no write can arrive.
_PAUSES_S: Final = (10.0, 20.0, 30.0)
SETTLED_WITHIN_S: Final = sum(_PAUSES_S)
# Maximum number of holds that wait to be settled; the sweeper settles any others.
_WAITING_MAX: Final = 1_024

SideWrite = Callable[..., Awaitable[None]]
"""Settles one side within `attempts_max` attempts; repeated settlements have no effect."""
_Outcome = HoldUnknown | StoreUnavailable | None


class Release(Struct, frozen=True, kw_only=True):
    """The release of one side of an abandoned hold."""

    write: SideWrite
    is_unsure: bool
    """True if there was no reply to the hold's write, so that it may still be applied."""


class Settlements:
    """The settlements of one process, including those to be repeated later."""

    def __init__(self, clock: Clock, ids: IdSource) -> None:
        self._clock = clock
        self._ids = ids
        self._waiting: set[asyncio.Task[None]] = set()

    async def settle(self, hold_id: str, sides: Sequence[SideWrite]) -> None:
        """Settle all sides, waiting while the store throttles; retry failed settlements later."""
        jitter = self._ids.uniform
        writing = (repeat_while_refused(side, self._clock, jitter=jitter) for side in sides)
        outcomes = await asyncio.gather(*map(outcome_of, writing))
        self._repeat_later(hold_id, _refused(sides, outcomes))

    async def release(self, hold_id: str, sides: Sequence[Release]) -> None:
        """Release the hold on every side (wallet, key, levels).

        A release that fails, or whose hold may not have been applied yet, is repeated in the
        background. If the reply to the hold's write was lost, the release is tried only once here,
        because the caller is waiting.
        """
        writing = (side.write(attempts_max=1 if side.is_unsure else ATTEMPTS_MAX) for side in sides)
        outcomes = await asyncio.gather(*map(outcome_of, writing))
        self._repeat_later(
            hold_id,
            [
                side.write
                for side, outcome in zip(sides, outcomes, strict=True)
                if outcome is not None or side.is_unsure
            ],
        )

    def _repeat_later(self, hold_id: str, left: Sequence[SideWrite]) -> None:
        if not left:
            return
        if len(self._waiting) >= _WAITING_MAX:
            _LOGGER.warning("hold %s is left to the sweeper", hold_id)
            return
        _LOGGER.info("hold %s is settled later", hold_id)
        task = asyncio.create_task(self._repeat(hold_id, left))
        self._waiting.add(task)
        task.add_done_callback(self._waiting.discard)

    async def _repeat(self, hold_id: str, left: Sequence[SideWrite]) -> None:
        for pause_s in _PAUSES_S:
            await self._clock.sleep(pause_s)
            outcomes = await asyncio.gather(*(outcome_of(write()) for write in left))
            left = _refused(left, outcomes)
            if not left:
                return
        _LOGGER.warning("hold %s is left to the sweeper", hold_id)


def _refused(sides: Sequence[SideWrite], outcomes: Sequence[_Outcome]) -> list[SideWrite]:
    """Return the sides whose write failed."""
    return [side for side, outcome in zip(sides, outcomes, strict=True) if outcome is not None]
