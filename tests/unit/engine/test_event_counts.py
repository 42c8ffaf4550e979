"""What one more event of a read costs, as counts, which are the same on any machine.

Counted are the calls of functions of the project, with each time that a generator goes on, and the
writes of the reply. Budgets are reviewed when they grow: a call is about 0.1 µs of an event, of
which an answer has hundreds. Seconds are figures of the bench.
"""

import os
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import pytest

from tests.gateways import RecordedReply
from tests.scripted import Answer
from tests.unit.engine.test_every_format import home_of
from tests.upstream.answers import Answer as Said
from tests.upstream.wires import WIRES, Wire

TOP = Path(__file__).parents[3]
PRODUCT = f"{TOP / 'functions' / 'tollgate'}{os.sep}"
FEW, MANY = 100, 300
# By wire: calls for an event of a whole answer, and of a streamed one.
BUDGETS = {"openai_chat": (0, 5), "bedrock": (6, 11)}


class Calls:
    """The calls of functions of the project while this is entered."""

    def __init__(self) -> None:
        self.counted: Counter[str] = Counter()

    def __enter__(self) -> "Calls":
        sys.setprofile(self._take)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _take(self, frame: FrameType, event: str, _argument: object) -> None:
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(PRODUCT):
            self.counted[f"{file.removeprefix(PRODUCT)}:{frame.f_code.co_qualname}"] += 1


def in_one_read(wire: Wire, words: int) -> tuple[Counter[str], Answer]:
    """An answer of so many words whose bytes come in one read, and the calls of its framing."""
    body = wire.body(wire.write(Said(words=("word ",) * words)))
    framing = wire.framing()
    with Calls() as calls:
        frames = tuple(framing.feed(body))
    return calls.counted, [(*frames, *framing.end())]


async def count_calls(wire: Wire, words: int, *, stream: bool) -> tuple[Counter[str], int]:
    """The calls for an answer of so many words, and the writes of its reply."""
    framed, steps = in_one_read(wire, words)
    home = await home_of(wire, steps)
    await home.serve("acme/large", stream=stream)
    reply: RecordedReply = home.reply()
    with Calls() as calls:
        await home.serve("acme/large", stream=stream, reply=reply)
    return framed + calls.counted, len(reply.pieces)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", BUDGETS)
async def test_an_event_more_costs_no_more_calls_than_it_must(name: str, stream: bool) -> None:
    (wire,) = [each for each in WIRES if each.name == name]
    few, writes_of_few = await count_calls(wire, FEW, stream=stream)
    many, writes_of_many = await count_calls(wire, MANY, stream=stream)
    more = {each: (many[each] - few[each]) / (MANY - FEW) for each in many}
    grown = {each: count for each, count in more.items() if count}
    assert sum(grown.values()) <= BUDGETS[name][stream], grown
    assert writes_of_many == writes_of_few
    assert not [each for each in grown if each.startswith(("web/", "engine/generate", "stores/"))]


def test_calls_are_counted() -> None:
    wire: Wire = WIRES[0]
    feed: Callable[[bytes], object] = wire.framing().feed
    with Calls() as calls:
        feed(b"data: {}\n\n")
    assert calls.counted.total() >= 1
