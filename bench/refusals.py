"""Measurement of refused requests: their CPU, and how long they keep other requests waiting."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from statistics import median
from time import perf_counter, process_time

from tests.asgi import exchange
from tests.hostile.shapes import SHAPES, Shape, stored_conversation
from tests.stored_responses import Shop, open_shop
from tests.unit.web.test_response_storage import Shelf

from bench.figures import Row

_CPU_MAX_S = 0.001
_WAIT_MAX_S = 0.050
# A server delivers a body in pieces of this size.
_PIECE_BYTES = 64 * 1024
# Another request is ready this often.
_BEAT_S = 0.001


async def measure_refusals(rounds: int) -> list[Row]:
    """Return the table lines for requests of a key without credit, in the costliest shape.

    The stores are in memory, so the one read of an admission is not included.
    """
    shelf = Shelf()
    shelf.contents |= stored_conversation()
    shop = await open_shop(shelf)
    shop.secret = await shop.key("hostile", response_days=7)
    shop.home.stores.books.wallets["acme"].available = 0
    for shape in SHAPES:
        # The first request of a shape imports what the shape needs.
        await _measure(shop, shape)
    taken = {shape.name: [await _measure(shop, shape) for _ in range(rounds)] for shape in SHAPES}
    cpu_s = {name: median(cpu for cpu, _ in samples) for name, samples in taken.items()}
    # On a busy machine each wait includes other processes; the shortest includes least of them.
    wait_s = {name: min(wait for _, wait in samples) for name, samples in taken.items()}
    return [
        _row("CPU of a refused request", cpu_s, _CPU_MAX_S),
        _row("Wait of another request meanwhile", wait_s, _WAIT_MAX_S),
    ]


def _row(figure: str, seconds: dict[str, float], most_s: float) -> Row:
    worst = max(seconds, key=lambda name: seconds[name])
    return Row(
        figure=f"{figure}, worst of {len(seconds)} shapes ({worst})",
        ours=f"{seconds[worst] * 1e3:.1f} ms",
        target=f"≤ {most_s * 1e3:g} ms",
        met=seconds[worst] <= most_s,
    )


async def _measure(shop: Shop, shape: Shape) -> tuple[float, float]:
    """Return the CPU of one refused request, and the longest time without a turn of the loop."""
    body = shape.make(1.0)
    pieces = [body[start : start + _PIECE_BYTES] for start in range(0, len(body), _PIECE_BYTES)]
    headers = {"authorization": f"Bearer {shop.secret}", "content-type": shape.content_type}
    sent = exchange("POST", shape.path, headers=headers, body=iter(pieces))
    app = shop.app
    async with _beating() as waits_s:
        start_s = process_time()
        await sent.run(app)
        cpu_s = process_time() - start_s
        await asyncio.sleep(2 * _BEAT_S)
    if sent.error["code"] != "insufficient_credits":
        raise RuntimeError(f"{shape.name} was not refused for its credit: {sent.body[:200]!r}")
    return cpu_s, max(waits_s)


@asynccontextmanager
async def _beating() -> AsyncIterator[list[float]]:
    """Yield the times by which the turns of another task were late."""
    waits_s = [0.0]

    async def beat() -> None:
        while True:
            start_s = perf_counter()
            await asyncio.sleep(_BEAT_S)
            waits_s.append(perf_counter() - start_s - _BEAT_S)

    beats = asyncio.create_task(beat())
    await asyncio.sleep(2 * _BEAT_S)
    waits_s.clear()
    try:
        yield waits_s
    finally:
        beats.cancel()
