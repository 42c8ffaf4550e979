"""What one request crosses in the tree: counts, which are the same on any machine.

Keeps no contract statement: it holds the rooms of docs/architecture.md where they are.
"""

import asyncio

import pytest

from bench.journeys import measure
from tests.ministack import ministack_command

# Calls between packages, and switches of package; `core` and `http1` are left out. They are
# reviewed when they grow: a switch more is a file more that a reader has to open.
BUDGETS = {
    # An event of a read crosses nothing twice: 16 events were 240 switches when each went alone.
    # A request is made ready in one call and sent by another (decision 197).
    # Admission is counted and ended, and a large body is parsed next to the loop (decision 231).
    # Whether a guardrail applies, the ceilings of the request, and what is left of its budgets are
    # each found once. Service tiers, prompt policies, quotas, the reuse of answers and the
    # check of recent refusals are a call each. The record's rules are one switch more.
    "one streamed chat": (51, 111),
    # The record or the bill that outlives it, and its refund.
    "read a record": (6, 10),
    # 26 when it runs alone, now and then 27 beside other work: the order of waiting steps differs.
    "create a key": (7, 27),
}


@pytest.mark.skipif(ministack_command() is None, reason="ministack is not installed")
def test_a_request_crosses_no_more_rooms_than_it_must() -> None:
    for name, journey in asyncio.run(measure()).items():
        calls, switches = BUDGETS[name]
        assert len(journey.calls) <= calls, (name, sorted(journey.calls))
        assert journey.switches <= switches, name
