"""Ends an answer that its caller's limit or its hold does not cover any more.

Every answer ends if the provider ignores the caller's output limit. A covered answer is also
followed event by event: its hold is kept above the cost, or the answer ends while it is paid for.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from tollgate.core.errors import AccessError, LedgerError
from tollgate.core.events import (
    Chosen,
    Ended,
    Grouped,
    PartDelta,
    PartDeltas,
    PartEnd,
    PartStart,
    Started,
)
from tollgate.engine.meter import Meter
from tollgate.stores.ports.base import Ledger

# The bytes of delivered text between two calculations of the cost, each of which makes a whole
# bill.
_CHECK_EVERY_BYTES: Final = 256


class Coverage:
    """The cover of one generation; it notes every event that the caller gets."""

    def __init__(self, ledger: Ledger, meter: Meter, *, choices: int, output_limited: bool) -> None:
        self._ledger = ledger
        self._meter = meter
        self._output_limited = output_limited
        # True if the answer may have to end between two events of one read.
        self.watches = meter.hold.covered
        self._step_nano_usd = max(1, meter.hold.wallet_nano_usd)
        self._unseen_bytes = 0
        # The open parts of each choice that has started and not ended.
        self._open: dict[int, list[int]] = {}
        self._not_started = set(range(choices))

    def cut(self, events: Iterable[Chosen]) -> Iterator[Sequence[Chosen]]:
        """Yield the events of one read in pieces; each piece must be sent before `extend` runs.

        An event is taken from `events` only once the piece before it has been used.
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

    async def extend(self) -> bool:
        """Return whether the generation may go on after a piece; top up its hold if needed.

        The cost of delivered text is an estimate, so the hold of an answer without an output limit
        grows once half of it is used. With a limit, the hold covers all output from the beginning,
        and grows only for a prompt that is dearer than its bound.
        """
        if self._meter.passes_limit:
            return False
        if not self.watches or self._unseen_bytes < _CHECK_EVERY_BYTES:
            return True
        self._unseen_bytes = 0
        cost = self._meter.cost_nano_usd()
        return await self._renew(cost if self._output_limited else 2 * cost)

    def note(self, event: Grouped, choice: int) -> None:
        """Note an event that the caller gets."""
        match event:
            case PartDeltas():
                # Only answers that nothing watches have groups.
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
        """Return whether a round may begin whose prompt is this much longer than the first."""
        if not self.watches or self._output_limited:
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
        """Yield the events that end each choice, as if its output limit were reached."""
        for choice in sorted(self._not_started):
            yield choice, Started()
            yield choice, Ended(finish="length")
        for choice, parts in self._open.items():
            for index in parts:
                yield choice, PartEnd(index=index)
            yield choice, Ended(finish="length")
