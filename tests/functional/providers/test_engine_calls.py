"""Requests to search engines over sockets: their limits, and what no failure repeats."""

from collections.abc import AsyncIterator

import pytest

from tests.upstream import FakeUpstream, Script
from tollgate.core.buffer_budget import ProcessBuffers
from tollgate.providers.transports.http_pool import HttpPool
from tollgate.tools.io.engine_calls import PooledEngineCalls
from tollgate.tools.ports.base import EngineRequest, RunFailure

KEY = "tvly-very-secret"


@pytest.fixture
async def calls() -> AsyncIterator[PooledEngineCalls]:
    pool = HttpPool()
    yield PooledEngineCalls(pool)
    await pool.close()


def search(upstream: FakeUpstream, method: str = "POST") -> EngineRequest:
    return EngineRequest(
        method=method,
        url=f"{upstream.url}/search?q=a%20b",
        headers={"authorization": f"Bearer {KEY}"},
        body=b'{"query":"q"}' if method == "POST" else b"",
    )


async def failure(
    calls: PooledEngineCalls, request: EngineRequest, *, timeout_s: float = 5
) -> RunFailure:
    with pytest.raises(RunFailure) as raised:
        await calls.exchange("tavily", request, bytes_max=1000, timeout_s=timeout_s)
    assert "127.0.0.1" not in str(raised.value)
    shown: BaseException | None = raised.value
    while shown is not None:
        assert KEY not in str(shown)
        shown = shown.__cause__
    return raised.value


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_request_goes_as_it_is(
    calls: PooledEngineCalls, upstream: FakeUpstream, method: str
) -> None:
    upstream.enqueue(Script.json(200, {"results": []}))
    body = await calls.exchange("tavily", search(upstream, method), bytes_max=1000, timeout_s=5)
    assert body == b'{"results": []}'
    (received,) = upstream.received
    assert (received.method, received.path) == (method, "/search?q=a%20b")
    assert received.headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(
    ("script", "fault"),
    [
        (Script.json(401, {"detail": f"bad key {KEY}"}), "unavailable"),
        (Script.json(429, {"detail": KEY}), "too_many_requests"),
        (Script.json(500, {"detail": KEY}), "unavailable"),
        (Script(status=302, headers={"location": "http://169.254.169.254/"}), "unavailable"),
        (Script(headers={"content-encoding": "gzip"}, chunks=[b"x"]), "unavailable"),
        (Script(chunks=[b"x" * 600, b"x" * 600]), "unavailable"),
        (Script(before_headers="close"), "unavailable"),
        (Script(chunks=[b'{"res'], end="close"), "unavailable"),
    ],
)
async def test_every_other_reply_is_a_failure(
    calls: PooledEngineCalls, upstream: FakeUpstream, script: Script, fault: str
) -> None:
    upstream.enqueue(script)
    assert (await failure(calls, search(upstream))).fault == fault
    assert len(upstream.received) == 1


async def test_an_engine_that_is_silent_ends_in_time(
    calls: PooledEngineCalls, upstream: FakeUpstream
) -> None:
    upstream.enqueue(Script(before_headers="hang"), Script(chunks=[b"{"], end="hang"))
    for _ in range(2):
        assert (await failure(calls, search(upstream), timeout_s=0.05)).fault == "unavailable"


async def test_an_engine_that_is_not_there_is_a_failure(calls: PooledEngineCalls) -> None:
    request = EngineRequest(method="GET", url="http://127.0.0.1:9/search", headers={})
    assert (await failure(calls, request)).fault == "unavailable"


async def test_c47_a_reply_that_a_request_may_not_hold_fails_the_run_alone(
    calls: PooledEngineCalls, upstream: FakeUpstream
) -> None:
    process = ProcessBuffers(request_bytes_max=100)
    upstream.enqueue(Script(chunks=[b"x" * 80] * 2), Script(chunks=[b"y" * 80]))
    with process.open("acme"):
        assert (await failure(calls, search(upstream))).fault == "unavailable"
        assert process.size == 0
        body = await calls.exchange("tavily", search(upstream), bytes_max=1000, timeout_s=5)
        assert process.size == len(body) == 80
