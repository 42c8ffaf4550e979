"""What is kept of an answer comes out as it went in."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.stores.records.test_generations import USUAL
from tollgate.core.content import Refusal, Text, ToolCall
from tollgate.core.events import Ended, PartDelta, PartEnd, PartStart, UsageReported
from tollgate.core.packing import packed, unpacked
from tollgate.core.usage import Usage

texts = st.text(max_size=10)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | texts,
    lambda inner: st.dictionaries(st.sampled_from(["$", "j", "d", "x"]), inner, max_size=3),
    max_leaves=6,
)
opaques = st.dictionaries(st.sampled_from(["$", "j", "d"]), json_values, max_size=3)
events = st.one_of(
    st.builds(PartStart, index=st.integers(0, 9), part=st.builds(Text, text=texts)),
    st.builds(PartStart, index=st.integers(0, 9), part=st.builds(Refusal, text=texts)),
    st.builds(
        PartStart,
        index=st.integers(0, 9),
        part=st.builds(ToolCall, id=texts, name=texts, arguments=texts, opaque=opaques),
    ),
    st.builds(PartDelta, index=st.integers(0, 9), text=texts),
    st.builds(PartEnd, index=st.integers(0, 9), opaque=opaques),
    st.builds(UsageReported, usage=st.just(Usage(output_tokens=0)), raw=opaques),
    st.builds(Ended, finish=st.just("stop"), raw_finish=st.none() | texts),
)


@given(st.lists(events).map(tuple))
def test_c68_events_come_out_as_they_went_in(stream: tuple[object, ...]) -> None:
    assert unpacked(packed(stream)) == stream


def test_c68_a_record_comes_out_as_it_went_in() -> None:
    assert unpacked(packed(USUAL)) == USUAL
    assert unpacked(packed(Decimal("0.10"))) == Decimal("0.10")


@pytest.mark.parametrize("text", [b'{"$": "Path"}', b'{"x": 1}', b"{}"])
def test_nothing_but_our_values_is_made(text: bytes) -> None:
    with pytest.raises(ValueError, match="not a packed value"):
        unpacked(text)
