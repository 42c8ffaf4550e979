"""128 callers at once on a store too slow for them: what their 503s leave, and the sweep clears."""

import asyncio
import random
from collections import Counter
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Final

from tests.soak.books import check_books, find_holds, open_books
from tests.soak.callers import Callers, Told
from tests.soak.run import Stage, open_client

CALLERS: Final = 128
# A call to the store is given up after 1 s, and lands nevertheless.
_LATE_MAX_S: Final = 4.0


@dataclass(kw_only=True)
class CrowdFindings:
    """What the callers were told, what was held once all had arrived, and what is wrong."""

    told: Sequence[Told]
    held: frozenset[str]
    counts: Counter[str] = field(default_factory=Counter)
    violations: Sequence[str] = ()


async def send_crowd(stage: Stage, seed: int) -> CrowdFindings:
    """Send all requests at once while writes are late, wait until all have landed, and sweep."""
    callers = Callers(stage.keys, random.Random(seed))
    stage.proxy.late_max_s = _LATE_MAX_S
    key = stage.keys[0]
    async with open_client() as http:
        await asyncio.gather(
            *(
                callers.send(http, server.url, server.number, asked)
                for place in range(CALLERS)
                for server in [stage.servers[place % len(stage.servers)]]
                for asked in [
                    callers.ask(
                        "chat_completions", key, model="soak/events", streamed=place % 2 > 0
                    )
                ]
            )
        )
    await stage.proxy.all_delivered()
    stage.proxy.late_max_s = 0.0
    async with aclosing(open_books(stage.settings)) as stores:
        held = await find_holds(stores)
    findings = CrowdFindings(told=callers.told, held=held)
    findings.counts.update(f"{it.ending} {it.code}".strip() for it in findings.told)
    findings.violations = await check_books(stage.settings, findings.told, findings.counts)
    return findings
