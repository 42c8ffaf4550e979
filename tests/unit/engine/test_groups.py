"""Texts of one part that came together are one event on the way, and several for the caller.

Keeps C35, C37.
"""

from collections.abc import AsyncIterator, Iterable, Sequence
from itertools import pairwise

from hypothesis import given

from tests.strategies import event_streams
from tests.unit.ingress.samples import chat_completions
from tests.unit.routing.catalogs import catalog, plan_of, principal
from tollgate.core.content import Text, ToolCall
from tollgate.core.events import (
    Ended,
    Grouped,
    PartDelta,
    PartDeltas,
    PartEnd,
    PartStart,
    Started,
    StreamEvent,
    ungroup,
)
from tollgate.core.response import Fold
from tollgate.engine.choices import decode_frames
from tollgate.engine.usage.stream_usage import StreamUsage
from tollgate.providers.ports.base import Frame

BODY = b'{"model": "acme/large", "messages": [{"role": "user", "content": "Hello"}]}'
TEXT = Text(text="")
CALL = ToolCall(id="c", name="f", arguments="")


class Saying:
    """A decoder of one frame, which means these events."""

    def __init__(self, events: Sequence[StreamEvent]) -> None:
        self._events = events

    def feed(self, _: Frame) -> Iterable[StreamEvent]:
        return self._events

    def end(self) -> Iterable[StreamEvent]:
        return ()


async def one_read() -> AsyncIterator[Sequence[Frame]]:
    yield [Frame(data=b"")]


async def grouped(events: Sequence[StreamEvent]) -> list[Grouped]:
    """Events of one read, as they leave the decoders."""
    request = chat_completions().parse(BODY).request
    attempt = plan_of(catalog(), request, principal=principal()).attempts[0]
    reads = decode_frames(one_read(), None, [Saying(events)], attempt)
    return [event async for read in reads for _, event in read]


@given(events=event_streams())
async def test_any_stream_is_the_same_in_groups(events: list[StreamEvent]) -> None:
    together = await grouped(events)
    assert [event for _, event in ungroup((0, each) for each in together)] == events
    folds, usages = (Fold(), Fold()), (StreamUsage(1), StreamUsage(1))
    for fold, usage, course in zip(folds, usages, (events, together), strict=True):
        for event in course:
            fold.accept(event)
            usage.observe(event)
    assert folds[0].response() == folds[1].response()
    assert vars(usages[0]) == vars(usages[1])


@given(events=event_streams())
async def test_no_delta_follows_one_of_its_part(events: list[StreamEvent]) -> None:
    together = await grouped(events)
    deltas = (PartDelta, PartDeltas)
    for before, after in pairwise(together):
        if isinstance(before, deltas) and isinstance(after, deltas):
            assert before.index != after.index
    assert all(len(each.texts) > 1 for each in together if isinstance(each, PartDeltas))


async def test_texts_of_two_open_parts_stay_apart() -> None:
    begun = [Started(), PartStart(index=0, part=TEXT), PartStart(index=1, part=CALL)]
    deltas = [PartDelta(index=index, text=text) for index, text in ((0, "a"), (1, "b"), (1, "c"))]
    ended = [PartEnd(index=0), PartEnd(index=1), Ended(finish="stop")]
    assert await grouped([*begun, *deltas, *ended]) == [
        *begun,
        PartDelta(index=0, text="a"),
        PartDeltas(index=1, texts=["b", "c"]),
        *ended,
    ]
