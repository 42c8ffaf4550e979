"""Hypothesis strategies for values of the middle."""

from collections.abc import Iterator

from hypothesis import strategies as st
from msgspec.structs import replace

from tollgate.core.content import (
    Part,
    Provenance,
    Reasoning,
    Refusal,
    ServerToolRun,
    Text,
    ToolCall,
)
from tollgate.core.events import (
    Citation,
    Ended,
    LogProbs,
    Note,
    PartDelta,
    PartEnd,
    PartNote,
    PartStart,
    Started,
    StreamEvent,
    UsageReported,
)
from tollgate.core.server_tools import SERVER_TOOLS, RunResult, Source
from tollgate.core.signers import CLAUDE, GEMINI, OPENAI
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

signers = st.sampled_from([CLAUDE, GEMINI, OPENAI, "acme-v1"])
maybe = st.none() | st.text(min_size=1, max_size=8)
# Reasoning as it begins: to be signed, or hidden; the proof of either may be known only at its end.
shown = st.builds(Provenance, signer=signers, id=maybe, is_summary=st.booleans())
hidden = st.builds(Provenance, signer=signers, id=maybe, data=st.sampled_from(["", "b64"]))
signed_calls = st.builds(Provenance, signer=st.just(GEMINI), signature=maybe)


@st.composite
def endings(draw: st.DrawFn, part: Part) -> Provenance | None:
    """What a part is found to be as it ends."""
    match part:
        case Reasoning(provenance=None):
            begun = Provenance(signer=draw(signers), id=draw(maybe))
            return draw(st.none() | st.just(replace(begun, signature=draw(maybe))))
        case Reasoning(provenance=Provenance(data=None) as begun):
            return draw(st.none() | st.just(replace(begun, signature=draw(maybe))))
        case Reasoning(provenance=Provenance() as begun):
            return replace(begun, data="b64")
        case ToolCall(provenance=Provenance(signature=str()) as begun):
            return draw(st.none() | st.just(begun))
        case ToolCall():
            return draw(st.none() | signed_calls)
        case _:
            return None


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


# Parts as they start: nothing said yet.
empty_parts: st.SearchStrategy[Part] = st.one_of(
    st.just(Text(text="")),
    st.builds(Reasoning, text=st.just(""), provenance=st.none() | shown | hidden),
    st.just(Refusal(text="")),
    st.builds(
        ToolCall, id=names, name=names, arguments=st.just(""), provenance=st.none() | signed_calls
    ),
    st.builds(
        ServerToolRun,
        id=names,
        tool=st.sampled_from(SERVER_TOOLS),
        arguments=st.sampled_from(
            ["{}", '{"query":"a \\"b\\""}', '{"url":"https://example.com/a"}', "[", ""]
        ),
    ),
)
run_results: st.SearchStrategy[RunResult] = st.builds(
    RunResult,
    content=st.lists(st.builds(Text, text=texts), max_size=2).map(tuple),
    sources=st.lists(
        st.builds(
            Source,
            url=st.sampled_from(["https://example.com/a", "https://example.org/b?c=d"]),
            title=texts,
            text=texts,
            published=st.none() | st.just("2026-11-22"),
        ),
        max_size=2,
    ).map(tuple),
    error=st.none() | st.sampled_from(["unavailable", "url_not_allowed", "invalid_input"]),
)


offsets = st.none() | st.integers(0, 50)
notes: st.SearchStrategy[Citation | LogProbs] = st.one_of(
    st.builds(
        Citation,
        url=st.none() | st.just("https://example.com/a"),
        title=st.none() | st.text(max_size=8),
        start=offsets,
        end=offsets,
    ),
    st.builds(
        LogProbs,
        entries=st.lists(
            st.fixed_dictionaries(
                {"token": texts, "logprob": st.floats(-20, 0)},
                optional={
                    "bytes": st.just([104, 105]),
                    "top_logprobs": st.just([{"token": "hi", "logprob": -1.5}]),
                },
            ),
            min_size=1,
            max_size=2,
        ).map(tuple),
    ),
)


def _life(
    index: int, part: Part, said: list[str | Note], ended: Provenance | None
) -> Iterator[StreamEvent]:
    yield PartStart(index=index, part=part)
    for piece in said:
        if isinstance(piece, str):
            yield PartDelta(index=index, text=piece)
        else:
            yield PartNote(index=index, note=piece)
    yield PartEnd(index=index, provenance=ended)


def _said(part: Part) -> st.SearchStrategy[list[str | Note]]:
    """Pieces of a part; reasoning that is hidden has no text, and a run has its result alone."""
    match part:
        case Reasoning(provenance=Provenance(data=str())):
            return st.just([])
        case ServerToolRun():
            return st.lists(run_results, max_size=1)
        case _:
            return st.lists(texts | notes, max_size=4)


@st.composite
def event_streams(draw: st.DrawFn) -> list[StreamEvent]:
    """Any stream that the grammar allows: parts interleave, usage comes anywhere.

    Only reasoning and runs do not begin within a text, where no accumulated answer could have their
    place.
    """
    events: list[StreamEvent] = [draw(starts)]
    parts = draw(st.lists(empty_parts, max_size=5))
    started = 0
    running: list[tuple[Part, Iterator[StreamEvent]]] = []
    while running or started < len(parts):
        if draw(st.integers(0, 7)) == 7:
            events.append(UsageReported(usage=draw(usages)))
        if _may_start(parts[started:], [part for part, _ in running]) and draw(st.booleans()):
            part = parts[started]
            life = _life(started, part, draw(_said(part)), draw(endings(part)))
            running.append((part, life))
            events.append(next(life))
            started += 1
        elif running:
            choice = draw(st.integers(0, len(running) - 1))
            event = next(running[choice][1], None)
            if event is None:
                del running[choice]
            else:
                events.append(event)
    if draw(st.booleans()):
        events.append(UsageReported(usage=draw(usages)))
    events.append(draw(ends))
    return events


def _may_start(waiting: list[Part], running: list[Part]) -> bool:
    if not waiting:
        return False
    kinds = set(map(type, running))
    if isinstance(waiting[0], Reasoning | ServerToolRun) and Text in kinds:
        return False
    return isinstance(waiting[0], ToolCall | ServerToolRun) or type(waiting[0]) not in kinds
