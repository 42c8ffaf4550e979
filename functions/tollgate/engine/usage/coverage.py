"""Ends an answer that exceeds its caller's limit, or that its hold no longer covers.

Any answer is cut off if the provider ignores the caller's output limit. With `covered` admission,
the hold is also topped up as the cost grows.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from tollgate.core.clock import Clock
from tollgate.core.errors import AccessError, LedgerError
from tollgate.core.events import (
    Chosen,
    ChosenGroup,
    Ended,
    Grouped,
    PartDelta,
    PartDeltas,
    PartEnd,
    PartStart,
    Started,
    ungroup,
)
from tollgate.engine.meter import Meter
from tollgate.engine.replies.sink import EventSink
from tollgate.stores.ports.base import Ledger

# Bytes of delivered text between two calculations of the cost, because each one computes a whole
# bill.
_CHECK_EVERY_BYTES: Final = 256


class Coverage:
    """Watches whether the hold still covers a generation; `note` gets every event for
    the caller.
    """

    def __init__(
        self,
        ledger: Ledger,
        meter: Meter,
        *,
        choices: int,
        output_limited: bool,
        ceiling_nano_usd: int | None = None,
        clock: Clock,
    ) -> None:
        self._clock = clock
        self.delivery_s = 0.0
        """Seconds until the caller had taken the events so far."""
        self._ledger = ledger
        self._meter = meter
        # A request with a ceiling already holds the cost of the longest answer.
        self._output_limited = output_limited or ceiling_nano_usd is not None
        self._ceiling_nano_usd = ceiling_nano_usd
        # True if the held money may run out, so that the answer may end between two events.
        self.watches = meter.hold.covered or ceiling_nano_usd is not None
        self._step_nano_usd = max(1, meter.hold.wallet_nano_usd)
        self._unseen_bytes = 0
        # The open parts of each choice that has started but not ended.
        self._open: dict[int, list[int]] = {}
        self._not_started = set(range(choices))

    def cut(self, events: Iterable[Chosen]) -> Iterator[Sequence[Chosen]]:
        """Yield events in pieces, taking each only as needed; send each piece, then
        call `extend`.
        """
        piece: list[Chosen] = []
        for choice, event in events:
            piece.append((choice, event))
            self.note(event, choice)
            if self.watches and self._unseen_bytes >= _CHECK_EVERY_BYTES:
                yield piece
                piece = []
        if piece:
            yield piece

    async def send(self, events: Sequence[ChosenGroup], sink: EventSink) -> None:
        """Send events, and measure the time until the caller has taken them."""
        begun_s = self._clock.monotonic_s()
        await sink.send(events)
        self.delivery_s += self._clock.monotonic_s() - begun_s

    async def extend(self) -> bool:
        """Extend the hold if needed; return False if the generation must end.

        Without an output limit, the hold is topped up once half of it is used, because the cost of
        delivered text is only an estimate. With a limit, the hold covers the output from the
        beginning and is topped up only for a prompt that costs more than its bound.
        """
        if self._meter.passes_limit:
            return False
        if not self.watches or self._unseen_bytes < _CHECK_EVERY_BYTES:
            return True
        self._unseen_bytes = 0
        cost = self._meter.cost_nano_usd()
        if self._ceiling_nano_usd is not None and cost > self._ceiling_nano_usd:
            return False
        if not self._meter.hold.covered:
            return True
        return await self._renew(cost if self._output_limited else 2 * cost)

    def note(self, event: Grouped, choice: int) -> None:
        """Note an event that the caller gets."""
        match event:
            case PartDeltas():
                # Only answers that need no watching contain groups.
                pass
            case PartDelta(text=text):
                self._unseen_bytes += len(text)
            case Started():
                self._open[choice] = []
                self._not_started.discard(choice)
            case PartStart(index=index):
                self._open[choice].append(index)
            case PartEnd(index=index):
                self._open[choice].remove(index)
            case Ended():
                del self._open[choice]
            case _:
                pass

    async def extend_to_round(self, prompt_growth_tokens: int) -> bool:
        """Extend the hold for the next round's prompt; return False if no round may begin."""
        if not self._meter.hold.covered or self._output_limited:
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
        """Yield the events that end each choice with `length`, including choices that have not
        started.
        """
        for choice in sorted(self._not_started):
            yield choice, Started()
            yield choice, Ended(finish="length")
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
    # For most answers enough money is held, so nothing can end them between two events of a read.
    for choice, event in events:
        meter.observe(event, choice)
        coverage.note(event, choice)
    if events:
        await coverage.send(events, sink)
    return not meter.passes_limit


async def deliver(events: Iterable[Chosen], sink: EventSink, coverage: Coverage) -> bool:
    """Send events one by one; stop and return False if the answer must end."""
    for piece in coverage.cut(events):
        await coverage.send(piece, sink)
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
    """End an answer with `length` because its limit or its hold no longer covers it."""
    await sink.send([*metered(coverage.end_events(), meter)])
