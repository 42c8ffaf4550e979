"""Frames from a list."""

import pytest

from tollgate.providers.base import Frame, Timeouts, UpstreamRefused, WireRequest
from tollgate.providers.transports.replay import ReplayTransport

WIRE = WireRequest(path="/x", body={"model": "m"})
FRAMES = [Frame(data=b"one"), Frame(data=b"two")]


async def replayed(transport: ReplayTransport) -> list[Frame]:
    async with transport.open(WIRE, Timeouts()) as frames:
        return [frame async for together in frames for frame in together]


async def test_every_request_gets_the_same_frames_and_is_kept() -> None:
    transport = ReplayTransport(FRAMES)
    assert await replayed(transport) == FRAMES
    assert await replayed(transport) == FRAMES
    assert transport.requests == [WIRE, WIRE]


async def test_a_refusal_or_a_failure_comes_where_it_is_put() -> None:
    with pytest.raises(UpstreamRefused):
        await replayed(ReplayTransport(refused=UpstreamRefused(429, {}, b"")))
    with pytest.raises(ConnectionResetError):
        await replayed(ReplayTransport(FRAMES, failure=ConnectionResetError()))
