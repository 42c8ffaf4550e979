"""An honest tenant next to a hostile one on one `tollgate serve`: both are served, none waits.

Keeps C9.
"""

import asyncio
from collections import Counter

import pytest

from bench.tenants import Served, honest_times_s, open_tenants, p99, serving
from tests.hostile.shapes import SHAPES, Shape

SECONDS = 12.0
WAIT_MAX_S = 0.25
# On a busy machine, all times grow together.
RATIO_MAX = 20.0
SENDERS = 2
# A context of two million tokens holds this part of the largest texts.
PAID_PART = 1 / 6


async def attack(
    served: Served, bodies: list[tuple[Shape, bytes]], secret: str, *, done: asyncio.Event
) -> list[int]:
    """Send hostile requests of every shape in turn, as fast as they are answered."""
    statuses: list[int] = []

    async def send(first: int) -> None:
        number = first
        while not done.is_set():
            shape, body = bodies[number % len(bodies)]
            statuses.append(await send_shape(served, shape, body, secret))
            number += 1

    await asyncio.gather(*(send(3 * sender) for sender in range(SENDERS)))
    return statuses


async def send_shape(served: Served, shape: Shape, body: bytes, secret: str) -> int:
    """Send a request; return its status, or 0 if the server closed the connection instead."""
    try:
        status, _ = await served.send(shape.path, body, secret, content_type=shape.content_type)
    except ConnectionError:
        return 0
    return status


@pytest.mark.nightly
async def test_c9_a_hostile_tenant_makes_no_honest_one_wait() -> None:
    """Without credit, and with credit, by which some of the requests are served."""
    async with open_tenants() as tenants, serving(tenants) as served:
        await honest_times_s(served, tenants, seconds=1.0)
        alone_s = p99(await honest_times_s(served, tenants, seconds=SECONDS))
        print(f"honest p99 alone: {alone_s * 1e3:.0f} ms")
        for name, secret, part in (
            ("no credit", tenants.penniless, 1.0),
            ("some credit", tenants.spender, PAID_PART),
        ):
            bodies = [(shape, tenants.body(shape, part)) for shape in SHAPES]
            done = asyncio.Event()
            attacking = asyncio.create_task(attack(served, bodies, secret, done=done))
            beside_s = p99(await honest_times_s(served, tenants, seconds=SECONDS))
            done.set()
            statuses = await attacking
            print(f"next to a tenant with {name}: {beside_s * 1e3:.0f} ms, {Counter(statuses)}")
            assert statuses
            assert (200 in statuses) is (secret == tenants.spender)
            assert beside_s <= max(WAIT_MAX_S, RATIO_MAX * alone_s)
