"""Trace Context: which `traceparent` counts, and what is passed on."""

import pytest

from tests.clocks import FixedClock
from tollgate.core import tracing
from tollgate.core.ids import IdSource

IDS = IdSource(FixedClock(), entropy=lambda size: b"\xab" * size)
TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@pytest.mark.parametrize(
    ("given", "passed_on"),
    [
        (f"00-{TRACE}-{PARENT}-01", f"00-{TRACE}-abababababababab-01"),
        (f"00-{TRACE}-{PARENT}-00", f"00-{TRACE}-abababababababab-00"),
        # Flags of a later level are not ours to repeat, nor is what a later version adds.
        (f"00-{TRACE}-{PARENT}-03", f"00-{TRACE}-abababababababab-01"),
        (f"cc-{TRACE}-{PARENT}-01-what-the-future-brings", f"00-{TRACE}-abababababababab-01"),
    ],
)
def test_a_callers_trace_goes_on_with_a_step_of_ours(given: str, passed_on: str) -> None:
    tracing.begin(given, IDS)
    span = tracing.current()
    assert span is not None
    assert (span.traceparent(), span.parent_span_id) == (passed_on, PARENT)


@pytest.mark.parametrize(
    "given",
    [
        None,
        "",
        f"ff-{TRACE}-{PARENT}-01",
        f"00-{'0' * 32}-{PARENT}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE.upper()}-{PARENT}-01",
        f"00-{TRACE}-{PARENT}",
        f"00-{TRACE}-{PARENT}-01-more",
        f"00-{TRACE}-{PARENT}-01\n",
        f" 00-{TRACE}-{PARENT}-01",
    ],
)
def test_what_is_no_traceparent_is_none(given: str | None) -> None:
    tracing.begin(given, IDS)
    assert tracing.current() is None
