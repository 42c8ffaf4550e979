"""The parts of `make scale` with requests and streams in flight in one process."""

import asyncio
import resource
import sys
from collections.abc import AsyncIterator, Sequence
from statistics import median
from typing import Final

from bench.children import Child
from bench.figures import IN_MEMORY, SERVED, WITH_LEDGER
from bench.gateways.dynamodb import Spent, read_spent
from bench.load import Answers, Question, ask
from bench.rounds import run_gateways
from bench.scale.counted import Cost
from bench.scale.deployments import Template
from bench.scale.measure import Point
from bench.upstream import SHORT_CHUNKS, STREAM_CHUNKS

_IN_FLIGHT: Final = (1, 4, 16, 64, 256)
_WARM_UP_AT_ONCE: Final = 16
_REQUESTS: Final = 256
# The number of streams of one key that open at once. In a larger burst, requests wait for the store
# longer than the time limit of a call.
_OPENING: Final = 4
_WITHIN_S: Final = 300.0
_PACED_MAX: Final = 100
_STREAMS: Final = (1, 10, 100, 500, 2_000)
# Each stream has a socket to the caller and one to the provider; the rest is a reserve.
_FILES: Final = 2 * _STREAMS[-1] + 500
_LOOK_EVERY_S: Final = 0.1
_NOTHING: Final = Spent(calls=0, write_units=0)


async def measure_requests(_template: Template) -> AsyncIterator[Sequence[Point]]:
    """Yield CPU and waiting time of a whole answer for each number of requests in flight."""
    with run_gateways([IN_MEMORY, WITH_LEDGER], emulated=False) as (running, url):
        assert url is not None
        for gateway in running.values():
            await _ask(gateway, times=_REQUESTS, at_once=_WARM_UP_AT_ONCE)
        for at_once in _IN_FLIGHT:
            points: list[Point] = []
            for name, gateway in running.items():
                before_s, before = gateway.cpu_s(), read_spent(url)
                waits = await _ask(gateway, times=_REQUESTS, at_once=at_once)
                cpu_ms = (gateway.cpu_s() - before_s) / _REQUESTS * 1e3
                spent = read_spent(url).since(before)
                points += [
                    _point(f"CPU, {name}", at_once, cpu_ms, spent=spent),
                    _point(f"wall p50, {name}", at_once, median(waits) * 1e3),
                    _point(f"wall p99, {name}", at_once, _p99(waits) * 1e3),
                ]
            yield points


async def measure_streams(_template: Template) -> AsyncIterator[Sequence[Point]]:
    """Yield memory and CPU of `tollgate serve` for each number of open streams of 200 chunks."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(_FILES, most), most))
    for streams in _STREAMS:
        # Each size gets a new process, because a process does not return memory.
        with run_gateways([SERVED], emulated=False) as (running, _url):
            gateway = running[SERVED]
            await _ask(gateway, times=20, at_once=4)
            idle_mb, before_s = gateway.resident_mb(), gateway.cpu_s()
            highest_mb, open_max = await open_streams(gateway, streams)
            cpu_s = gateway.cpu_s() - before_s
        if open_max < streams:
            print(f"  only {open_max:,} of {streams:,} streams were open at once", file=sys.stderr)
        yield [
            _point("CPU of a chunk", streams, cpu_s / streams / STREAM_CHUNKS * 1e3),
            _point(
                "CPU of a stream", streams, cpu_s / streams * 1e3, memory_mb=highest_mb - idle_mb
            ),
        ]


async def open_streams(gateway: Child, streams: int) -> tuple[float, int]:
    """Open `streams` streams; return the peak resident memory, and how many were open at once.

    Streams are divided among the gateway's keys, each of which allows at most a thousand.
    """
    keys = gateway.facts["keys"]
    # Paced streams take a second, and many would end before all are open; slow ones take a minute.
    model = "sse/paced" if streams <= _PACED_MAX else "sse/slow"
    opened = asyncio.gather(
        *(
            _stream(gateway.port, key, model, len(range(place, streams, len(keys))))
            for place, key in enumerate(keys)
        )
    )
    highest_mb = gateway.resident_mb()
    while not opened.done():
        await asyncio.wait([opened], timeout=_LOOK_EVERY_S)
        highest_mb = max(highest_mb, gateway.resident_mb())
    return highest_mb, Answers(
        open_s=[times for answers in await opened for times in answers.open_s]
    ).open_max


async def _stream(port: int, key: str, model: str, streams: int) -> Answers:
    question = Question.chat(model, STREAM_CHUNKS, stream=True, key=key)
    return await ask(
        port, question, times=streams, at_once=streams, opening=_OPENING, within_s=_WITHIN_S
    )


async def _ask(gateway: Child, *, times: int, at_once: int) -> Sequence[float]:
    """Return the seconds to the first content of each answer; answers are not streamed."""
    question = Question.chat(
        "sse/short", SHORT_CHUNKS, stream=False, key=gateway.facts.get("key", "")
    )
    answers = await ask(gateway.port, question, times=times, at_once=at_once)
    return answers.first_token_s


def _p99(waits: Sequence[float]) -> float:
    return sorted(waits)[len(waits) * 99 // 100]


def _point(
    operation: str,
    size: int,
    ms: float,
    *,
    memory_mb: float | None = None,
    spent: Spent = _NOTHING,
) -> Point:
    """Return a point; `spent` has the calls and write units for all requests together."""
    cost = Cost(
        calls=round(spent.calls / _REQUESTS),
        items=0,
        read_units=0,
        write_units=round(spent.write_units / _REQUESTS, 1),
        cpu_ms=ms,
    )
    return Point(operation=operation, size=size, cost=cost, memory_mb=memory_mb)
