"""The way of the events of one read to the caller: metered one by one, sent together."""

from collections.abc import Iterable, Iterator, Sequence

from tollgate.core.events import Chosen, ChosenGroup, ungroup
from tollgate.engine.meter import Meter
from tollgate.engine.replies.sink import EventSink
from tollgate.engine.usage.coverage import Coverage


async def deliver_metered(
    events: Sequence[ChosenGroup], meter: Meter, sink: EventSink, coverage: Coverage
) -> bool:
    """Send events that came together, once the meter has them; return whether more may follow."""
    if coverage.watches:
        return await deliver(metered(ungroup(events), meter), sink, coverage)
    # Nothing can end the answer between two of them, and most answers are of this kind.
    for choice, event in events:
        meter.observe(event, choice)
    if events:
        await sink.send(events)
    return True


async def deliver(events: Iterable[Chosen], sink: EventSink, coverage: Coverage) -> bool:
    """Send events that came together; return whether the answer may go on after them.

    Events are taken one by one. If the answer may not go on, those behind are never taken.
    """
    for piece in coverage.cut(events):
        await sink.send(piece)
        if not await coverage.extend():
            return False
    return True


def metered(events: Iterable[Chosen], meter: Meter) -> Iterator[Chosen]:
    """Yield events of the attempt that serves, each once the meter has it."""
    for chosen in events:
        choice, event = chosen
        meter.observe(event, choice)
        yield chosen


async def end_uncovered(sink: EventSink, coverage: Coverage, meter: Meter) -> None:
    """End an answer that may not go on, as if its limit of output were reached."""
    await sink.send([*metered(coverage.end_events(), meter)])
