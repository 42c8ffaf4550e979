"""Keeps a covered hold ahead of its generation, or ends the generation while it is still paid for.

Only where the caller set no limit on the output: else the hold is for all there can be.
"""

from collections.abc import Iterator
from typing import Final

from tollgate.core.errors import AccessError, LedgerError
from tollgate.core.events import Ended, PartDelta, PartEnd, PartStart, Started, StreamEvent
from tollgate.engine.meter import Meter
from tollgate.stores.base import Ledger

# Between two looks at the cost; a look is a bill.
_LOOKS_EVERY_BYTES: Final = 256


class Coverage:
    """What one generation may still cost; told of every event of the attempt that serves."""

    def __init__(self, ledger: Ledger, meter: Meter, *, output_limited: bool) -> None:
        self._ledger = ledger
        self._meter = meter
        self._watches = meter.hold.covered and not output_limited
        self._step_nano_usd = max(1, meter.hold.wallet_nano_usd)
        self._unseen_bytes = 0
        self._open: dict[int, list[int]] = {}

    async def lasts(self, event: StreamEvent, choice: int) -> bool:
        """Whether the generation may go on after this event, its hold topped up if need be.

        What is delivered is estimated, so more is asked for once half of the hold is used.
        """
        if not self._watches:
            return True
        match event:
            case Started():
                self._open[choice] = []
            case PartStart(index=index):
                self._open[choice].append(index)
            case PartEnd(index=index):
                self._open[choice].remove(index)
            case Ended():
                del self._open[choice]
            case PartDelta(text=text):
                self._unseen_bytes += len(text)
            case _:
                return True
        if self._unseen_bytes < _LOOKS_EVERY_BYTES:
            return True
        self._unseen_bytes = 0
        hold = self._meter.hold
        if 2 * self._meter.cost_nano_usd() <= hold.wallet_nano_usd:
            return True
        try:
            self._meter.topped_up(await self._ledger.top_up(hold, self._step_nano_usd))
        except (LedgerError, AccessError):
            return False
        return True

    def ending(self) -> Iterator[tuple[int, StreamEvent]]:
        """The events that end each choice here, as if its output limit were reached."""
        for choice, parts in self._open.items():
            for index in parts:
                yield choice, PartEnd(index=index)
            yield choice, Ended(finish="length")
