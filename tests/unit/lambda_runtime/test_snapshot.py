"""SnapStart: what is done before the snapshot, between it and the restore, and after."""

import asyncio

import pytest

from tests.unit.lambda_runtime.peer import PATIENCE_S, Peer, next_reply
from tests.unit.lambda_runtime.serving import POST, hello, with_lifespan
from tollgate.lambda_runtime.loop import run_loop
from tollgate.lambda_runtime.runtime_api import RuntimeApiError

RESTORED = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


class Noted:
    """A snapshot that writes down its calls among the requests of the process."""

    def __init__(self, peer: Peer, *, fails: str = "") -> None:
        self._peer = peer
        self._fails = fails

    async def before(self) -> None:
        self._note("before")

    async def after(self) -> None:
        self._note("after")

    def _note(self, what: str) -> None:
        self._peer.requests.append(what)
        if self._fails == what:
            raise OSError("no credentials")


async def test_it_lets_go_then_is_copied_then_gets_its_own_then_serves() -> None:
    async with Peer(RESTORED, POST) as peer:
        serving = asyncio.create_task(
            run_loop(with_lifespan(hello), peer.address, snapshot=Noted(peer))
        )
        await peer.ended()
        serving.cancel()
        await asyncio.wait({serving}, timeout=PATIENCE_S)
    assert peer.requests[:5] == [
        "before",
        "GET /2018-06-01/runtime/restore/next",
        "after",
        "GET /2018-06-01/runtime/invocation/next",
        "POST /2018-06-01/runtime/invocation/8476a536/response",
    ]


@pytest.mark.parametrize(
    ("fails", "told"),
    [("before", "/2018-06-01/runtime/init/error"), ("after", "/2018-06-01/runtime/restore/error")],
)
async def test_what_fails_is_reported_and_ends_the_process(fails: str, told: str) -> None:
    async with Peer(RESTORED, POST) as peer:
        with pytest.raises(OSError, match="no credentials"):
            await run_loop(with_lifespan(hello), peer.address, snapshot=Noted(peer, fails=fails))
        report = await peer.ended()
    assert report.path == told
    assert report.headers["Lambda-Runtime-Function-Error-Type"] == "Function.OSError"
    assert not any("invocation/next" in it for it in peer.requests)


async def test_a_restore_that_lambda_refuses_ends_the_process() -> None:
    async with Peer(next_reply(b"").replace(b"200 OK", b"403 Forbidden")) as peer:
        with pytest.raises(RuntimeApiError, match="HTTP 403"):
            await run_loop(with_lifespan(hello), peer.address, snapshot=Noted(peer))
