"""Whatever reads an upstream's bytes come in, the caller gets the same frames and the same bill.

The reference is a read for each frame. A cell is one client format behind one codec and framing,
with bytes that are cut at random, all in one read, and broken off in the middle of a read.

Keeps C33, C37, C61.
"""

import itertools
import random
import re
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from tests.cells import cells
from tests.gateways import House, RecordedReply, house
from tests.scripted import Answer, Scripted, answers, frame, says
from tests.unit.engine.client_formats import CLIENT_FORMATS, ClientFormat
from tests.unit.engine.same_conversations import SAME
from tests.unit.engine.test_every_format import asked, framed, home_of
from tests.unit.providers.shared_cases import ANSWERS, cases_of
from tests.unit.routing.catalogs import provider
from tests.upstream.openai_chunks import chunk
from tests.upstream.wires import EVERY_WIRE, Wire
from tollgate.providers.ports.base import Frame

HEARD = [(wire, case) for wire in EVERY_WIRE for case in cases_of(wire)]
every_format = pytest.mark.parametrize(
    "client", CLIENT_FORMATS.values(), ids=lambda client: client.name
)
# What two requests for the same answer differ in.
MADE_ANEW = re.compile(rb'"(created(_at)?|completed_at)":\d+|"episode_id":"[^"]*"')


def in_reads(wire: Wire, events: Sequence[bytes], cuts: Sequence[int]) -> list[tuple[Frame, ...]]:
    """The frames of an upstream whose bytes are cut at these places, those of a read together."""
    body, framing = wire.body(events), wire.framing()
    places = [0, *sorted(cuts), len(body)]
    pieces = [body[start:end] for start, end in itertools.pairwise(places)]
    reads = [tuple(framing.feed(piece)) for piece in pieces if piece]
    return [read for read in (*reads, tuple(framing.end())) if read]


def told(home: House, body: bytes) -> tuple[object, ...]:
    """All that the caller gets and is billed, without what is made anew for each request."""
    record = home.record
    same = MADE_ANEW.sub(b"", body.replace(record.id.encode(), b"ID"))
    # Ids of items are made of the generation's.
    return same, record.outcome, record.error, record.usage, record.lines, record.raw_usage


async def heard(
    wire: Wire, client: ClientFormat, steps: Answer, *, stream: bool
) -> tuple[object, ...]:
    home = await home_of(wire, steps)
    question = SAME["text"][client.name] if wire.text_only else client.question
    reply = await client.ask(home, question, stream=stream)
    return told(home, reply.body)


async def change_nothing(wire: Wire, case: str, client: ClientFormat) -> None:
    """Compare bytes that are cut at random, and all in one read, with a read for each frame."""
    events = wire.write(ANSWERS[case])
    dice = random.Random(f"{wire.name} {case} {client.name}")
    length = len(wire.body(events))
    cuts = [dice.randrange(1, length) for _ in range(dice.randrange(1, 12))]
    for stream in (True, False):
        one_by_one = await heard(wire, client, framed(wire, events), stream=stream)
        for places in ([], cuts):
            reads = in_reads(wire, events, places)
            assert await heard(wire, client, reads, stream=stream) == one_by_one


@pytest.mark.parametrize(
    ("place", "client"), [*enumerate(CLIENT_FORMATS.values())], ids=[*CLIENT_FORMATS]
)
async def test_c37_the_cuts_between_reads_change_neither_frames_nor_bill(
    place: int, client: ClientFormat
) -> None:
    """Each format asks a fourth of the cells, so that two formats ask each cell."""
    for wire, case in HEARD[place % 4 :: 4]:
        await change_nothing(wire, case, client)


@pytest.mark.nightly
@every_format
async def test_c37_the_cuts_between_reads_change_nothing_of_any_format(
    client: ClientFormat,
) -> None:
    for wire, case in HEARD:
        await change_nothing(wire, case, client)


@every_format
@cells("wire", EVERY_WIRE, ids=lambda wire: wire.name)
async def test_c33_events_before_a_failure_in_the_same_read_are_delivered(
    wire: Wire, client: ClientFormat
) -> None:
    events = [*wire.write(ANSWERS["text"])[: wire.head + 3], wire.overloaded]
    one_by_one = await heard(wire, client, framed(wire, events), stream=True)
    assert await heard(wire, client, in_reads(wire, events, []), stream=True) == one_by_one
    assert b"Hel" in one_by_one[0]  # type: ignore[operator]


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("reads", [2, 7, 60])
async def test_c61_cover_ends_at_the_same_event_whatever_reads_it_came_in(
    reads: int, stream: bool
) -> None:
    async def ask(*steps: Any) -> tuple[object, ...]:
        home = await house(near=Scripted(steps), funds_nano_usd=200_000_000)
        home.gateway = replace(home.gateway, admission="covered")
        reply = await home.serve(stream=stream)
        assert home.record.finish == "length"
        assert home.stores.books.wallets["acme"].available >= 0
        return (*told(home, reply.body), home.trace.count("top-up"))

    frames = [each for each in answers(*["x" * 1_000] * 60) if isinstance(each, Frame)]
    size = -(-len(frames) // reads)
    together = [tuple(frames[at : at + size]) for at in range(0, len(frames), size)]
    assert await ask(*together) == await ask(*frames)


async def test_c37_choices_of_one_read_keep_their_order() -> None:
    def of(index: int, **choice: object) -> Frame:
        return frame(chunk(choices=[{"index": index, **choice}]))

    async def ask(*steps: Any) -> tuple[object, ...]:
        native = provider(dialect={"native_choices": True})
        home = await house(near=Scripted(steps), providers={"near": native, "far": provider()})
        question = {"messages": [{"role": "user", "content": "Hi"}], "n": 2}
        reply = await asked(home, question, stream=True)
        assert home.record.outcome == "ok"
        return told(home, reply.body)

    words = [of(index, delta={"content": f"{index}{n}"}) for n in range(3) for index in (0, 1, 1)]
    ends = [of(index, delta={}, finish_reason="stop") for index in (1, 0)]
    frames = [*words, *ends, Frame(data=b"[DONE]")]
    assert await ask(tuple(frames)) == await ask(*frames)


async def test_c35_events_of_one_read_leave_in_one_write() -> None:
    async def ask(*steps: Any) -> RecordedReply:
        return await (await house(near=Scripted(steps))).serve()

    begun, *more = [each for each in says("One", "two", "three") if isinstance(each, Frame)]
    rest = answers()[1:]
    alone, together = await ask(begun, *more, *rest), await ask(begun, tuple(more), *rest)
    # The role leaves with the first word, which commits the attempt; the end comes at the close.
    assert len(alone.pieces) - len(together.pieces) == 2
    assert [b"two" in piece for _, piece in together.pieces].count(True) == 1
