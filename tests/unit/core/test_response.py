"""A whole answer is the fold of its events."""

import pytest
from hypothesis import given

from tests.strategies import event_streams
from tollgate.core.content import (
    MadeImage,
    Provenance,
    Reasoning,
    Refusal,
    ServerToolRun,
    Text,
    ToolCall,
)
from tollgate.core.events import (
    Ended,
    PartDelta,
    PartEnd,
    PartStart,
    Started,
    StreamEvent,
    UsageReported,
)
from tollgate.core.response import Fold, GenerationResponse
from tollgate.core.usage import Usage


def folded(*events: StreamEvent) -> GenerationResponse:
    fold = Fold()
    for event in events:
        fold.accept(event)
    return fold.response()


def test_parts_grow_by_their_deltas_and_keep_their_order() -> None:
    response = folded(
        Started(upstream_id="up", system_fingerprint="fp"),
        PartStart(index=0, part=Reasoning(text="")),
        PartDelta(index=0, text="so"),
        PartEnd(index=0, provenance=Provenance(signer="p", signature="s")),
        PartStart(index=1, part=Text(text="")),
        PartStart(index=2, part=ToolCall(id="c", name="f", arguments="")),
        PartDelta(index=2, text='{"a":'),
        PartDelta(index=1, text="Hel"),
        PartDelta(index=2, text="1}"),
        PartEnd(index=2),
        PartDelta(index=1, text="lo"),
        PartEnd(index=1),
        PartStart(index=3, part=Refusal(text="")),
        PartDelta(index=3, text="no"),
        PartEnd(index=3),
        Ended(finish="tool_calls", raw_finish="tool_use"),
    )
    assert response.started.upstream_id == "up"
    assert response.parts == (
        Reasoning(text="so", provenance=Provenance(signer="p", signature="s")),
        Text(text="Hello"),
        ToolCall(id="c", name="f", arguments='{"a":1}'),
        Refusal(text="no"),
    )
    assert (response.finish, response.raw_finish) == ("tool_calls", "tool_use")


def test_what_a_call_started_with_stays_unless_its_end_says_more() -> None:
    call = ToolCall(
        id="c", name="f", arguments="", provenance=Provenance(signer="p", signature="early")
    )
    (kept,) = folded(
        Started(), PartStart(index=0, part=call), PartEnd(index=0), Ended(finish="stop")
    ).parts
    assert isinstance(kept, ToolCall)
    assert kept.provenance == Provenance(signer="p", signature="early")
    (replaced,) = folded(
        Started(),
        PartStart(index=0, part=call),
        PartEnd(index=0, provenance=Provenance(signer="p", signature="late")),
        Ended(finish="stop"),
    ).parts
    assert isinstance(replaced, ToolCall)
    assert replaced.provenance == Provenance(signer="p", signature="late")


def test_of_each_class_of_usage_the_last_report_wins() -> None:
    response = folded(
        Started(),
        UsageReported(usage=Usage(uncached_input_tokens=5, output_tokens=1)),
        UsageReported(usage=Usage(output_tokens=9)),
        Ended(finish="stop"),
    )
    assert response.usage == Usage(uncached_input_tokens=5, output_tokens=9)


def test_a_stream_that_has_not_ended_is_no_answer() -> None:
    with pytest.raises(ValueError, match="has not ended"):
        folded(Started())


@given(events=event_streams())
def test_no_text_is_lost_or_added(events: list[StreamEvent]) -> None:
    said = "".join(sorted("".join(e.text for e in events if isinstance(e, PartDelta))))
    kept = "".join(
        part.arguments if isinstance(part, ToolCall) else part.text
        for part in folded(*events).parts
        if not isinstance(part, MadeImage | ServerToolRun)
    )
    assert "".join(sorted(kept)) == said
