"""Bytes of sound as they come over a connection.

Keeps C35, C82.
"""

import asyncio

import pytest

from tests.functional.providers.one_provider import CHAT, OneProvider
from tests.upstream import FakeUpstream, Script
from tests.upstream.server import End
from tollgate.core.errors import UpstreamError
from tollgate.providers.ports.base import Timeouts, WireRequest

GUARD_S = 5  # nothing waits that long: it ends a test that would hang
CHUNKS = [bytes(range(256)), b"[DONE]", b"data: no event\n\n", b": no comment\n", b"\x00" * 9]
WIRE = WireRequest(path="/audio/speech", body={"input": "Hi"}, is_raw=True)


def script(*, lock_step: bool = False, end: End = "clean", kind: str = "audio/mpeg") -> Script:
    return Script(headers={"content-type": kind}, chunks=CHUNKS, lock_step=lock_step, end=end)


async def test_every_chunk_is_a_frame_before_the_next_one_is_sent(
    upstream: FakeUpstream, provider: OneProvider
) -> None:
    upstream.enqueue(script(lock_step=True))
    transport = provider.provider(CHAT).transport
    await upstream.release()
    async with asyncio.timeout(GUARD_S), transport.open(WIRE, Timeouts()) as frames:
        for chunk in CHUNKS:
            assert [frame.data for frame in await anext(frames)] == [chunk]
            await upstream.release()
        assert [together async for together in frames] == []
    (received,) = upstream.received
    assert received.headers["accept"] == "*/*"


@pytest.mark.parametrize("end", ["close", "reset"])
async def test_bytes_that_break_are_an_error(
    upstream: FakeUpstream, provider: OneProvider, end: End
) -> None:
    upstream.enqueue(script(end=end))
    transport = provider.provider(CHAT).transport

    async def read() -> None:
        async with asyncio.timeout(GUARD_S), transport.open(WIRE, Timeouts()) as frames:
            async for _ in frames:
                pass

    with pytest.raises(UpstreamError, match="broke"):
        await read()


@pytest.mark.parametrize(
    "kind",
    [
        "application/json",
        "application/problem+json",
        "application/xml",
        "image/svg+xml",
        "text/html; charset=utf-8",
        "text/event-stream",
        "image/png",
    ],
)
async def test_a_text_in_place_of_sound_is_an_error(
    upstream: FakeUpstream, provider: OneProvider, kind: str
) -> None:
    upstream.enqueue(script(kind=kind))
    transport = provider.provider(CHAT).transport
    with pytest.raises(UpstreamError, match="other than audio"):
        async with transport.open(WIRE, Timeouts()):
            pass
