"""Where a scenario's time goes in ours, as text."""

import io
import os
import pstats
import tempfile
from pathlib import Path

from bench.figures import SCENARIOS, Scenario
from bench.rounds import asked, gateways

_LINES = 30


async def profile(scenario: Scenario, gateway: str) -> str:
    """The functions that take the most time, by themselves and with what they call.

    A profiler makes calls dear and leaves C alone: read shares from it, not times.
    """
    with tempfile.TemporaryDirectory() as folder:
        taken = Path(folder) / "profile"
        os.environ["PROFILE_TO"] = str(taken)
        try:
            with gateways([gateway]) as (running, _):
                await asked(scenario, gateway, running[gateway], times=scenario.times * 2)
        finally:
            del os.environ["PROFILE_TO"]
        output = io.StringIO()
        stats = pstats.Stats(str(taken), stream=output)
        for order in ("tottime", "cumtime"):
            stats.sort_stats(order).print_stats(_LINES)
        return output.getvalue()


def scenario_named(name: str) -> Scenario:
    """The scenario; KeyError where there is none of that name."""
    return {it.name: it for it in SCENARIOS}[name]
