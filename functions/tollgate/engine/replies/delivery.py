"""Delivery of the events of one read to the caller: metered one by one, sent together."""

from collections.abc import Iterable, Iterator, Sequence

from tollgate.core.events import Chosen, ChosenGroup, ungroup
from tollgate.engine.meter import Meter
from tollgate.engine.replies.sink import EventSink
from tollgate.engine.usage.coverage import Coverage


async def deliver_metered(
    events: Sequence[ChosenGroup], meter: Meter, sink: EventSink, coverage: Coverage
) -> bool:
    """Send the events of one read through the meter; return whether more may follow."""
    if coverage.watches:
        return await deliver(metered(ungroup(events), meter), sink, coverage)
    # Most answers need no watching: nothing can end them between two events of one read.
    for choice, event in events:
        meter.observe(event, choice)
        coverage.note(event, choice)
    if events:
        await sink.send(events)
    return not meter.passes_limit


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
    """End an answer that its limit or its hold no longer covers, with the finish `length`."""
    await sink.send([*metered(coverage.end_events(), meter)])
