"""Keeps a covered hold above its generation's cost, or ends the generation while it is paid for.

This is needed only if the caller set no output limit: with a limit, the hold covers the most that
the generation can cost.
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

# The bytes of delivered text between two calculations of the cost, each of which makes a whole
# bill.
_CHECK_EVERY_BYTES: Final = 256


class Coverage:
    """The cover of one generation; every event that the caller gets passes through `cut`."""

    def __init__(self, ledger: Ledger, meter: Meter, *, output_limited: bool) -> None:
        self._ledger = ledger
        self._meter = meter
        # True if the answer may have to end between two events.
        self.watches = meter.hold.covered and not output_limited
        self._step_nano_usd = max(1, meter.hold.wallet_nano_usd)
        self._unseen_bytes = 0
        self._open: dict[int, list[int]] = {}

    def cut(self, events: Iterable[Chosen]) -> Iterator[Sequence[Chosen]]:
        """Yield the events of one read in pieces; each piece must be sent before `extend` runs.

        An event is taken from `events` only once the piece before it has been used.
        """
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
        """Return whether the generation may go on after a piece; top up its hold if needed.

        The cost of delivered text is an estimate, so the hold grows once half of it is used.
        """
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
        """Return whether a round may begin whose prompt is this much longer than the first."""
        if not self.watches:
            return True
        prompt_nano_usd = self._meter.prompt_cost_nano_usd(prompt_growth_tokens)
        return await self._renew(2 * self._meter.cost_nano_usd() + prompt_nano_usd)

    async def _renew(self, needed_nano_usd: int) -> bool:
        """Return whether the hold is large enough, after topping it up if needed."""
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
        """Yield the events that end each open choice, as if its output limit were reached."""
        for choice, parts in self._open.items():
            for index in parts:
                yield choice, PartEnd(index=index)
            yield choice, Ended(finish="length")


async def deliver_metered(
    events: Sequence[ChosenGroup], meter: Meter, sink: EventSink, coverage: Coverage
) -> bool:
    """Send the events of one read through the meter; return whether more may follow."""
    if coverage.watches:
        return await deliver(metered(ungroup(events), meter), sink, coverage)
    # Most answers need no watching: nothing can end them between two events.
    for choice, event in events:
        meter.observe(event, choice)
    if events:
        await sink.send(events)
    return True


async def deliver(events: Iterable[Chosen], sink: EventSink, coverage: Coverage) -> bool:
    """Send the events of one read; return whether the answer may go on after them.

    Events are taken one by one. If the answer may not go on, the remaining events are never taken.
    """
    for piece in coverage.cut(events):
        await sink.send(piece)
        if not await coverage.extend():
            return False
    return True


def metered(events: Iterable[Chosen], meter: Meter) -> Iterator[Chosen]:
    """Yield events of the attempt that serves, each after the meter has observed it."""
    for chosen in events:
        choice, event = chosen
        meter.observe(event, choice)
        yield chosen


async def end_uncovered(sink: EventSink, coverage: Coverage, meter: Meter) -> None:
    """End an answer that the hold no longer covers, as if its output limit were reached."""
    await sink.send([*metered(coverage.end_events(), meter)])
