"""Writes the sides of a hold in parallel, so that one failure does not cancel other writes."""

import asyncio
import logging
from collections.abc import Awaitable
from typing import Final, TypeVar

from tollgate.aws.failures import StoreUnavailable
from tollgate.stores.aws.holds import HoldUnknown

_LOGGER: Final = logging.getLogger(__name__)
_Outcome = TypeVar("_Outcome")


async def outcome_of(holding: Awaitable[_Outcome]) -> _Outcome | HoldUnknown | StoreUnavailable:
    """Return the result for a side, or the failure as a value."""
    try:
        return await holding
    except (HoldUnknown, StoreUnavailable) as failed:
        return failed


async def settle_all(hold_id: str, settling: list[Awaitable[None]]) -> None:
    """Settle sides in parallel; log unreachable sides, which are left to the sweeper."""
    for outcome in await asyncio.gather(*map(outcome_of, settling)):
        if outcome is not None:
            _LOGGER.warning("hold %s is left to the sweeper: %s", hold_id, outcome)
