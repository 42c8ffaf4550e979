"""Hypothesis strategies for values of the middle."""

from collections.abc import Iterator

from hypothesis import strategies as st

from tollgate.core.content import Part, Reasoning, Refusal, Text, ToolCall
from tollgate.core.events import (
    Ended,
    PartDelta,
    PartEnd,
    PartStart,
    Started,
    StreamEvent,
    UsageReported,
)
from tollgate.core.usage import Usage

# Texts that are apt to break a frame: line ends, quotes, separators that some clients split at.
texts = st.one_of(
    st.text(max_size=12),
    st.sampled_from(["\n\n", "\r", '"', "\\", "\u2028", "data: [DONE]", "é", "\U0001f600", " "]),
)
names = st.from_regex(r"[a-zA-Z_][a-zA-Z0-9_-]{0,20}", fullmatch=True)
tokens = st.none() | st.integers(min_value=0, max_value=10_000_000)

usages = st.builds(
    Usage,
    uncached_input_tokens=tokens,
    cache_read_input_tokens=tokens,
    cache_write_5m_input_tokens=tokens,
    cache_write_1h_input_tokens=tokens,
    output_tokens=tokens,
    reasoning_tokens=tokens,
)

opaques = st.dictionaries(
    names, st.dictionaries(names, st.text(max_size=8), min_size=1, max_size=2), max_size=2
)

starts = st.builds(
    Started,
    upstream_id=st.none() | st.text(max_size=8),
    system_fingerprint=st.none() | st.text(min_size=1, max_size=8),
    service_tier=st.sampled_from([None, "default", "flex", "a tier of its own"]),
)

ends = st.builds(
    Ended,
    finish=st.sampled_from(["stop", "length", "tool_calls", "content_filter"]),
    raw_finish=st.none() | st.text(max_size=8),
)


@st.composite
def empty_parts(draw: st.DrawFn) -> Part:
    """A part as it starts: nothing said yet."""
    return draw(
        st.one_of(
            st.just(Text(text="")),
            st.builds(Reasoning, text=st.just(""), opaque=opaques),
            st.just(Refusal(text="")),
            st.builds(ToolCall, id=names, name=names, arguments=st.just(""), opaque=opaques),
        )
    )


def _life(
    index: int, part: Part, deltas: list[str], opaque: dict[str, object]
) -> Iterator[StreamEvent]:
    yield PartStart(index=index, part=part)
    for text in deltas:
        yield PartDelta(index=index, text=text)
    yield PartEnd(index=index, opaque=opaque)  # type: ignore[arg-type]


@st.composite
def event_streams(draw: st.DrawFn) -> list[StreamEvent]:
    """Any stream that the grammar allows: parts interleave, usage comes anywhere."""
    events: list[StreamEvent] = [draw(starts)]
    waiting = [
        _life(index, part, draw(st.lists(texts, max_size=4)), draw(opaques))
        for index, part in enumerate(draw(st.lists(empty_parts(), max_size=5)))
    ]
    running: list[Iterator[StreamEvent]] = []
    while waiting or running:
        step = draw(st.integers(min_value=-2, max_value=len(running) - 1))
        if step == -2 or (step == -1 and not waiting):
            if draw(st.booleans()):
                events.append(UsageReported(usage=draw(usages)))
            step = -1 if waiting else 0
        if step == -1:
            running.append(waiting.pop(0))
            step = len(running) - 1
        event = next(running[step], None)
        if event is None:
            del running[step]
        else:
            events.append(event)
    if draw(st.booleans()):
        events.append(UsageReported(usage=draw(usages)))
    events.append(draw(ends))
    return events
