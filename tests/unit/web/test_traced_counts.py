"""A count of tokens is a step of its caller's trace, as a generation is.

Keeps C80.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from typing_extensions import override

from tests.scripted import Answer, Scripted, frame
from tests.unit.web.test_token_counts import HI, ask, counting_house
from tollgate.core import tracing
from tollgate.providers.ports.base import Frame, Timeouts, WireRequest

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


class Traced(Scripted):
    """Notes the trace to which each request belongs."""

    def __init__(self, *answers: Answer) -> None:
        super().__init__(*answers)
        self.spans: list[tracing.Span | None] = []

    @override
    @asynccontextmanager
    async def open(
        self, request: WireRequest, timeouts: Timeouts
    ) -> AsyncIterator[AsyncIterator[Sequence[Frame]]]:
        self.spans.append(tracing.current())
        async with super().open(request, timeouts) as frames:
            yield frames


async def test_c80_a_count_is_a_step_of_its_callers_trace_alone() -> None:
    near = Traced([frame({"input_tokens": 321})])
    home = await counting_house(near)
    await ask(home, HI, traceparent=f"00-{TRACE}-{PARENT}-01")
    await ask(home, HI)
    traced, untraced = near.spans
    assert traced is not None
    assert (traced.trace_id, traced.parent_span_id) == (TRACE, PARENT)
    assert untraced is None
