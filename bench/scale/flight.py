"""The parts of `make scale` with requests and streams in flight at one process."""

import asyncio
import resource
from collections.abc import AsyncIterator, Sequence
from statistics import median
from typing import Final

from bench.children import Child
from bench.figures import IN_MEMORY, WITH_LEDGER
from bench.load import Question, ask
from bench.rounds import run_gateways
from bench.scale.counted import Cost
from bench.scale.deployments import Template
from bench.scale.measure import Point
from bench.upstream import SHORT_CHUNKS, STREAM_CHUNKS

_IN_FLIGHT: Final = (1, 4, 16, 64, 256)
# Beyond so many the emulator, on half a machine, answers later than the gateway waits.
_WITH_LEDGER_MAX: Final = 16
_REQUESTS: Final = 256
# One key has a thousand at most, see `HOLDS_MAX`.
_STREAMS: Final = (1, 10, 100, 300, 1_000)
# Sockets of the caller and of the provider for each stream, and room.
_FILES: Final = 2 * _STREAMS[-1] + 500
_LOOK_EVERY_S: Final = 0.1


async def measure_requests(_template: Template) -> AsyncIterator[Sequence[Point]]:
    """Yield CPU and waiting of a whole answer for each number of requests in flight."""
    with run_gateways([IN_MEMORY, WITH_LEDGER]) as (running, _url):
        for gateway in running.values():
            await _ask(gateway, times=_REQUESTS, at_once=_WITH_LEDGER_MAX)
        for at_once in _IN_FLIGHT:
            points: list[Point] = []
            for name, gateway in running.items():
                if name == WITH_LEDGER and at_once > _WITH_LEDGER_MAX:
                    continue
                before_s = gateway.cpu_s()
                waits = await _ask(gateway, times=_REQUESTS, at_once=at_once)
                cpu_ms = (gateway.cpu_s() - before_s) / _REQUESTS * 1e3
                points += [
                    _point(f"CPU, {name}", at_once, cpu_ms),
                    _point(f"wall p50, {name}", at_once, median(waits) * 1e3),
                    _point(f"wall p99, {name}", at_once, _p99(waits) * 1e3),
                ]
            yield points


async def measure_streams(_template: Template) -> AsyncIterator[Sequence[Point]]:
    """Yield memory and CPU of streams that are open at a time, each of 200 chunks."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(_FILES, most), most))
    for streams in _STREAMS:
        # A process for each size, since memory that a process got is not given back.
        with run_gateways([IN_MEMORY]) as (running, _url):
            gateway = running[IN_MEMORY]
            await _ask(gateway, times=20, at_once=4)
            idle_mb, before_s = gateway.resident_mb(), gateway.cpu_s()
            highest_mb = await _highest_mb(gateway, streams)
            cpu_s = gateway.cpu_s() - before_s
        yield [
            _point("CPU of a chunk", streams, cpu_s / streams / STREAM_CHUNKS * 1e3),
            _point(
                "CPU of a stream", streams, cpu_s / streams * 1e3, memory_mb=highest_mb - idle_mb
            ),
        ]


async def _highest_mb(gateway: Child, streams: int) -> float:
    """Return the most resident memory while so many streams are open."""
    question = Question.chat(
        "sse/paced", STREAM_CHUNKS, stream=True, key=gateway.facts.get("key", "")
    )
    asked = asyncio.create_task(ask(gateway.port, question, times=streams, at_once=streams))
    highest_mb = gateway.resident_mb()
    while not asked.done():
        await asyncio.wait([asked], timeout=_LOOK_EVERY_S)
        highest_mb = max(highest_mb, gateway.resident_mb())
    await asked
    return highest_mb


async def _ask(gateway: Child, *, times: int, at_once: int) -> Sequence[float]:
    """Return the seconds to the first content of each answer, which comes whole."""
    question = Question.chat(
        "sse/short", SHORT_CHUNKS, stream=False, key=gateway.facts.get("key", "")
    )
    answers = await ask(gateway.port, question, times=times, at_once=at_once)
    return answers.first_token_s


def _p99(waits: Sequence[float]) -> float:
    return sorted(waits)[len(waits) * 99 // 100]


def _point(operation: str, size: int, ms: float, *, memory_mb: float | None = None) -> Point:
    cost = Cost(calls=0, items=0, read_units=0, write_units=0, cpu_ms=ms)
    return Point(operation=operation, size=size, cost=cost, memory_mb=memory_mb)
