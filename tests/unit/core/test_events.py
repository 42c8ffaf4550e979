"""The grammar of a stream, rule by rule."""

import pytest
from hypothesis import given

from tests.strategies import event_streams
from tollgate.core.content import Part, Reasoning, Refusal, Text, ToolCall
from tollgate.core.events import (
    Ended,
    GrammarError,
    Grouped,
    PartDelta,
    PartDeltas,
    PartEnd,
    PartStart,
    Started,
    StreamEvent,
    StreamGrammar,
    UsageReported,
    ungroup,
)
from tollgate.core.usage import Usage

TEXT = Text(text="")
CALL = ToolCall(id="c", name="f", arguments="")
STOP = Ended(finish="stop")


def watch(*events: Grouped) -> None:
    grammar = StreamGrammar()
    for event in events:
        grammar.accept(event)


@given(events=event_streams())
def test_every_generated_stream_keeps_the_grammar(events: list[StreamEvent]) -> None:
    watch(*events)


def test_a_stream_may_be_empty_but_for_its_ends() -> None:
    watch(Started(), STOP)


def test_usage_may_come_anywhere_in_between() -> None:
    usage = UsageReported(usage=Usage())
    watch(Started(), usage, PartStart(index=0, part=TEXT), usage, PartEnd(index=0), usage, STOP)


@pytest.mark.parametrize(
    "first", [PartStart(index=0, part=TEXT), UsageReported(usage=Usage()), STOP]
)
def test_a_stream_starts_with_started(first: StreamEvent) -> None:
    with pytest.raises(GrammarError, match="must start exactly once"):
        watch(first)


def test_a_stream_starts_once() -> None:
    with pytest.raises(GrammarError, match="must start exactly once"):
        watch(Started(), Started())


@pytest.mark.parametrize("index", [1, 2, -1])
def test_parts_are_numbered_densely_from_zero(index: int) -> None:
    with pytest.raises(GrammarError, match="expected 0"):
        watch(Started(), PartStart(index=index, part=TEXT))


def test_an_index_is_not_used_again() -> None:
    with pytest.raises(GrammarError, match="expected 1"):
        watch(
            Started(),
            PartStart(index=0, part=TEXT),
            PartEnd(index=0),
            PartStart(index=0, part=TEXT),
        )


def test_a_delta_belongs_to_an_open_part() -> None:
    with pytest.raises(GrammarError, match="delta of part 0"):
        watch(Started(), PartDelta(index=0, text="a"))
    with pytest.raises(GrammarError, match="delta of part 0"):
        watch(
            Started(),
            PartStart(index=0, part=TEXT),
            PartEnd(index=0),
            PartDelta(index=0, text="a"),
        )


def test_a_part_ends_once() -> None:
    with pytest.raises(GrammarError, match="end of part 0"):
        watch(Started(), PartEnd(index=0))
    with pytest.raises(GrammarError, match="end of part 0"):
        watch(Started(), PartStart(index=0, part=TEXT), PartEnd(index=0), PartEnd(index=0))


def test_a_stream_ends_with_every_part_closed() -> None:
    with pytest.raises(GrammarError, match=r"open parts \[0\]"):
        watch(Started(), PartStart(index=0, part=TEXT), STOP)


@pytest.mark.parametrize("late", [STOP, UsageReported(usage=Usage()), Started()])
def test_nothing_follows_the_end(late: StreamEvent) -> None:
    with pytest.raises(GrammarError, match="after the end"):
        watch(Started(), STOP, late)


@pytest.mark.parametrize("part", [TEXT, Reasoning(text=""), Refusal(text="")])
def test_only_one_text_of_a_kind_is_open_at_a_time(part: Part) -> None:
    with pytest.raises(GrammarError, match="one of its kind is open"):
        watch(Started(), PartStart(index=0, part=part), PartStart(index=1, part=part))


def test_calls_interleave_with_each_other_and_with_text() -> None:
    watch(
        Started(),
        PartStart(index=0, part=TEXT),
        PartStart(index=1, part=CALL),
        PartStart(index=2, part=CALL),
        PartDelta(index=1, text="{}"),
        PartDelta(index=0, text="a"),
        PartEnd(index=2),
        PartEnd(index=0),
        PartEnd(index=1),
        STOP,
    )


def test_texts_that_came_together_need_an_open_part() -> None:
    texts = PartDeltas(index=0, texts=["a", "b"])
    watch(Started(), PartStart(index=0, part=TEXT), texts, PartEnd(index=0), STOP)
    with pytest.raises(GrammarError, match="delta of part 0, which is not open"):
        watch(Started(), PartStart(index=0, part=TEXT), PartEnd(index=0), texts)


def test_texts_that_came_together_are_a_delta_each() -> None:
    together = [(1, Started()), (0, PartDeltas(index=3, texts=["a", "b"])), (0, STOP)]
    assert list(ungroup(together)) == [
        (1, Started()),
        (0, PartDelta(index=3, text="a")),
        (0, PartDelta(index=3, text="b")),
        (0, STOP),
    ]
