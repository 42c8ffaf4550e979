"""A profile of Tollgate in one scenario, as text."""

import io
import os
import pstats
import tempfile
from pathlib import Path

from bench.figures import SCENARIOS, Scenario
from bench.rounds import run_gateways, take_sample

_LINES = 30


async def profile(scenario: Scenario, gateway: str) -> str:
    """Return the functions that take the most time, without and with the functions that they call.

    A profiler slows down Python's calls but not C's, so compare shares of a profile, never times.
    """
    with tempfile.TemporaryDirectory() as folder:
        taken = Path(folder) / "profile"
        os.environ["PROFILE_TO"] = str(taken)
        try:
            with run_gateways([gateway]) as (running, _):
                await take_sample(scenario, gateway, running[gateway], times=scenario.times * 2)
        finally:
            del os.environ["PROFILE_TO"]
        output = io.StringIO()
        stats = pstats.Stats(str(taken), stream=output)
        for order in ("tottime", "cumtime"):
            stats.sort_stats(order).print_stats(_LINES)
        return output.getvalue()


def find_scenario(name: str) -> Scenario:
    """Return the scenario of this name; raise KeyError if it does not exist."""
    return {scenario.name: scenario for scenario in SCENARIOS}[name]
