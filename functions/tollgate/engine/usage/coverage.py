"""Extends a covered hold as a generation's cost grows, or ends the generation in time.

Only a generation without an output limit needs this: with a limit, the hold covers the highest
possible cost.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from tollgate.core.errors import AccessError, LedgerError
from tollgate.core.events import (
    Chosen,
    ChosenGroup,
    Ended,
    PartDelta,
    PartEnd,
    PartStart,
    Started,
    StreamEvent,
    ungroup,
)
from tollgate.engine.meter import Meter
from tollgate.engine.replies.sink import EventSink
from tollgate.stores.ports.base import Ledger

# Bytes of delivered text between two calculations of the cost, each of which computes a whole bill.
_CHECK_EVERY_BYTES: Final = 256


class Coverage:
    """Cover of one generation; every event for the caller passes through `cut`."""

    def __init__(self, ledger: Ledger, meter: Meter, *, output_limited: bool) -> None:
        self._ledger = ledger
        self._meter = meter
        # True if the held money may run out, in which case the answer may end between two events.
        self.watches = meter.hold.covered and not output_limited
        self._step_nano_usd = max(1, meter.hold.wallet_nano_usd)
        self._unseen_bytes = 0
        self._open: dict[int, list[int]] = {}

    def cut(self, events: Iterable[Chosen]) -> Iterator[Sequence[Chosen]]:
        """Yield events in pieces, taken only as needed; send each piece, then call `extend`."""
        piece: list[Chosen] = []
        if not self.watches:
            piece += events
        else:
            for choice, event in events:
                piece.append((choice, event))
                self._note(event, choice)
                if self._unseen_bytes >= _CHECK_EVERY_BYTES:
                    yield piece
                    piece = []
        if piece:
            yield piece

    async def extend(self) -> bool:
        """Extend the hold once half of it is used; return False if the generation must end."""
        if self._unseen_bytes < _CHECK_EVERY_BYTES:
            return True
        self._unseen_bytes = 0
        return await self._renew(2 * self._meter.cost_nano_usd())

    def _note(self, event: StreamEvent, choice: int) -> None:
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
                pass

    async def extend_to_round(self, prompt_growth_tokens: int) -> bool:
        """Extend the hold for the next round's prompt; return False if no round may begin."""
        if not self.watches:
            return True
        prompt_nano_usd = self._meter.prompt_cost_nano_usd(prompt_growth_tokens)
        return await self._renew(2 * self._meter.cost_nano_usd() + prompt_nano_usd)

    async def _renew(self, needed_nano_usd: int) -> bool:
        """Extend the hold if it is too small; return False if that fails."""
        hold = self._meter.hold
        missing = needed_nano_usd - hold.wallet_nano_usd
        if missing <= 0:
            return True
        step = max(self._step_nano_usd, missing)
        try:
            self._meter.replace_hold(await self._ledger.top_up(hold, step))
        except (LedgerError, AccessError):
            return False
        return True

    def end_events(self) -> Iterator[Chosen]:
        """Yield the events that end each open choice with `length`."""
        for choice, parts in self._open.items():
            for index in parts:
                yield choice, PartEnd(index=index)
            yield choice, Ended(finish="length")


async def deliver_metered(
    events: Sequence[ChosenGroup], meter: Meter, sink: EventSink, coverage: Coverage
) -> bool:
    """Send the events of one read through the meter; return False if the answer must end."""
    if coverage.watches:
        return await deliver(metered(ungroup(events), meter), sink, coverage)
    # Most answers have enough money held: nothing can end them between two events.
    for choice, event in events:
        meter.observe(event, choice)
    if events:
        await sink.send(events)
    return True


async def deliver(events: Iterable[Chosen], sink: EventSink, coverage: Coverage) -> bool:
    """Send events one by one; return False, without taking more, if the answer must end."""
    for piece in coverage.cut(events):
        await sink.send(piece)
        if not await coverage.extend():
            return False
    return True


def metered(events: Iterable[Chosen], meter: Meter) -> Iterator[Chosen]:
    """Yield the events, and meter each of them first."""
    for chosen in events:
        choice, event = chosen
        meter.observe(event, choice)
        yield chosen


async def end_uncovered(sink: EventSink, coverage: Coverage, meter: Meter) -> None:
    """End an answer that the hold no longer covers, as if its output limit were reached."""
    await sink.send([*metered(coverage.end_events(), meter)])
